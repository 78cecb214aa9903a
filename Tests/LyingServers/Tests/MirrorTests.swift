import Testing
import TestSupport

@testable import LyingServer

/// Several `url:` lines: which is asked, and what of one may be joined with what of another.
@Suite struct MirrorTests {
  /// Runs a job with these URLs, again as often as it waits, up to four times.
  private func fetch(_ urls: [String], _ lines: String = "") async throws -> TemporarySpool {
    let spool = try TemporarySpool()
    try spool.drop("job", urls.map { "url: \($0)\n" }.joined() + lines)
    for _ in 1...4 {
      let result = try await spoolrun("--once", spool.root)
      if result.status != .exited(75) { break }
      try spool.makeDue("job")
    }
    return spool
  }

  @Test(arguments: ["404 Not Found", "403 Forbidden", "500 Internal Server Error", "503 Service Unavailable"])
  func firstRefuses(status: String) async throws {
    let first = try ScriptedServer { _, reply in try reply.respond(status, body: []) }
    let second = try ScriptedServer { try Origin().answer($0, $1) }
    let spool = try await fetch([first.url("/data"), second.url("/elsewhere")])
    #expect(digest(try spool.payload("data")) == digest(payload), "\(spool.listing(of: "job"))")
    #expect(first.requests.count == 1 && second.requests.map(ask) == ["plain"])
  }

  @Test func firstIsDead() async throws {
    let dead = try DeadPort()
    let second = try ScriptedServer { try Origin().answer($0, $1) }
    let spool = try await fetch(["http://127.0.0.1:\(dead.port)/data", second.url("/data")])
    #expect(digest(try spool.payload("data")) == digest(payload), "\(spool.listing(of: "job"))")
  }

  @Test func allRefuse() async throws {
    let servers = try (0..<3).map { _ in
      try ScriptedServer { _, reply in try reply.respond("404 Not Found", body: []) }
    }
    let spool = try await fetch(servers.map { $0.url("/data") })
    #expect(spool.places(of: "job") == ["failed/job"], "\(spool.listing(of: "job"))")
    #expect(servers.map(\.requests.count) == [1, 1, 1])
  }

  /// What the second mirror has is asked for with the first one's validator, or from 0; never joined on trust.
  struct Handover: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let first: Origin
    let second: Origin
    var lines = ""
    let secondAsks: [String]
  }

  static let handovers = [
    Handover(
      testDescription: "same validator, no checksum", first: Origin(), second: Origin(),
      secondAsks: ["range 2000 if \(v1)", "plain"]),
    // An ETag is unique only within one resource: nginx makes it of time and size.
    Handover(
      testDescription: "same validator, other bytes", first: Origin(bytes: previous), second: Origin(),
      secondAsks: ["range 2000 if \(v1)", "plain"]),
    Handover(
      testDescription: "same validator, checksum", first: Origin(), second: Origin(),
      lines: "crc32: \(hex8(independentCRC32(payload)))\n", secondAsks: ["range 2000"]),
    Handover(
      testDescription: "another validator, no checksum", first: Origin(bytes: previous), second: Origin(etag: v2),
      secondAsks: ["range 2000 if \(v1)"]),
    Handover(
      testDescription: "another validator, If-Range ignored", first: Origin(bytes: previous),
      second: Origin(etag: v2, ifRange: .ignored), secondAsks: ["range 2000 if \(v1)", "plain"]),
    Handover(
      testDescription: "no validators, no checksum", first: Origin(bytes: previous, etag: nil),
      second: Origin(etag: nil), secondAsks: ["plain"]),
    Handover(
      testDescription: "no validators, checksum", first: Origin(etag: nil), second: Origin(etag: nil),
      lines: "crc32: \(hex8(independentCRC32(payload)))\n", secondAsks: ["range 2000"]),
  ]

  @Test(arguments: handovers)
  func firstBreaksOff(_ handover: Handover) async throws {
    // After the cut the first is no help at all.
    let first = try ScriptedServer { request, reply in
      guard request.nth == 1 else { return try reply.respond("500 Internal Server Error", body: []) }
      try handover.first.answerAndCut(request, reply, after: 4000)
    }
    let second = try ScriptedServer { try handover.second.answer($0, $1) }
    let spool = try await fetch([first.url("/data"), second.url("/data")], handover.lines)
    #expect(digest(try spool.payload("data")) == digest(payload), "\(spool.listing(of: "job"))")
    #expect(second.requests.map(ask) == handover.secondAsks)
  }

  /// Where the declared checksum unmasks the joint, the next attempt begins from 0.
  @Test(arguments: ["crc32", "sha256", "sha512"])
  func aBadJointIsFoundByTheChecksum(key: String) async throws {
    let directory = try TemporaryDirectory()
    try writeFile("\(directory.path)/data", payload)
    let sum =
      key == "crc32"
      ? hex8(independentCRC32(payload))
      : try await runTool(["/usr/bin/\(key)sum", "\(directory.path)/data"]).output.prefix { $0 != " " }.description
    let first = try ScriptedServer { request, reply in
      guard request.nth == 1 else { return try reply.respond("404 Not Found", body: []) }
      try Origin(bytes: previous, etag: nil).answerAndCut(request, reply, after: 4000)
    }
    let second = try ScriptedServer { try Origin(etag: nil).answer($0, $1) }
    let spool = try await fetch(
      [first.url("/data"), second.url("/data")], "\(key): \(sum)\n")
    #expect(digest(try spool.payload("data")) == digest(payload), "\(spool.listing(of: "job"))")
    #expect(second.requests.map(ask) == ["range 2000", "plain"])
  }

  /// The first mirror has a version that differs in one of its first bytes, and never sends all of it.
  @Test func aWrongMirrorSpoilsNoRightOneAfterAMismatch() async throws {
    var other = payload
    other[100] ^= 1
    let first = try ScriptedServer { [other] request, reply in
      guard request.rangeStart == nil else { return try reply.respond("500 Internal Server Error", body: []) }
      try Origin(bytes: other, etag: nil).answerAndCut(request, reply, after: 4000)
    }
    let second = try ScriptedServer { try Origin(etag: nil).answer($0, $1) }
    let spool = try await fetch(
      [first.url("/data"), second.url("/data")], "crc32: \(hex8(independentCRC32(payload)))\n")
    #expect(digest(try spool.payload("data")) == digest(payload), "\(spool.listing(of: "job"))")
    #expect(second.requests.last.map(ask) == "plain")
  }

  /// Nothing is set aside of it, and the next one has to be asked all the same.
  @Test func anEmptyFileOfOneMirrorIsNotThatOfTheNext() async throws {
    let empty = try ScriptedServer { _, reply in try reply.respond("200 OK", ["ETag: \(v2)"], body: []) }
    let right = try ScriptedServer { try Origin().answer($0, $1) }
    let spool = try TemporarySpool()
    let urls = [empty, right].map { "url: \($0.url("/data"))\n" }.joined()
    try spool.drop("job", urls + "crc32: \(hex8(independentCRC32(payload)))\n")
    #expect(try await spoolrun("--once", spool.root).status == .exited(0), "\(spool.listing(of: "job"))")
    #expect(digest(try spool.payload("data")) == digest(payload) && right.requests.map(ask) == ["plain"])
  }

  /// One that sends 6000 bytes, then nothing until the gate opens.
  private func right(_ isThere: Gate) throws -> ScriptedServer {
    try ScriptedServer { request, reply in
      if request.nth == 1 { return try Origin(etag: nil).answerAndCut(request, reply, after: 6000) }
      guard isThere.isOpen else { return try reply.respond("500 Internal Server Error", body: []) }
      try Origin(etag: nil).answer(request, reply)
    }
  }

  /// A wrong file of one is no reason to throw away what another one has sent: neither all of it, nor its head alone.
  @Test(arguments: [false, true])
  func whatTheRightMirrorHasSentStays(isOfOtherSize: Bool) async throws {
    let isThere = try Gate()
    let wrong = try ScriptedServer { request, reply in
      if !isOfOtherSize { return _ = try Origin(bytes: previous, etag: nil).answer(request, reply) }
      if request.nth == 1 { return try reply.respond("500 Internal Server Error", body: []) }
      try Origin(bytes: payload + [0], etag: nil).answer(request, reply)
    }
    let right = try right(isThere)
    let spool = try TemporarySpool()
    let urls = [wrong, right].map { "url: \($0.url("/data"))\n" }.joined()
    try spool.drop("job", urls + "crc32: \(hex8(independentCRC32(payload)))\nsize: \(n)\n")
    #expect(try await spoolrun("--once", spool.root).status == .exited(75))
    let failure = try spool.lastFailure("partial/job")
    #expect(failure["code"] == (isOfOtherSize ? "http-500" : "mismatch-crc32") && failure["at"] == "6000", "\(failure)")
    #expect(spool.length("partial/job.part") == 6000)
    #expect(spool.length("failed/job.part") == (isOfOtherSize ? -1 : previous.count))
    try spool.makeDue("job")
    isThere.open()
    #expect(try await spoolrun("--once", spool.root).status == .exited(0), "\(spool.listing(of: "job"))")
    #expect(digest(try spool.payload("data")) == digest(payload))
    #expect(right.requests.map(ask) == ["plain", "range 3000", "range 3000"])
    #expect(wrong.requests.count == (isOfOtherSize ? 2 : 1))
  }

  /// What the next one sends breaks off each time, after fewer bytes.
  @Test func aMirrorWithoutPartsReplacesNoLongerData() async throws {
    let first = try ScriptedServer { request, reply in
      guard request.nth == 1 else { return try reply.respond("500 Internal Server Error", body: []) }
      try Origin().answerAndCut(request, reply, after: 6000)
    }
    let second = try ScriptedServer { _, reply in
      try reply.head("200 OK", ["Content-Length: \(n)", "ETag: \(v2)"])
      try reply.send(payload[..<1000])
      try reply.finish()
    }
    let spool = try TemporarySpool()
    try spool.drop("job", [first, second].map { "url: \($0.url("/data"))\n" }.joined())
    #expect(try await spoolrun("--once", spool.root).status == .exited(75))
    #expect(second.requests.count > 1 && spool.length("partial/job.part") == 6000, "\(spool.listing(of: "job"))")
  }

  /// It has no length, so that it is only known to be wrong after its last byte.
  @Test func aMirrorThatSendsTooMuchCostsAnotherOneNothing() async throws {
    let isThere = try Gate()
    let right = try ScriptedServer { request, reply in
      if isThere.isOpen { return _ = try Origin().answer(request, reply) }
      guard request.nth == 1 else { return try reply.respond("500 Internal Server Error", body: []) }
      try Origin().answerAndCut(request, reply, after: 6000)
    }
    let wrong = try ScriptedServer { _, reply in
      try reply.head("200 OK", ["Transfer-Encoding: chunked", "ETag: \(v2)"])
      try reply.send(latin1Bytes("\(String(n + 1, radix: 16))\r\n") + payload + latin1Bytes("X\r\n0\r\n\r\n"))
    }
    let spool = try TemporarySpool()
    try spool.drop("job", [right, wrong].map { "url: \($0.url("/data"))\n" }.joined() + "size: \(n)\n")
    #expect(try await spoolrun("--once", spool.root).status == .exited(75))
    #expect(wrong.requests.count > 0 && spool.length("partial/job.part") == 6000, "\(spool.listing(of: "job"))")
    try spool.makeDue("job")
    isThere.open()
    #expect(try await spoolrun("--once", spool.root).status == .exited(0), "\(spool.listing(of: "job"))")
    #expect(digest(try spool.payload("data")) == digest(payload))
  }

  /// The right one breaks off in each attempt. The wrong file replaces what it has sent once.
  @Test func aWrongMirrorReplacesTheRightOnesDataOnce() async throws {
    let isThere = try Gate()
    let right = try ScriptedServer { request, reply in
      if isThere.isOpen { return _ = try Origin(etag: nil).answer(request, reply) }
      guard request.rangeStart == nil else { return try reply.respond("500 Internal Server Error", body: []) }
      try Origin(etag: nil).answerAndCut(request, reply, after: 6000)
    }
    let wrong = try ScriptedServer { try Origin(bytes: previous, etag: nil).answer($0, $1) }
    let spool = try TemporarySpool()
    let urls = [right, wrong].map { "url: \($0.url("/data"))\n" }.joined()
    try spool.drop("job", urls + "crc32: \(hex8(independentCRC32(payload)))\nsize: \(n)\n")
    var asked = 0
    for code in ["mismatch-crc32", "mismatch-crc32", "http-500"] {
      asked = wrong.requests.count
      #expect(try await spoolrun("--once", spool.root).status == .exited(75))
      #expect(try spool.lastFailure("partial/job")["code"] == code)
      try spool.makeDue("job")
    }
    #expect(spool.length("partial/job.part") == 6000)
    isThere.open()
    #expect(try await spoolrun("--once", spool.root).status == .exited(0), "\(spool.listing(of: "job"))")
    #expect(digest(try spool.payload("data")) == digest(payload))
    #expect(right.requests.last?.rangeStart != nil && wrong.requests.count == asked)
  }

  /// A mirror that is wrong twice in the same way says nothing of one that was not reached.
  @Test func aWrongMirrorDoesNotEndAJobWhoseOtherMirrorIsAway() async throws {
    let isThere = try Gate()
    let wrong = try ScriptedServer { try Origin(bytes: previous, etag: nil).answer($0, $1) }
    let right = try ScriptedServer { request, reply in
      guard isThere.isOpen else { return try reply.reset() }
      try Origin(etag: nil).answer(request, reply)
    }
    let spool = try TemporarySpool()
    let urls = [wrong, right].map { "url: \($0.url("/data"))\n" }.joined()
    try spool.drop("job", urls + "crc32: \(hex8(independentCRC32(payload)))\n")
    for _ in 1...2 {
      #expect(try await spoolrun("--once", spool.root).status == .exited(75))
      try spool.makeDue("job")
    }
    isThere.open()
    #expect(try await spoolrun("--once", spool.root).status == .exited(0))
    #expect(digest(try spool.payload("data")) == digest(payload), "\(spool.listing(of: "job"))")
  }

  /// Without a validator nothing tells what the next piece would be of: it isn't asked for, and bytes from 0 are not
  /// taken for it.
  @Test func aPieceWithoutAValidatorIsNotGoneOnWith() async throws {
    let gate = try Gate()
    let server = try ScriptedServer { request, reply in
      let head = ["Content-Range: bytes 0-\(n - 1)/\(n)"]
      switch (request.rangeStart, request.nth) {
      case (nil, _): try reply.respond("200 OK", body: payload)
      case (_, 1):
        try reply.head("206 Partial Content", head + ["Transfer-Encoding: chunked"])
        try reply.send(latin1Bytes("\(String(4000, radix: 16))\r\n") + payload[..<4000] + latin1Bytes("\r\n0\r\n\r\n"))
      default:
        try reply.head("206 Partial Content", head + ["Content-Length: \(n)"])
        try reply.send(payload[..<(n - 4000)])
        try reply.stall(until: gate)
      }
    }
    let spool = try await fetch([server.url("/data")], "connections: 4\n")
    gate.open()
    #expect(digest(try spool.payload("data")) == digest(payload), "\(spool.listing(of: "job"))")
  }
}
