import Glibc
import TestSupport
import Testing

/// What a job asks for, and what it gets: each key through a real run.
@Suite struct RequestTests {
  private let server: ScriptedServer
  private let spool: TemporarySpool

  init() throws { (server, spool) = (try simpleServer(), try TemporarySpool()) }

  @Test(.enabled("needs rhash") { try await Need.program("rhash").isMet() })
  func bareURL() async throws {
    try spool.write("new/a", "\(server.url("/a.bin?x=1"))\n")
    try await spool.once(exits: 0)
    #expect(try spool.payload("a.bin") == Array("payload\n".utf8))
    #expect((fileStatus(spool.path("files/a.bin"))?.st_mode ?? 0) & 0o777 == 0o600)
    for state in ["new", "cur", "partial", "failed", "tmp"] { #expect(TestSupport.names(in: spool.path(state)) == []) }
    let lines = try spool.lines("done/a")
    #expect(lines.suffix(2).map(\.key) == ["verified", "done"])
    let sum = hex8(independentCRC32(Array("payload\n".utf8)))
    #expect(lines[lines.count - 2]["size"] == "8" && lines[lines.count - 2]["crc32"] == sum)
    #expect(lines.last?["output"] == "a.bin" && lines.last?["bytes-fetched"] == "8" && lines.last?["attempts"] == "1")
    let rhash = try await runTool(["/usr/bin/rhash", "--crc32", "--printf=%C", spool.path("files/a.bin")]).output
    #expect(rhash == sum)
    #expect(server.requests.map(\.target) == ["/a.bin?x=1"])
  }

  @Test func mirrorsInOrder() async throws {
    try spool.drop(
      "a", "url: \(server.url("/404"))\nurl: \(server.url("/500"))\nurl: \(server.url("/good"))\noutput: x\n")
    try await spool.once(exits: 0)
    #expect(server.requests.map(\.target) == ["/404", "/500", "/good"])
    #expect(try spool.lines("done/a").last?["attempts"] == "1")
  }

  @Test func overwrite() async throws {
    for (name, text) in [("no", ""), ("said-no", "overwrite: no\n"), ("yes", "overwrite: yes\n")] {
      try spool.write("files/\(name)", [9])
      try spool.drop(name, "url: \(server.url("/x"))\noutput: \(name)\n\(text)")
    }
    try await spool.once(exits: 1)
    #expect(try spool.payload("no") == [9] && spool.payload("said-no") == [9])
    #expect(try spool.payload("yes") == Array("payload\n".utf8))
    #expect(try spool.lastFailure("failed/no")["code"] == "output-exists")
    #expect(server.requests.count == 1, "what cannot be published is not fetched")
  }

  /// A file that already is what the job asks for: done, without a request.
  @Test(arguments: [("", true), ("size: 8\n", true), ("size: 9\n", false)])
  func existing(more: String, isDone: Bool) async throws {
    try spool.write("files/x", "payload\n")
    try spool.drop("a", "url: \(server.url("/x"))\ncrc32: \(hex8(independentCRC32(Array("payload\n".utf8))))\n\(more)")
    try await spool.once(exits: isDone ? 0 : 1)
    #expect(server.requests.isEmpty)
    if isDone {
      #expect(try spool.lines("done/a").last?["existing"] == "yes")
    } else {
      #expect(try spool.lastFailure("failed/a")["code"] == "output-exists")
    }
  }

  @Test func attempts() async throws {
    try spool.drop("a", "url: \(server.url("/500"))\nattempts: 3\n")
    for round in 1...3 {
      try await spool.once(exits: round < 3 ? 75 : 1)
      if round < 3 { try spool.makeDue("a") }
    }
    #expect(spool.places(of: "a") == ["failed/a"] && server.requests.count == 3)
    let last = try spool.lastFailure("failed/a")
    #expect(last["attempt"] == "3" && last["class"] == "temporary" && last["retry"] == nil)
  }

  @Test func expiry() async throws {
    try spool.drop("past", "url: \(server.url("/a"))\nexpires: 2001-01-01\n")
    try spool.drop("future", "url: \(server.url("/b"))\nexpires: 2099-01-01T00:00:00Z\n")
    try await spool.once(exits: 1)
    #expect(try spool.lastFailure("failed/past")["code"] == "expired")
    #expect(spool.names("done") == ["future"] && server.requests.map(\.target) == ["/b"])
  }

  /// The transfer stalls; the job's own idle time, or the total one, ends it.
  @Test(arguments: [("1s", "stalled"), ("60s 1s", "timeout")])
  func timeouts(timeout: String, code: String) async throws {
    let server = try ScriptedServer { _, reply in try reply.stall() }
    try await replay {
      let spool = try TemporarySpool()
      try spool.drop("a", "url: \(server.url("/a"))\ntimeout: \(timeout)\nattempts: 1\n")
      let result = try await spoolrun("--once", spool.root)
      // The idle time is for a connect as well, which a machine that stands still does not end in time.
      if (try? spool.lastFailure("partial/a"))?["code"] == "connect" { return false }
      #expect(result.status == .exited(1))
      #expect(try spool.lastFailure("failed/a")["code"] == code, "\(spool.listing(of: "a"))")
      return true
    }
  }

  @Test func defaultsAreInherited() async throws {
    try spool.write(
      "defaults", "# for all\nattempts: 1\nheader: X-One: default\nheader: X-Two: default\noverwrite: yes\n")
    try spool.write("files/own", [9])
    try spool.drop("plain", "url: \(server.url("/plain"))\n")
    try spool.drop("own", "url: \(server.url("/own"))\nheader: X-One: own\noverwrite: no\n")
    try spool.drop("own2", "url: \(server.url("/own2"))\nheader: X-One: own\n")
    try spool.drop("none", "url: \(server.url("/none"))\nheader: x-one:\nuser-agent: me/1\nreferer: http://page/\n")
    try spool.drop("busy", "url: \(server.url("/500"))\n")
    try await spool.once(exits: 1)
    #expect(server.requests(for: "/plain").first?.value("x-two") == "default")
    let own = try #require(server.requests(for: "/own2").first)
    #expect(own.values("x-one") == ["own"] && own.values("x-two") == ["default"], "its own replaces that of its name")
    let none = try #require(server.requests(for: "/none").first)
    #expect(none.value("x-one") == nil && none.value("x-two") == "default")
    #expect(none.value("user-agent") == "me/1" && none.value("referer") == "http://page/")
    #expect(try spool.payload("own") == [9])
    #expect(spool.places(of: "busy") == ["failed/busy"], "one attempt")
  }

  /// A header that names its host is for that one alone, and no redirect takes it along, not even to that host.
  @Test func headersOfAHost() async throws {
    let server = try ScriptedServer { request, reply in
      guard let name = request.target.split(separator: "/").first, name.hasPrefix("to-") else {
        return try reply.respond("200 OK", body: [1])
      }
      let place = (request.value("host") ?? "").split(separator: ":")
      try reply.respond("302 Found", ["Location: http://\(name.dropFirst(3)):\(place.last ?? "")/end"], body: [])
    }
    try spool.write("defaults", "header@localhost: X-Token: s3cret\nheader: X-All: yes\n")
    let local = server.url("").replacing("127.0.0.1", with: "LocalHost")
    try spool.drop("own", "\(local)/own\n")
    try spool.drop("other", "\(server.url("/other"))\n")
    try spool.drop("stays", "url: \(local)/to-localhost\noutput: stays\n")
    try spool.drop("leaves", "url: \(local)/to-127.0.0.1\noutput: leaves\n")
    try spool.drop("comes", "url: \(server.url("/to-localhost/"))\noutput: comes\n")
    let result = try await spoolrun("-v", "--once", "--jobs", "1", spool.root)
    #expect(result.exitStatus == 0 && !result.errors.contains("s3cret"), "\(result)")
    let told = server.requests.map { request in
      let host = request.value("host")?.lowercased().split(separator: ":")[0] ?? ""
      return "\(host) \(request.target) \(request.value("x-token") ?? "-")"
    }
    #expect(
      Set(told) == [
        "localhost /own s3cret", "127.0.0.1 /other -", "localhost /to-localhost s3cret", "localhost /end s3cret",
        "localhost /to-127.0.0.1 s3cret", "127.0.0.1 /end -", "127.0.0.1 /to-localhost/ -", "localhost /end -",
      ])
  }

  @Test(.enabled("needs /dev/shm to be a file system of its own") { try await Need.otherFileSystem.isMet() })
  func anOutputRootElsewhere() async throws {
    let directory = try TemporaryDirectory(in: TemporaryDirectory.otherFileSystem)
    defer { withExtendedLifetime(directory) {} }
    let shared = directory.path
    try spool.drop("a", "url: \(server.url("/a"))\noutput: d/a\n")
    try await spoolrun("--once", "-d", shared, spool.root).exits(0)
    #expect(try readFile("\(shared)/d/a") == Array("payload\n".utf8))
    #expect(spool.names("partial") == [] && spool.payloads == [])
    try await spoolrun("verify", "--spool", spool.root).exits(0)
  }

  /// A server that cuts each connection doesn't fill the journal: an answer like the one before is no news.
  @Test func cutsLeaveOneResponse() async throws {
    let server = try ScriptedServer { request, reply in
      let start = request.rangeStart ?? 0
      let range = start > 0 ? ["Content-Range: bytes \(start)-\(halfwayBody.count - 1)/\(halfwayBody.count)"] : []
      try reply.head(
        start > 0 ? "206 Partial Content" : "200 OK",
        ["ETag: \"v1\"", "Content-Length: \(halfwayBody.count - start)"] + range)
      try reply.send(halfwayBody[start..<min(start + 100_000, halfwayBody.count)])
      try reply.finish()
    }
    try spool.drop("a", "url: \(server.url("/a"))\n")
    try await spool.once(exits: 0)
    #expect(try spool.payload("a") == halfwayBody && server.requests.count < 40)
    let lines = try spool.lines("done/a")
    #expect(lines.map(\.key).filter { $0 != "checkpoint" } == ["url", "started", "response", "verified", "done"])
  }
}
