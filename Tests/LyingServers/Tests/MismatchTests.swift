import Testing
import TestSupport

@testable import LyingServer

/// What was declared and what came: a mismatch is shown, set aside, and never resumed.
@Suite struct MismatchTests {
  /// One attempt of a job for `/data`. A first mismatch is looked at again after 4 s. If the machine stood still for so
  /// long, that was in the same run, and another server and spool get another one.
  private func firstAttempt(
    _ lines: String, _ script: @escaping ScriptedServer.Script
  ) async throws -> (TemporarySpool, ScriptedServer, CommandResult) {
    var play = 1
    while true {
      let server = try ScriptedServer(script)
      let spool = try TemporarySpool()
      try spool.drop("job", "url: \(server.url("/data"))\n\(lines)")
      let result = try await spoolrun("--once", spool.root)
      if play == 5 || server.requests.count <= 1 { return (spool, server, result) }
      play += 1
    }
  }

  @Test(arguments: [
    ("crc32", "00C0FFEE"), ("sha256", "00c0ffee" + String(repeating: "00", count: 28)),
    ("md5", "00c0ffee" + String(repeating: "00", count: 12)),
  ])
  func threeMismatchesEndTheJob(key: String, value: String) async throws {
    // A first mismatch is looked at again after 4 s: in the same run, where the machine stood still for so long.
    plays: for play in 1...5 {
      let bytes: @Sendable (Int) -> [UInt8] = { [UInt8($0)] + payload.dropFirst() }
      let server = try ScriptedServer { try Origin(bytes: bytes($0.nth), etag: nil).answer($0, $1) }
      let spool = try TemporarySpool()
      try spool.drop("job", "url: \(server.url("/data"))\n\(key): \(value)\n")
      for round in 1...3 {
        let result = try await spoolrun("--once", spool.root)
        if play < 5, round == 1, server.requests.count > 1 { continue plays }
        #expect(server.requests.map(ask) == Array(repeating: "plain", count: round), "each from 0")
        #expect(digest(try readFile(spool.path("failed/job.part"))) == digest(bytes(round)), "it is set aside")
        #expect(spool.names("partial").filter { $0.hasSuffix(".part") } == [], "nothing to resume")
        #expect(spool.payloads == [])
        let place = round < 3 ? "partial/job" : "failed/job"
        #expect(result.status == .exited(round < 3 ? 75 : 1), "\(result)")
        #expect(spool.places(of: "job") == [place])
        let failure = try spool.lines(place).last { $0.key == "failed" }
        #expect(failure?["expected"] == value, "\(spool.listing(of: "job"))")
        if key == "crc32" { #expect(failure?["found"] == hex8(independentCRC32(bytes(round)))) }
        if round < 3 {
          #expect(failure?["code"] == "mismatch-\(key)" && failure?["class"] == "temporary")
          try spool.makeDue("job")
        } else {
          #expect(failure?["code"] == "mismatch" && failure?["class"] == "permanent")
        }
      }
      return
    }
  }

  /// Damage on the way would not be the same twice.
  @Test func theSameTwiceEndsTheJob() async throws {
    let (spool, server, first) = try await firstAttempt("crc32: 00C0FFEE\n") { try Origin().answer($0, $1) }
    #expect(first.status == .exited(75), "\(first)")
    try spool.makeDue("job")
    #expect(try await spoolrun("--once", spool.root).status == .exited(1))
    #expect(try spool.lastFailure("failed/job")["code"] == "mismatch" && server.requests.count == 2)
    #expect(server.requests.map { $0.value("cache-control") } == [nil, "no-cache"], "a cache may be wrong")
  }

  @Test func rightAfterAMismatchLeavesNothingAside() async throws {
    let declared = "crc32: \(hex8(independentCRC32(payload)))\nsize: \(n)\n"
    let (spool, server, _) = try await firstAttempt(declared) { request, reply in
      try Origin(bytes: request.nth == 1 ? previous : payload, etag: nil).answer(request, reply)
    }
    #expect(spool.names("failed") == ["job.part"])
    try spool.makeDue("job")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0), "\(result)")
    #expect(spool.names("failed") == [] && spool.names("partial") == [])
    #expect(digest(try spool.payload("data")) == digest(payload))
    #expect(server.requests.map(ask) == ["plain", "plain"])
  }

  /// A page of the declared size and of another, as a captive portal would send it.
  @Test(arguments: [n - 1, n, n + 1])
  func aPageIsNoPayload(size: Int) async throws {
    let page = Array("<html>log in first".utf8) + Array(repeating: 0x20, count: size - 18)
    let declared = "size: \(n)\ncrc32: \(hex8(independentCRC32(payload)))\n"
    let (spool, _, result) = try await firstAttempt(declared) { _, reply in
      try reply.respond("200 OK", ["Content-Type: text/html"], body: page)
    }
    #expect(result.status == .exited(75), "\(result)")
    #expect(spool.payloads == [])
    let failure = try spool.lines("partial/job").last { $0.key == "failed" }
    #expect(failure?["code"] == (size == n ? "mismatch-crc32" : "mismatch-size"), "\(spool.listing(of: "job"))")
    if size != n {
      #expect(failure?["expected"]?.contains("\(n)") == true)
      #expect(failure?["found"]?.contains("\(size)") == true)
    }
  }

  @Test(arguments: ["", "size: 0\n", "crc32: 00000000\n", "size: 0\ncrc32: 00000000\n"])
  func emptyPayload(declared: String) async throws {
    let server = try ScriptedServer { request, reply in
      switch request.target {
      case "/length": try reply.respond("200 OK", ["ETag: \(v1)"], body: [])
      case "/chunked":
        try reply.head("200 OK", ["Transfer-Encoding: chunked"])
        try reply.send("0\r\n\r\n")
      default:
        try reply.head("200 OK", ["Connection: close"])
        try reply.finish()
      }
    }
    let spool = try TemporarySpool()
    let targets = ["chunked", "close", "length"]
    for target in targets { try spool.drop(target, "url: \(server.url("/\(target)"))\n\(declared)") }
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0), "\(result)")
    #expect(spool.payloads == targets)
    for target in targets { #expect(digest(try spool.payload(target)) == digest([])) }
  }

  @Test func somethingWhereNothingWasDeclared() async throws {
    let (spool, _, result) = try await firstAttempt("size: 0\n") { try Origin().answer($0, $1) }
    #expect(result.status == .exited(75), "\(result)")
    #expect(try spool.lines("partial/job").last { $0.key == "failed" }?["code"] == "mismatch-size")
    #expect(spool.payloads == [])
  }
}
