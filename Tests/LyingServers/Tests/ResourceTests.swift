import Testing
import TestSupport

@testable import LyingServer

/// What an ETag is of: two resources that share one are never joined (RFC 9110 section 8.8.1; nginx makes it of time
/// and size).
@Suite struct ResourceTests {
  private static let half = n / 2
  /// Of the same length as the payload, with the same ETag, and with no byte in common.
  private static let twin = payload.map { $0 ^ 0xFF }

  private func text(_ spool: TemporarySpool, _ result: CommandResult) -> Comment {
    "\(result)\n\(spool.listing(of: "job"))"
  }

  /// `latest` leads to another file when the job goes on.
  @Test(arguments: ["", "crc32: \(hex8(independentCRC32(twin)))\n"])
  func aRedirectLeadsElsewhere(lines: String) async throws {
    let server = try ScriptedServer { request, reply in
      switch request.target {
      case "/latest":
        try reply.respond("302 Found", ["Location: \(request.nth == 1 ? "/1.0" : "/1.1")"], body: [])
      case "/1.0": try Origin().answerAndCut(request, reply, after: Self.half)
      default: try Origin(bytes: Self.twin).answer(request, reply)
      }
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/latest"))\noutput: data\n\(lines)")
    for _ in 1...3 where !spool.places(of: "job").contains("done/job") {
      _ = try await spoolrun("--once", spool.root)
      if spool.places(of: "job") == ["partial/job"] { try spool.makeDue("job") }
    }
    #expect(digest(try spool.payload("data")) == digest(Self.twin), "\(spool.listing(of: "job"))")
  }

  /// The URL is edited between hold and release: another path is another file; another query on the same path is a link
  /// that was signed anew.
  @Test(arguments: [("/b", "plain"), ("/a?sig=2", "range \(resumePoint(after: half)) if \(v1)")])
  func theURLIsEdited(edited: String, ask: String) async throws {
    let server = try ScriptedServer { request, reply in
      if request.target == "/b" { return _ = try Origin(bytes: Self.twin).answer(request, reply) }
      if request.target == "/a?sig=1" {
        if request.nth > 1 { return try reply.respond("500 Internal Server Error", body: []) }
        return try Origin().answerAndCut(request, reply, after: Self.half)
      }
      try Origin().answer(request, reply)
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/a?sig=1"))\noutput: data\n")
    _ = try await spoolrun("--once", spool.root)
    if spool.places(of: "job") == ["partial/job"] {
      let job = String(decoding: try readFile(spool.path("partial/job")), as: UTF8.self)
      let text = job.replacing("url: \(server.url("/a?sig=1"))", with: "url: \(server.url(edited))", maxReplacements: 1)
      try writeFile(spool.path("partial/job"), Array(text.utf8))
      try spool.makeDue("job")
    }
    let result = try await spoolrun("--once", spool.root)
    let isOther = edited == "/b"
    #expect(digest(try spool.payload("data")) == digest(isOther ? Self.twin : payload), text(spool, result))
    #expect(server.requests(for: edited).map(LyingServer.ask).last == ask, text(spool, result))
  }

  /// An odd file is not believed at first. The second time it is, and the old data is still there for a person. A
  /// portal's page, which has no validator, never is.
  @Test(arguments: [true, false]) func anotherKind(hasValidator: Bool) async throws {
    let page = Array("<html>Please log in</html>".utf8)
    let fields = ["Content-Type: text/html"] + (hasValidator ? ["ETag: \"page\""] : [])
    let server = try ScriptedServer { request, reply in
      if request.nth > 1 { return try reply.respond("200 OK", fields, body: page) }
      try Origin(fields: ["Content-Type: application/zip"]).answer(request, reply, limit: Self.half)
      try reply.reset()
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\n")
    var result = try await spoolrun("--once", "--verbose", spool.root)
    #expect(spool.places(of: "job") == ["partial/job"] && spool.payloads.isEmpty, text(spool, result))
    let failure = try spool.lines("partial/job").last { $0.key == "failed" }
    #expect(failure?["code"] == "other-kind" && failure?["class"] == "temporary", text(spool, result))
    #expect(try readFile(spool.path("partial/job.part")) == Array(payload[..<Self.half]))

    try spool.makeDue("job")
    result = try await spoolrun("--once", "--verbose", spool.root)
    guard hasValidator else {
      #expect(try spool.lastFailure("partial/job")["code"] == "other-kind" && spool.payloads.isEmpty)
      #expect(try readFile(spool.path("partial/job.part")) == Array(payload[..<Self.half]))
      return
    }
    #expect(try spool.payload("data") == page, text(spool, result))
    #expect(try readFile(spool.path("failed/job.part")) == Array(payload[..<Self.half]), text(spool, result))
    #expect(result.errors.contains("set-aside"), text(spool, result))
  }

  /// When the network is well again, the job goes on where it was.
  @Test func afterThePortal() async throws {
    let server = try ScriptedServer { request, reply in
      switch request.nth {
      case 1:
        try Origin().answer(request, reply, limit: Self.half)
        try reply.reset()
      case 2: try reply.respond("200 OK", ["Content-Type: text/html"], body: Array("<html>".utf8))
      default: try Origin().answer(request, reply)
      }
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\n")
    _ = try await spoolrun("--once", spool.root)
    try spool.makeDue("job")
    let result = try await spoolrun("--once", spool.root)
    #expect(digest(try spool.payload("data")) == digest(payload), text(spool, result))
    #expect(server.requests.map(ask).last == "range \(resumePoint(after: Self.half)) if \(v1)", text(spool, result))
  }

  /// A file that is refused for good: twice more where the job has bytes of it, at once where it has none.
  @Test(arguments: [(half, 3), (0, 1)])
  func refusals(length: Int, attempts: Int) async throws {
    let server = try ScriptedServer { _, reply in try reply.respond("404 Not Found", body: []) }
    let spool = try TemporarySpool()
    try spool.addPartial(
      "job", job: "url: \(server.url("/data"))\n", facts: .strong, part: Array(payload.prefix(length)))
    for _ in 1...4 where spool.places(of: "job") == ["partial/job"] {
      try spool.makeDue("job")
      _ = try await spoolrun("--once", spool.root)
    }
    let failures = try spool.lines("failed/job").filter { $0.key == "failed" }
    #expect(failures.count == attempts && failures.allSatisfy { $0["code"] == "http-404" })
    if length > 0 { #expect(try readFile(spool.path("partial/job.part")).count == length, "its data stays") }
  }

  /// The whole comes beside the data where ranges lead nowhere; what was there stays until it is shorter.
  @Test func uselessRangesKeepTheData() async throws {
    let server = try ScriptedServer { request, reply in
      guard request.rangeStart == nil else {
        return try reply.respond(
          "206 Partial Content", ["Content-Type: multipart/byteranges; boundary=B"], body: [0x0A])
      }
      try Origin().answer(request, reply, limit: 1000)
      try reply.reset()
    }
    let spool = try TemporarySpool()
    let data = Array(payload.prefix(Self.half))
    try spool.addPartial("job", job: "url: \(server.url("/data"))\n", facts: .strong, part: data)
    let result = try await spoolrun("--once", spool.root)
    #expect(spool.places(of: "job") == ["partial/job"], text(spool, result))
    #expect(try readFile(spool.path("partial/job.part")) == data, text(spool, result))
    #expect(spool.names("tmp") == [])
  }

  /// The receipt admits what nothing proves; a declared size proves it.
  @Test(arguments: [("", "length"), ("size: \(n)\n", nil)] as [(String, String?)])
  func unprovenLength(lines: String, unproven: String?) async throws {
    let server = try ScriptedServer { _, reply in
      try reply.head("200 OK", ["Connection: close"])
      try reply.send(payload)
      try reply.finish()
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\n\(lines)")
    let result = try await spoolrun("--once", spool.root)
    #expect(digest(try spool.payload("data")) == digest(payload), text(spool, result))
    for key in ["verified", "done"] {
      #expect(try spool.lines("done/job").last { $0.key == key }?["unproven"] == unproven, text(spool, result))
    }
    for (command, words) in [("verify", "unproven=length"), ("status", "perhaps incomplete")] {
      let shown = try await spoolrun(command, "--spool", spool.root)
      #expect(shown.status == .exited(0) && shown.output.contains(words) == (unproven != nil), "\(shown)")
    }
  }
}
