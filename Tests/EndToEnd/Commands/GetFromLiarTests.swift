import Glibc
import TestSupport
import Testing

/// `spoolrun get` from servers that lie: the exit status, and the file in the person's directory.
@Suite struct GetFromLiarTests: GetScene {
  let home: TemporaryDirectory

  init() throws { home = try Self.makeHome() }

  /// Answers each request with the next script; the last one answers all that follow.
  private func scripted(_ scripts: [@Sendable (ServerRequest, Reply) throws -> Void]) throws -> ScriptedServer {
    try ScriptedServer { request, reply in
      try scripts[min(request.nth, scripts.count) - 1](request, reply)
    }
  }

  private static let middle = halfwayBody.count / 2
  private static let other = halfwayBody.map { ~$0 }

  /// Announces all of it, and closes the connection in the middle.
  private static let cut: @Sendable (ServerRequest, Reply) throws -> Void = { _, reply in
    try reply.send(latin1Bytes("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: \(halfwayBody.count)\r\n\r\n"))
    try reply.send(halfwayBody[..<middle])
    try reply.finish()
  }

  private static let whole: @Sendable (ServerRequest, Reply) throws -> Void = { request, reply in
    guard let start = request.rangeStart else { return try reply.respond("200 OK", ["ETag: \"1\""], body: halfwayBody) }
    try reply.respond(
      "206 Partial Content",
      ["ETag: \"1\"", "Content-Range: bytes \(start)-\(halfwayBody.count - 1)/\(halfwayBody.count)"],
      body: Array(halfwayBody[start...]))
  }

  @Test func `a transfer that is cut goes on at once, and one that is cut always is status 75`() async throws {
    let once = try scripted([Self.cut, Self.whole])
    // By one connection: several may come where the server's thread stands still.
    try await get("--connections", "1", once.url("/a")).exits(0)
    #expect(once.requests.map(\.rangeStart) == [nil, resumePoint(after: Self.middle)])
    #expect(try bytes("a") == halfwayBody)

    let always = try scripted([Self.cut, { _, reply in try reply.finish() }])
    try await get("--once", always.url("/b")).exits(75, saying: "b: ")
    #expect(names(in: here) == ["a"], "nothing of it has its name")
  }

  @Test func `of a file that changes meanwhile only the new version comes`() async throws {
    let server = try scripted([
      Self.cut, { _, reply in try reply.respond("200 OK", ["ETag: \"2\""], body: Self.other) },
    ])
    try await get(server.url("/a")).exits(0)
    #expect(try bytes("a") == Self.other)
    #expect(server.requests[1].value("if-range") == "\"1\"")
  }

  /// Another start, another total, another version, and bytes of another file.
  @Test(arguments: [
    "Content-Range: bytes 0-%/*\r\nETag: \"1\"", "Content-Range: bytes @-%/99999999\r\nETag: \"1\"",
    "Content-Range: bytes @-%/#\r\nETag: \"2\"",
  ])
  func `a 206 that lies is not joined to what is there`(head: String) async throws {
    let lie: @Sendable (ServerRequest, Reply) throws -> Void = { request, reply in
      guard let start = request.rangeStart else { return try Self.whole(request, reply) }
      let fields = head.replacing("@", with: "\(start)").replacing("%", with: "\(halfwayBody.count - 1)")
        .replacing("#", with: "\(halfwayBody.count)")
      try reply.respond(
        "206 Partial Content", fields.split(separator: "\r\n").map(String.init), body: Array(Self.other[start...]))
    }
    let server = try scripted([Self.cut, lie])
    var result = try await get("--once", server.url("/a"))
    // The same command goes on, as the message says.
    for _ in 0..<3 where result.status == .exited(75) {
      #expect(names(in: here) == [], "\(result)")
      result = try await get("--once", server.url("/a"))
    }
    #expect(result.status == .exited(0), "\(result)")
    #expect(try bytes("a") == halfwayBody)
  }

  @Test func `what is interrupted, and has changed when the same command comes, is one version`() async throws {
    let gate = try Gate()
    let server = try ScriptedServer { request, reply in
      if request.nth > 1 { return try reply.respond("200 OK", ["ETag: \"2\""], body: Self.other) }
      try reply.send(latin1Bytes("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: \(halfwayBody.count)\r\n\r\n"))
      try reply.send(halfwayBody[..<Self.middle])
      try reply.stall(until: gate)
    }
    let command = try start(["--timeout", "1h", server.url("/a")])
    try await waitUntil("half of it is there") {
      let spool = "\(spool)/partial"
      return names(in: spool).contains {
        $0.hasSuffix(".part") && fileStatus("\(spool)/\($0)").map { Int($0.st_size) } == Self.middle
      }
    }
    try await command.stop(SIGINT).exits(75)
    gate.open()
    #expect(names(in: here) == [])
    try await get(server.url("/a")).exits(0)
    #expect(try bytes("a") == Self.other)
  }
}
