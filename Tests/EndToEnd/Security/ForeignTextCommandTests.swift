import Glibc
import TestSupport
import Testing

/// URLs and paths as strangers write them, from the command line to the disk.
@Suite struct ForeignTextCommandTests: GetScene {
  let home: TemporaryDirectory
  private let server: ScriptedServer

  init() throws {
    home = try Self.makeHome()
    // Each target has bytes of its own.
    server = try ScriptedServer { request, reply in
      if request.target == "/latin1" { return try reply.respond("302 Found", ["Location: /caf\u{E9}"], body: []) }
      try reply.respond("200 OK", ["ETag: \"1\""], body: Array(request.target.utf8))
    }
  }

  /// One letter, in two spellings.
  private static let spellings = ["\u{E9}", "e\u{301}"]
  private static let encoded = ["/%c3%a9", "/e%cc%81"]

  @Test func `get fetches each of two URLs that differ in a letter's spelling`() async throws {
    let urls = Self.spellings.map { server.url("/\($0)") }
    try await start(urls).result().exits(0)
    #expect(Set(server.requests.map(\.target)) == Set(Self.encoded))
    for (name, target) in zip(Self.spellings, Self.encoded) { #expect(try bytes(name) == Array(target.utf8)) }
  }

  @Test(arguments: [["-o", "d/"], []]) func `a blank at the end of a name is part of it`(options: [String]) async throws
  {
    try await start(options + [server.url("/x"), server.url("/x%20")]).result().exits(0)
    let directory = options.isEmpty ? "" : "d/"
    #expect(try bytes("\(directory)x") == Array("/x".utf8))
    #expect(try bytes("\(directory)x ") == Array("/x%20".utf8))
    let again = try await start(options + [server.url("/x%20")]).result()
    #expect(again.status == .exited(0) && server.requests.count == 2, "\(again)")
  }

  @Test func `a list's names keep their blanks`() async throws {
    try writeFile("\(home.path)/list", "\(server.url("/x"))\n\(server.url("/x%20"))\n")
    let spool = try TemporarySpool()
    try await spoolrun("add", "--spool", spool.root, "-o", "d/", "--from", "\(home.path)/list").exits(0)
    try await spool.once(exits: 0)
    #expect(try spool.payload("d/x") == Array("/x".utf8) && spool.payload("d/x ") == Array("/x%20".utf8))
  }

  @Test(arguments: ["url", "header", "resolve"]) func `another spelling is another job`(key: String) async throws {
    let spool = try TemporarySpool()
    if key == "resolve" { try spool.install("resolve", "echo \(server.url("/a"))") }
    for (name, letter) in zip(["a", "b"], Self.spellings) {
      let url = key == "url" ? server.url("/\(letter)") : server.url("/a")
      let line =
        ["header": "url: \(url)\nheader: X-A: \(letter)", "resolve": "resolve: \(letter)"][key] ?? "url: \(url)"
      try spool.drop(name, "\(line)\noutput: o\n")
    }
    try await spool.once(exits: 1)
    #expect(try spool.lastFailure("failed/b")["code"] == "output-exists")
  }

  @Test func `another spelling of an order's URL is another order`() async throws {
    let spool = try TemporarySpool()
    for letter in Self.spellings {
      let result = try await spoolrun("subscribe", "--spool", spool.root, "--every", "1h", server.url("/\(letter)"))
      #expect(result.status == .exited(0) && !result.errors.contains("already"), "\(result)")
    }
    #expect(spool.names("standing").count == 2)
  }

  @Test func `url keeps the output that the old URL gave`() async throws {
    let spool = try TemporarySpool()
    try spool.drop("a", "\(server.url("/\(Self.spellings[0])"))\n")
    try await spoolrun("url", "--spool", spool.root, "a", server.url("/\(Self.spellings[1])")).exits(0)
    #expect(try readFile(spool.path("new/a")).contains(Array("output: \(Self.spellings[0])\n".utf8)))
  }

  /// `status` promises a URL without its secrets, also of a job that will never start.
  @Test(arguments: [
    "url: u:s3cret@h/x", "url: http://127.0.0.1:9/x?\u{301}s3cret", "url: http://127.0.0.1:9/x#\u{200D}s3cret",
    "url: http://u:s3cret@\u{FE0F}127.0.0.1:9/x",
    "url: http://u:s3cret/\u{301}y@h/x",
  ])
  func `status shows no secret of any URL`(line: String) async throws {
    let spool = try TemporarySpool()
    try spool.drop("a", "\(line)\noutput: x\n")
    for _ in 0..<2 {
      for arguments in [["a"], [], ["--json"]] {
        let result = try await spoolrun(["status", "--spool", spool.root] + arguments)
        #expect(!(result.output + result.errors).contains("s3cret"), "\(result)")
      }
      let result = try await spoolrun("--once", "-v", spool.root)
      #expect(!(result.output + result.errors).contains("s3cret"), "\(result)")
    }
  }

  @Test func `bytes of Latin-1 in Location are encoded as they are`() async throws {
    try await get("-o", "x", server.url("/latin1")).exits(0)
    #expect(server.requests.map(\.target) == ["/latin1", "/caf%E9"])
  }
}
