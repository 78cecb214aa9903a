import Glibc
import TestSupport
import Testing

/// Names that the URL or the server gives: `output: dir/` and `add --remote-name`.
@Suite struct RemoteNameTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  /// The server proposes names: by the field in the query, or by a redirect.
  private static func server() throws -> ScriptedServer {
    try ScriptedServer { request, reply in
      let parts = request.target.dropFirst().split(separator: "?", maxSplits: 1).map(String.init)
      switch parts.first {
      case "to": try reply.respond("302 Found", ["Location: /final/real%20name.iso?token=s3cret"], body: [])
      case "headless" where request.method == "HEAD" && parts.last == "cut": try reply.finish()
      case "slow":
        // Longer than it is waited for a surplus behind what is announced.
        usleep(1_300_000)
        try reply.respond("200 OK", ["Content-Disposition: attachment; filename=got.bin"], body: [])
      case "headless" where request.method == "HEAD":
        try reply.respond("\(parts.count > 1 ? parts[1] : "405") No", body: [])
      case "headless": try reply.respond("200 OK", ["Content-Disposition: attachment; filename=got.bin"], body: [1])
      case "gone": try reply.respond("404 Not Found", body: [])
      case "private" where request.value("X-Key") ?? request.value("Authorization") == nil:
        try reply.respond("403 Forbidden", body: [])
      case let path?:
        let fields = path == "named" || path == "private" ? ["Content-Disposition: \(decoded(parts[1]))"] : []
        try reply.respond("200 OK", fields, body: request.method == "HEAD" ? [] : Array("payload\n".utf8))
      case nil: try reply.respond("200 OK", body: [])
      }
    }
  }

  private static func decoded(_ text: String) -> String {
    text.replacing("%20", with: " ").replacing("%22", with: "\"")
  }

  private static func add(_ spool: TemporarySpool, _ arguments: String...) async throws -> CommandResult {
    try await spoolrun(["add", "--spool", spool.root, "--remote-name"] + arguments)
  }

  @Test(arguments: [
    ("named?attachment;%20filename=%22a%20b.pdf%22", "a b.pdf"),
    ("named?attachment;filename=x.bin;filename*=UTF-8''na%25C3%25AFve.txt", "na%C3%AFve.txt"),
    ("named?attachment;filename=%22../../.bashrc%22", "bashrc"),
    ("named?attachment;filename=%22/etc/passwd%22", "passwd"),
    ("plain.bin", "plain.bin"), ("named?inline", "named"), ("to", "real name.iso"), ("headless", "got.bin"),
    ("headless?400", "got.bin"), ("headless?403", "got.bin"), ("headless?404", "got.bin"), ("headless?500", "got.bin"),
    ("headless?cut", "got.bin"), ("slow", "got.bin"),
  ])
  func `the server's name is cleaned, written into the job and said`(target: String, name: String) async throws {
    let server = try Self.server()
    let expected = name.replacing("%C3%AF", with: "ï")
    let result = try await Self.add(spool, "-o", "d/", server.url("/\(target.replacing("%25", with: "%"))"))
    #expect(result.status == .exited(0) && result.output == "\(expected)\n", "\(result)")
    #expect(result.errors.contains("output: d/\(expected) (") && !result.errors.contains("s3cret"), "\(result)")
    let job = try spool.text("new/\(expected)")
    #expect(job.contains("output: d/\(expected)\n"), "\(job)")
  }

  @Test func `the job's own headers go along, and one question is asked`() async throws {
    let server = try Self.server()
    let url = server.url("/private?attachment;filename=k")
    #expect(try await Self.add(spool, "--header", "X-Key: 1", url).output == "k\n")
    #expect(server.requests.map(\.method) == ["HEAD"])
    try spool.write("defaults", "header@127.0.0.1: X-Key: 2\n")
    #expect(try await Self.add(spool, url).output == "k~2\n")
  }

  @Test func `the login in the spool's defaults is used`() async throws {
    let server = try Self.server()
    let url = server.url("/private?attachment;filename=k")
    try spool.write("defaults", "netrc: netrc\n")
    try await Self.add(spool, url).exits(78, saying: "line 1: netrc: \(spool.root)/netrc")
    #expect(spool.names("new") == [])
    try spool.write("netrc", "machine 127.0.0.1 login alice password apw\n")
    #expect(try await Self.add(spool, url).output == "k\n")
    #expect(server.requests.map { $0.value("authorization") } == [nil, "Basic YWxpY2U6YXB3"])
  }

  @Test(arguments: ["gone", "private?x", ""])
  func `without an answer nothing is dropped`(target: String) async throws {
    let server = try Self.server()
    try await Self.add(spool, server.url("/\(target)")).exits(1, saying: "nothing was dropped")
    #expect(spool.names("new") == [])
  }

  @Test func `a server is not asked by a scheme that the spool refuses`() async throws {
    let server = try Self.server()
    try spool.write("protocols", "https\n")
    try await Self.add(spool, server.url("/plain.bin")).exits(64, saying: "the scheme http is not enabled")
    #expect(server.requests.isEmpty && spool.names("new") == [])
  }

  @Test func `-o FILE and --remote-name contradict each other`() async throws {
    try await Self.add(spool, "-o", "x", "http://h/a").exits(64, saying: "--output DIR/")
  }

  // MARK: output: dir/

  @Test func `below a directory the payload has the url's own name`() async throws {
    let server = try simpleServer()
    try spool.drop("a", "url: \(server.url("/x%20y.bin?q"))\noutput: sets/2026/\n")
    try spool.drop("b", "url: \(server.url("/"))\noutput: sets/\n")
    try await spool.once(exits: 1)
    #expect(try spool.payload("sets/2026/x y.bin") == Array("payload\n".utf8))
    #expect(try spool.lines("done/a").last?["output"] == "sets/2026/x y.bin")
    let failed = try #require(try spool.lines("failed/b").last)
    #expect(failed["code"] == "bad-output" && failed["reason"]?.contains("`output:` line") == true, "\(failed)")

    let added = try await spoolrun("add", "--spool", spool.root, "-o", "more/", server.url("/c"))
    #expect(added.output == "c\n", "\(added)")
    for arguments in [
      ["-o", "d/", server.url("/")], ["-o", "../d/", server.url("/c")], ["-o", "/", server.url("/c")],
    ] {
      #expect(try await spoolrun(["add", "--spool", spool.root] + arguments).status == .exited(64), "\(arguments)")
    }
  }
}
