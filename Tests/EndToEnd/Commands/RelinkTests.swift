import Glibc
import TestSupport
import Testing

/// `spoolrun url`, which gives a job another link.
@Suite struct RelinkTests {
  private static let half = payload.count / 2

  /// Serves `payload` or its twin by the target's first part, with ranges; `/…/cut` drops the connection halfway.
  private static func server(etags: [String: String] = [:]) throws -> ScriptedServer {
    let twin = payload.map { $0 ^ 0xFF }
    return try ScriptedServer { request, reply in
      if request.target.hasPrefix("/gone") { return try reply.respond("403 Forbidden", body: []) }
      let isTwin = request.target.hasPrefix("/twin") || request.target.hasPrefix("/unsized")
      let bytes = isTwin ? twin : request.target.hasPrefix("/longer") ? twin + [1] : payload
      let etag = etags.first { request.target.hasPrefix($0.key) }?.value ?? "\"1\""
      let start = request.rangeStart ?? 0
      let isPart = start > 0 && (request.value("If-Range") ?? etag) == etag
      let body = isPart ? bytes[start...] : bytes[...]
      let total = request.target.hasPrefix("/unsized") ? "*" : "\(bytes.count)"
      let range = isPart ? ["Content-Range: bytes \(start)-\(bytes.count - 1)/\(total)"] : []
      let fields = (etag.isEmpty ? [] : ["ETag: \(etag)"]) + range + ["Content-Length: \(body.count)"]
      try reply.head(isPart ? "206 Partial Content" : "200 OK", fields)
      guard request.target.hasSuffix("cut?sig=1"), request.nth == 1 else { return try reply.send(body) }
      try reply.send(body[..<(Self.half)])
      try reply.stall()
    }
  }

  /// A spool with job `a` in `failed`, which has the first half of the file at `/one/cut`.
  private func begun(_ server: ScriptedServer, _ more: String = "") async throws -> TemporarySpool {
    let spool = try TemporarySpool()
    try spool.drop("a", "# mine\n\nurl: \(server.url("/one/cut?sig=1"))\n\(more)timeout: 1h\n")
    let worker = try startSpoolrun(["--once", spool.root])
    try await waitUntil("half of it") { spool.length("partial/a.part") == Self.half }
    try await worker.stop()
    try spool.move("partial/a", "failed/a")
    return spool
  }

  private func url(_ spool: TemporarySpool, _ arguments: String...) async throws -> CommandResult {
    try await spoolrun(["url", "--spool", spool.root] + arguments)
  }

  @Test(arguments: ["new", "partial", "hold", "failed"])
  func whereverTheJobIs(state: String) async throws {
    let spool = try TemporarySpool()
    let old = "# mine\nhttp://h/d/x.iso?sig=1\n\nsize: 5\nurl: http://i/x.iso\nresolve: s3 b/k\n"
    try spool.write("\(state)/a", old)
    let result = try await url(spool, "-v", "a", "http://h/y?sig=2", "http://i/y")
    let place = state == "hold" ? "hold/a" : "new/a"
    #expect(result.status == .exited(0) && result.output == "\(state)/a -> \(place)\n", "\(result)")
    let text = try spool.text(place)
    #expect(text == "url: http://h/y?sig=2\nurl: http://i/y\noutput: x.iso\n# mine\n\nsize: 5\n", "the output stays")
    #expect(spool.places(of: "a") == [place] && spool.names("tmp") == [])
  }

  /// The last part of a list's URL is no output. Of one file it is, and stays.
  @Test(arguments: [
    ("output: pods/\n", "output: pods/\n", ""), ("", "", ""),
    ("entries: file\noutput: d/\n", "entries: file\n", "output: d/feed.xml\n"),
  ])
  func aSubscription(lines: String, kept: String, pinned: String) async throws {
    let (server, spool) = (try FeedServer(podcast(1...2)), try TemporarySpool())
    try spool.order("pod", "url: http://127.0.0.1:1/feed.xml\nevery: 6h\n\(lines)")
    let new = server.url("/list.xml")
    try await url(spool, "pod", new).exits(0)
    let text = try spool.text("standing/pod")
    #expect(text == "url: \(new)\n\(pinned)every: 6h\n\(kept)")
    let result = try await spool.once()
    #expect(result.status == .exited(0) && spool.payloads.count == 1, "\(result)")
  }

  @Test func whatCannotBe() async throws {
    let spool = try TemporarySpool()
    try spool.write("done/a", "http://h/x\n")
    try spool.write("new/torn", "http://h/x\nsize: 1")
    for name in ["failed/b", "hold/b", "failed/c", "new/c"] {
      try spool.write(name, "http://h/x\n")
    }
    for (arguments, status, words) in [
      (["a", "http://h/y"], 1, "it is done/a"), (["z", "http://h/y"], 1, "no such job"),
      (["torn", "http://h/y"], 1, "no newline"), (["b", "http://h/y"], 1, "several jobs"),
      (["failed/c", "http://h/y"], 1, "has the same name"), (["b", "h/y?t0ken"], 64, "no scheme"),
      (["b", "ftp://h/y"], 64, "not enabled"), (["b"], 64, "missing"), (["../a", "http://h/y"], 1, "no such job"),
    ] as [([String], Int32, String)] {
      let result = try await spoolrun(["url", "--spool", spool.root] + arguments)
      #expect(result.exitStatus == status && result.errors.contains(words), "\(result)")
      #expect(!result.errors.contains("t0ken"))
    }
    #expect(
      spool.names("failed") == ["b", "c"] && spool.names("hold") == ["b"] && spool.names("new") == ["c", "torn"])
  }

  /// By the rules for resources: another query with the same strong ETag goes on; anything else is fetched anew, unless
  /// a person says that it is the same file, or a digest proves it.
  @Test(
    arguments: [
      ("/one/cut?sig=2", [], "", true), ("/two", [], "", false), ("/two", ["--same"], "", true),
      ("/two", [], "crc32: \(hex8(independentCRC32(payload)))\n", true),
      // Another server's validator, or none.
      ("/other", [], "crc32: \(hex8(independentCRC32(payload)))\n", true),
      ("/plain", [], "crc32: \(hex8(independentCRC32(payload)))\n", true),
      ("/twin", [], "", false), ("/longer", ["--same"], "", false), ("/other", ["--same"], "", false),
      // The same validator, but no size that the word could be checked by.
      ("/unsized", ["--same"], "", false),
    ] as [(String, [String], String, Bool)])
  func whatTheDataGoesOnWith(path: String, options: [String], more: String, goesOn: Bool) async throws {
    let server = try Self.server(etags: ["/other": "\"2\"", "/plain": ""])
    let spool = try await begun(server, more)
    let before = server.requests.count
    try await spoolrun(["url", "--spool", spool.root] + options + ["a", server.url(path)]).exits(0)
    try await spool.once(exits: 0)
    let twin = payload.map { $0 ^ 0xFF }
    let right = ["/twin", "/unsized"].contains(path) ? twin : path == "/longer" ? twin + [1] : payload
    #expect(try spool.payload("cut") == right, "no splice")
    #expect(server.requests[before].rangeStart == resumePoint(after: Self.half), "it is asked for the rest")
    let fetched = try spool.lines("done/a").last { $0.key == "done" }?["bytes-fetched"].flatMap { Int($0) } ?? 0
    // Counted since the job came through new.
    #expect((fetched < payload.count) == goesOn, "\(fetched) bytes")
    let word = try #require(try spool.lines("done/a").last { $0.key == "relinked" })
    #expect(word["same"] == (options.isEmpty ? nil : "yes"))
    #expect(word["url"] == server.url(String(path.prefix { $0 != "?" })), "without the query")
  }

  /// The word is of no use without something to check it by, and then nothing happens.
  @Test func aWordThatCannotBeChecked() async throws {
    let server = try Self.server(etags: ["/one": ""])
    let spool = try await begun(server)
    try await url(spool, "--same", "a", server.url("/two")).exits(1, saying: "no strong validator")
    #expect(spool.places(of: "a") == ["failed/a"])
  }

  /// The job stops, and goes on from the new link.
  @Test func aRunningJob() async throws {
    let server = try Self.server()
    let spool = try TemporarySpool()
    try spool.drop("a", "url: \(server.url("/one/cut?sig=1"))\ntimeout: 1h\n")
    let worker = try startSpoolrun(["-v", spool.root])
    try await waitUntil("half of it") { spool.length("partial/a.part") == Self.half }
    let result = try await url(spool, "-v", "a", server.url("/one/cut?sig=2"))
    #expect(result.status == .exited(0) && result.output.hasSuffix(" -> new/a\n"), "\(result)")
    try await waitUntil("it is done") { spool.places(of: "a") == ["done/a"] }
    try await worker.stop()
    #expect(try spool.payload("cut") == payload)
    let rest = payload.count - resumePoint(after: Self.half)
    #expect(try spool.lines("done/a").last { $0.key == "done" }?["bytes-fetched"] == "\(rest)")
  }

  /// The same by hand, as the manual has it.
  @Test func theRecipeByHand() async throws {
    let server = try Self.server()
    let spool = try await begun(server)
    let recipe = """
      mv failed/a hold/a
      sed -i 's|sig=1|sig=2|' hold/a
      mv hold/a new/a
      """
    try await runTool(["/bin/sh", "-euc", recipe], directory: spool.root)
    try await spool.once(exits: 0)
    #expect(try spool.payload("cut") == payload)
    let rest = payload.count - resumePoint(after: Self.half)
    #expect(try spool.lines("done/a").last { $0.key == "done" }?["bytes-fetched"] == "\(rest)")
  }
}
