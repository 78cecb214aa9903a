import Synchronization
import Testing
import TestSupport

@testable import LyingServer

/// Several connections to a real server.
@Suite(.enabled("needs openssl and nginx") { try await Need.nginx.isMet() })
struct SeveralConnectionsNginxTests {
  /// Six megabytes.
  private static let data = large(payload, count: 600)

  private func withRig(_ body: @Sendable (NginxRig, CertificateAuthority) async throws -> Void) async throws {
    let authority = try await CertificateAuthority()
    let rig = try await NginxRig(authority: authority)
    try rig.publish("data.bin", Self.data, secondsAgo: 7200)
    try await body(rig, authority)
  }

  @Test(arguments: NginxRig.Scheme.allCases)
  func fetches(_ scheme: NginxRig.Scheme) async throws {
    try await withRig { rig, authority in
      try rig.publish("empty.bin", [])
      try rig.publish("small.bin", payload)
      let spool = try TemporarySpool()
      for name in ["data", "empty", "small"] { try spool.drop(name, "\(rig.url(scheme, "/\(name).bin"))\n") }
      let result = try await spoolrun("--once", "--connections", "8", "--cacert", authority.authority, spool.root)
      #expect(result.status == .exited(0), "\(result)")
      let isRight = try spool.payload("data.bin") == Self.data && spool.payload("small.bin") == payload
      #expect(isRight && spool.payloads == ["data.bin", "empty.bin", "small.bin"])
      try await waitUntil("nginx logs the requests") { try rig.accessLog().count >= 6 }
      let log = try rig.accessLog()
      #expect(log.filter { $0.target == "/small.bin" }.count == 1, "what fits into the first request needs no second")
      #expect(log.filter { $0.target == "/data.bin" }.count > 2)
    }
  }

  /// nginx serves three at a time and answers 503 to the others.
  @Test func limitedByTheServer() async throws {
    try await withRig { rig, _ in
      let megabyte = Array(Self.data.prefix(1_000_000))
      try rig.publish("megabyte.bin", megabyte)
      let spool = try TemporarySpool()
      try spool.drop("job", "\(rig.url(.http, "/limited/megabyte.bin"))\n")
      let result = try await spoolrun("--once", "--verbose", "--connections", "8", spool.root)
      #expect(result.status == .exited(0), "\(result)")
      let isRight = try spool.payload("megabyte.bin") == megabyte
      #expect(isRight)
      #expect(try spool.lines("done/job").last { $0.key == "done" }?["attempts"] == "1")
      #expect(try rig.accessLog().contains { $0.status == 503 })
    }
  }

  /// Each connection is slow, and the server takes three.
  @Test func aSlowFileThatAPersonWaitsForGetsOthersBesideIt() async throws {
    for play in 1...5 {
      if try await isFetchedOverOthers(isLast: play == 5) { return }
    }
  }

  /// - Returns: false, without a judgement, where a machine that stood still left too little of the file, unless it is
  ///   the last play.
  private func isFetchedOverOthers(isLast: Bool) async throws -> Bool {
    let isJudged = Mutex(true)
    try await withRig { rig, _ in
      let data = Array(Self.data.prefix(2_400_000))
      try rig.publish("slow.bin", data)
      let scene = try TemporaryDirectory()
      let result = try await spoolrun(
        "get", "--verbose", rig.url(.http, "/limited/slow.bin"), environment: ["HOME": scene.path],
        directory: scene.path)
      #expect(result.status == .exited(0), "\(result)")
      #expect(try readFile("\(scene.path)/slow.bin") == data)
      let log = try rig.accessLog()
      let isRefused = log.contains { $0.status == 503 } && log.filter { $0.status == 206 }.count > 4
      isJudged.withLock { $0 = isLast || isRefused && result.errors.contains("more-connections") }
      guard isJudged.withLock({ $0 }) else { return }
      #expect(result.errors.contains("more-connections"))
      #expect(isRefused, "\(log)")
    }
    return isJudged.withLock { $0 }
  }
}
