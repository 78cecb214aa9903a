import Glibc
import Testing
import TestSupport

@testable import LyingServer

/// The same promises against a real server, over plain connections and TLS.
@Suite(.enabled("needs openssl and nginx") { try await Need.nginx.isMet() })
struct NginxTests {
  /// Six megabytes: six seconds at the slow location's pace.
  private static let data = large(payload, count: 600)

  private func withRig(_ body: @Sendable (NginxRig, CertificateAuthority) async throws -> Void) async throws {
    let authority = try await CertificateAuthority()
    try await body(try await NginxRig(authority: authority), authority)
  }

  @Test(arguments: NginxRig.Scheme.allCases)
  func fetches(_ scheme: NginxRig.Scheme) async throws {
    try await withRig { rig, authority in
      try rig.publish("data.bin", Self.data)
      try rig.publish("empty.bin", [])
      let spool = try TemporarySpool()
      try spool.drop("data", "\(rig.url(scheme, "/data.bin"))\n")
      try spool.drop("empty", "url: \(rig.url(scheme, "/empty.bin"))\nsize: 0\n")
      try spool.drop("gzip", "url: \(rig.url(scheme, "/gzip/data.bin"))\noutput: gzip/data.bin\n")
      let result = try await spoolrun("--once", "--cacert", authority.authority, spool.root)
      #expect(result.status == .exited(0), "\(result)")
      #expect(spool.payloads == ["data.bin", "empty.bin", "gzip/data.bin"])
      #expect(try isPayload("data.bin", of: spool, Self.data))
      #expect(try isPayload("gzip/data.bin", of: spool, Self.data))
    }
  }

  /// More jobs than connections.
  @Test(arguments: NginxRig.Scheme.allCases)
  func sharesConnections(_ scheme: NginxRig.Scheme) async throws {
    try await withRig { rig, authority in
      try rig.publish("data.bin", Self.data)
      let spool = try TemporarySpool()
      for number in 1...16 { try spool.drop("\(number)", "url: \(rig.url(scheme, "/data.bin"))\noutput: \(number)\n") }
      let result = try await spoolrun("--once", "--cacert", authority.authority, spool.root)
      #expect(result.status == .exited(0) && result.errors == "", "\(result)")
      for number in 1...16 { #expect(try isPayload("\(number)", of: spool, Self.data)) }
    }
  }

  /// Killed in the middle, the next run takes the claim over at once and asks for the rest.
  @Test(arguments: NginxRig.Scheme.allCases)
  func resumesAfterKill(_ scheme: NginxRig.Scheme) async throws {
    try await withKilled(scheme) { rig, authority, spool, held in
      let result = try await spoolrun("--once", "--cacert", authority.authority, spool.root)
      #expect(result.status == .exited(0), "\(result)")
      #expect(try isPayload("data.bin", of: spool, Self.data))
      try await waitUntil("nginx logs both requests") { try rig.accessLog().count == 2 }
      let log = try rig.accessLog()
      let resumed = log.filter { $0.status == 206 }
      #expect(resumed.count == 1, "\(log)")
      let start = resumePoint(after: held)
      #expect(resumed.first?.range == "bytes=\(start)-")
      #expect(resumed.first?.bodyBytes == Self.data.count - start)
      #expect(resumed.first?.contentRange == "bytes \(start)-\(Self.data.count - 1)/\(Self.data.count)")
      #expect(log.count == 2, "\(log)")
    }
  }

  @Test(arguments: [NginxRig.Scheme.http, .https])
  func changedInBetween(_ scheme: NginxRig.Scheme) async throws {
    try await withKilled(scheme) { rig, authority, spool, held in
      let newer = large(previous, count: 600)
      try rig.publish("data.bin", newer)

      let result = try await spoolrun("--once", "--cacert", authority.authority, spool.root)
      #expect(result.status == .exited(0), "\(result)")
      #expect(try isPayload("data.bin", of: spool, newer), "the new version, whole")
      try await waitUntil("nginx logs both requests") { try rig.accessLog().count == 2 }
      let log = try rig.accessLog()
      let second = log.last { $0.range == "bytes=\(resumePoint(after: held))-" }
      #expect(second?.status == 200, "If-Range was honoured: \(log)")
    }
  }

  @Test(arguments: [true, false])
  func authorization(inURL: Bool) async throws {
    try await withRig { rig, _ in
      try rig.publish("data.bin", payload)
      let url = rig.url(.http, "/private/data.bin")
      let spool = try TemporarySpool()
      try spool.drop("without", "url: \(url)\noutput: none\n")
      try spool.drop(
        "with",
        inURL
          ? "url: \(url.replacing("http://", with: "http://user:secret@"))\n"
          : "url: \(url)\nheader: Authorization: Basic dXNlcjpzZWNyZXQ=\n")
      let result = try await spoolrun("--once", spool.root)
      #expect(result.status == .exited(1), "\(result)")
      #expect(spool.places(of: "with") == ["done/with"])
      #expect(try spool.lines("failed/without").last { $0.key == "failed" }?["code"] == "http-401")
      #expect(digest(try spool.payload("data.bin")) == digest(payload))
    }
  }

  /// With a job whose worker was killed in the middle, and how much that has left. The file is two hours old.
  private func withKilled(
    _ scheme: NginxRig.Scheme, _ body: (NginxRig, CertificateAuthority, TemporarySpool, Int) async throws -> Void
  ) async throws {
    // Where the machine stands still, the kill may come too late.
    for _ in 1...10 {
      let authority = try await CertificateAuthority()
      let rig = try await NginxRig(authority: authority)
      try rig.publish("data.bin", Self.data, secondsAgo: 7200)
      let spool = try TemporarySpool()
      try spool.drop("job", "url: \(rig.url(scheme, "/slow/data.bin"))\n")
      if let held = try await killInTheMiddle(spool, authority) { return try await body(rig, authority, spool, held) }
    }
    throw TestSupportError("the worker has ended by itself, ten times")
  }

  /// Starts a worker, kills it when some data is there, and returns how much the dead worker left; nil if it was done.
  private func killInTheMiddle(_ spool: TemporarySpool, _ authority: CertificateAuthority) async throws -> Int? {
    let worker = try startSpoolrun([
      "run", "--once", "--cacert", authority.authority, spool.root,
    ])
    let data = spool.path("partial/job.part")
    try await waitUntil("a megabyte is there") {
      if (fileStatus(data)?.st_size ?? 0) > 1 << 20 { worker.send(signal: SIGKILL) }
      return worker.isFinished
    }
    let result = try await worker.result()
    let held = Int(fileStatus(data)?.st_size ?? 0)
    if held >= Self.data.count || !spool.payloads.isEmpty { return nil }
    guard result.status == .killed(signal: SIGKILL) else {
      throw TestSupportError("ended by itself: \(result)\n\(spool.listing(of: "job"))")
    }
    #expect(spool.places(of: "job").first?.hasPrefix("cur/job:") == true, "\(spool.listing(of: "job"))")
    return held
  }

  /// Compares without printing megabytes.
  private func isPayload(_ output: String, of spool: TemporarySpool, _ bytes: [UInt8]) throws -> Bool {
    try spool.payload(output) == bytes
  }
}
