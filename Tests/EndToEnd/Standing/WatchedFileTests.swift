import Glibc
import TestSupport
import Testing

/// `entries: file`: one file that is kept current.
@Suite struct WatchedFileTests {
  private let server: FeedServer
  private let spool: TemporarySpool

  init() throws { (server, spool) = (try FeedServer("one"), try TemporarySpool()) }

  private func order(_ more: String = "") throws {
    try spool.order("geo", "url: \(server.url("/list.mmdb"))\nevery: 1d\nentries: file\n\(more)")
  }

  private func check() async throws -> CommandResult {
    try spool.makeOrderDue("geo")
    return try await spool.once()
  }

  @Test func `it is fetched when it has changed, and a 304 moves nothing`() async throws {
    try order("output: geo/\n")
    try await spool.once(exits: 0)
    #expect(try spool.payload("geo/list.mmdb") == Array("one".utf8))
    let before = server.checks.count
    try await check().exits(0)
    #expect(server.checks.count == before + 1 && server.checks.last?.value("If-None-Match") != nil)
    server.put("two")
    let result = try await check()
    #expect(result.status == .exited(0) && result.errors == "", "\(result)")
    #expect(try spool.payload("geo/list.mmdb") == Array("two".utf8) && spool.payloads == ["geo/list.mmdb"])
    #expect(spool.names("done").count == 2 && spool.names("tmp") == [] && spool.names("partial") == [])
  }

  @Test func `who subscribes to a file as to a list is told how`() async throws {
    try spool.order("geo", "url: \(server.url("/list.mmdb"))\nevery: 1d\n")
    let result = try await spool.once()
    let reason = "neither a URL nor `key: value`; if the file itself is to be kept current: `--entries file`;"
    #expect(result.status == .exited(75) && result.errors.contains(reason), "\(result)")
  }

  @Test func `a version that is known is not fetched, whatever the server thinks of conditions`() async throws {
    let body = Array("one".utf8)
    let server = try ScriptedServer { _, reply in try reply.respond("200 OK", ["ETag: \"1\""], body: body) }
    try spool.order("geo", "url: \(server.url("/x.mmdb"))\nevery: 1d\nentries: file\noutput: here.mmdb\n")
    for _ in 0..<3 { try await check().exits(0) }
    #expect(spool.payloads == ["here.mmdb"] && spool.names("done").count == 1 && server.requests.count == 4)
    #expect(try spool.lines("standing/geo").last { $0.key == "checked" }?["entries"] == "1")
  }

  @Test func `a version that another mirror has as well is not fetched again`() async throws {
    let (one, two) = (server, try FeedServer("one"))
    let urls = [one, two].map { "url: \($0.url("/list.mmdb"))\n" }.joined()
    try spool.order("geo", "\(urls)every: 1d\nentries: file\n")
    try await spool.once(exits: 0)
    one.answer("404 Not Found")
    #expect(try await check().status == .exited(0) && spool.names("done").count == 1 && two.checks.count == 1)
    two.put("two")
    try await check().exits(0)
    #expect(try spool.payload("list.mmdb") == Array("two".utf8))
  }

  @Test func `a server that goes back to an earlier version is followed`() async throws {
    try order()
    for text in ["one", "two", "one"] {
      server.put(text)
      try await check().exits(0)
      #expect(try spool.payload("list.mmdb") == Array(text.utf8))
    }
  }

  @Test func `an older version whose job was stuck does not replace a newer one`() async throws {
    try spool.install("verify", "kill -9 $$")
    try order()
    try await spool.once(exits: 75)
    let old = try #require(spool.names("partial").first { !$0.hasSuffix(".part") })
    #expect(try readFile(spool.path("partial/\(old).part")) == Array("one".utf8))
    try #require(unlink(spool.path("hooks/verify")) == 0)
    server.put("two")
    _ = try await check()
    #expect(try spool.payload("list.mmdb") == Array("two".utf8))
    try spool.makeDue(old)
    let result = try await spool.once()
    #expect(try result.status == .exited(0) && spool.payload("list.mmdb") == Array("two".utf8), "\(result)")
  }

  @Test func `without a version it is fetched each time`() async throws {
    server.dropValidators()
    try order()
    for text in ["one", "two"] {
      server.put(text)
      // The time of the check is the version then, in seconds.
      try await check().exits(0)
      let checked = time(nil)
      try await waitUntil("the next second") { time(nil) > checked }
      #expect(try spool.payload("list.mmdb") == Array(text.utf8))
    }
  }

  @Test func `the beginning of time is no version`() async throws {
    // The check asks for it, and its job.
    let server = try ScriptedServer { request, reply in
      let fields = ["Last-Modified: Thu, 01 Jan 1970 00:00:01 GMT"]
      try reply.respond("200 OK", fields, body: Array((request.nth <= 2 ? "one" : "two").utf8))
    }
    try spool.order("geo", "url: \(server.url("/x.mmdb"))\nevery: 1d\nentries: file\noutput: x.mmdb\n")
    for text in ["one", "two"] {
      try await check().exits(0)
      let checked = time(nil)
      try await waitUntil("the next second") { time(nil) > checked }
      #expect(try spool.payload("x.mmdb") == Array(text.utf8))
    }
  }

  @Test func `what fails leaves the last version`() async throws {
    try order()
    _ = try await spool.once()
    for status in ["404 Not Found", "500 Broken"] {
      server.answer(status)
      _ = try await check()
      #expect(try spool.payload("list.mmdb") == Array("one".utf8))
      #expect(spool.names("standing") == ["geo"])
    }
    server.answer("200 OK")
    server.put("two")
    try await check().exits(0)
    #expect(try spool.payload("list.mmdb") == Array("two".utf8))
  }

  @Test(arguments: ["signature: inline", "size: 5", "crc32: 00000000"])
  func `what does not go with it is refused`(line: String) async throws {
    try spool.order("geo", "url: http://127.0.0.1:9/x\nevery: 1d\nentries: file\n\(line)\n")
    _ = try await spool.once()
    #expect(spool.names("failed") == ["geo"])
    let list = try await spoolrun(
      "subscribe", "--spool", spool.root, "--entries", "rss", "-o", "x.bin", "http://h/feed")
    #expect(list.exitStatus == 64 && list.errors.contains("is a directory"), "only a file has a path: \(list)")
  }
}
