import TestSupport
import Testing

@testable import LyingServer

/// A job that declares a type gets nothing else, however often it comes.
@Suite struct MediaTypeTests {
  private static let page = Array("<html>Please log in</html>".utf8)
  private static let zip = "application/zip"

  private func text(_ spool: TemporarySpool, _ result: CommandResult) -> Comment {
    "\(result)\n\(spool.listing(of: "job"))"
  }

  /// A page that looks the same each time, from the start, instead of the rest, as a range, or to several connections.
  @Test(arguments: [(0, 1, 200), (n / 2, 1, 200), (n / 2, 1, 206), (0, 4, 200), (n / 2, 4, 206)])
  func aPage(length: Int, connections: Int, status: Int) async throws {
    let server = try ScriptedServer { request, reply in
      if length > 0, request.nth == 1 {
        try Origin(fields: ["Content-Type: Application/ZIP; x=y"]).answer(request, reply, limit: length)
        return try reply.reset()
      }
      if status == 206 { return _ = try Origin(fields: ["Content-Type: text/html"]).answer(request, reply) }
      try reply.respond("200 OK", ["Content-Type: text/html", "ETag: \"page\""], body: Self.page)
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\ntype: \(Self.zip)\nconnections: \(connections)\n")
    for _ in 1...3 {
      let result = try await spoolrun("--once", spool.root)
      #expect(spool.places(of: "job") == ["partial/job"] && spool.payloads.isEmpty, text(spool, result))
      let failure = try spool.lastFailure("partial/job")
      #expect(failure["code"] == "other-kind" && failure["class"] == "temporary", text(spool, result))
      #expect(failure["expected"] == Self.zip && failure["found"] == "text/html", text(spool, result))
      if length > 0, connections == 1 {
        #expect(try readFile(spool.path("partial/job.part")) == Array(payload[..<length]))
      }
      try spool.makeDue("job")
    }
  }

  /// The right type, one of several, and none are accepted.
  @Test(arguments: ["Content-Type: application/zip", "Content-Type: IMAGE/png;a=b", "X-Other: 1"], [1, 4])
  func theRightType(field: String, connections: Int) async throws {
    let server = try ScriptedServer { request, reply in try Origin(fields: [field]).answer(request, reply) }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\ntype: \(Self.zip) image/*\nconnections: \(connections)\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(digest(try spool.payload("data")) == digest(payload), text(spool, result))
  }

  /// Who sends something that is not one type does not say that it is this one.
  @Test(arguments: [
    ["application/zip x"], ["application/zip, application/zip"], ["application/\u{1B}zip"], [""],
    ["application/zip", "text/html"],
  ])
  func noType(types: [String]) async throws {
    let server = try ScriptedServer { request, reply in
      try Origin(fields: types.map { "Content-Type: \($0)" }).answer(request, reply)
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\ntype: \(Self.zip)\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(spool.places(of: "job") == ["partial/job"] && spool.payloads.isEmpty, text(spool, result))
    #expect(try spool.lastFailure("partial/job")["code"] == "other-kind", text(spool, result))
  }

  /// The next mirror has it.
  @Test func aMirror() async throws {
    let server = try ScriptedServer { request, reply in
      let type = request.target == "/page" ? "text/html" : Self.zip
      try Origin(fields: ["Content-Type: \(type)"]).answer(request, reply)
    }
    let spool = try TemporarySpool()
    try spool.drop(
      "job", "url: \(server.url("/page"))\nurl: \(server.url("/data"))\noutput: data\ntype: \(Self.zip)\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(digest(try spool.payload("data")) == digest(payload), text(spool, result))
    #expect(server.requests.map(\.target) == ["/page", "/data"])
  }

  /// Half of a page came before the job declared a type: none of it is in the payload.
  @Test func dataFromBeforeItWasDeclared() async throws {
    let server = try ScriptedServer { request, reply in
      switch request.nth {
      case 1:
        let page = Origin(bytes: payload.map { $0 ^ 0xFF }, fields: ["Content-Type: text/html"])
        try page.answerAndCut(request, reply, after: n / 2)
      case 2: try reply.respond("425 Too Early", body: [])
      default: try Origin(fields: ["Content-Type: \(Self.zip)"]).answer(request, reply)
      }
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\n")
    _ = try await spoolrun("--once", spool.root)
    let job = try readFile(spool.path("partial/job"))
    try writeFile(spool.path("partial/job"), Array("type: \(Self.zip)\n".utf8) + job)
    try spool.makeDue("job")
    let result = try await spoolrun("--once", spool.root)
    #expect(digest(try spool.payload("data")) == digest(payload), text(spool, result))
    #expect(server.requests.map { $0.rangeStart ?? 0 } == [0, resumePoint(after: n / 2), 0], text(spool, result))
  }
}
