import Glibc
import TestSupport
import Testing

/// A job may choose among the output roots that the spool's owner offers, and no other directory.
@Suite struct NamedRootTests {
  private let server: ScriptedServer
  private let spool: TemporarySpool
  private let outside: TemporaryDirectory

  init() throws {
    server = try simpleServer()
    spool = try TemporarySpool()
    outside = try TemporaryDirectory()
  }

  private func offer(_ target: String, as name: String) throws {
    mkdir(spool.path("roots"), 0o700)
    try #require(symlink(target, spool.path("roots/\(name)")) == 0)
  }

  /// Runs one job; its failure's code, or nil when it is done.
  private func run(_ lines: String) async throws -> String? {
    try spool.drop("a", "url: \(server.url("/a"))\n\(lines)\n")
    // A relative link could lead somewhere from here.
    let result = try await spoolrun("--once", spool.root, directory: spool.path("new"))
    let name = try #require(spool.places(of: "a").last)
    let last = try #require(try spool.lines(name).last)
    #expect(result.status == .exited(last.key == "done" ? 0 : 1), "\(result)")
    return last.key == "done" ? nil : last["code"]
  }

  @Test func `the payload goes below the root, and the receipt names it`() async throws {
    try offer(outside.path, as: "music")
    #expect(try await run("root: music\noutput: d/x") == nil)
    #expect(try readFile("\(outside.path)/d/x") == Array("payload\n".utf8) && spool.payloads == [])
    #expect(try spool.lines("done/a").last?["directory"] == outside.path)
    try await spoolrun("verify", "--spool", spool.root).exits(0)
  }

  @Test(arguments: ["root: music", "root: ..", "root: a/b", "root: /tmp", "root: .hidden"])
  func `what is not offered is refused`(line: String) async throws {
    #expect(["bad-output", "malformed"].contains(try await run(line)), "\(line)")
    #expect(filesBelow(outside.path) == [] && spool.payloads == [] && server.requests.isEmpty)
  }

  /// A relative link would lead elsewhere by each way to the spool.
  @Test func `a root that is no link, or a relative one, is refused`() async throws {
    try offer("../files", as: "relative")
    try #require(mkdir(spool.path("roots/directory"), 0o700) == 0)
    for name in ["relative", "directory"] {
      #expect(try await run("root: \(name)") == "bad-output")
      let reason = try spool.lines("failed/a").last?["reason"]
      if name == "relative" { #expect(reason?.contains("the link must be to an absolute path") == true) }
      try #require(unlink(spool.path("failed/a")) == 0)
    }
  }

  /// Invariant: a payload never becomes a job.
  @Test func `the rules of output roots hold`() async throws {
    let above = String(spool.root[..<(try #require(spool.root.lastIndex(of: "/")))])
    let name = spool.root.dropFirst(above.count + 1)
    for (number, place) in ["", "/new", "/roots", "/partial"].enumerated() {
      try offer(spool.root + place, as: "own\(number)")
      #expect(try await run("root: own\(number)\noutput: job") == "bad-output", "\(place)")
      try #require(unlink(spool.path("failed/a")) == 0)
    }
    // Directly in a directory that contains the spool, and nowhere below it.
    try offer(above, as: "above")
    for output in ["\(name)/new/job", "\(name).d/x"] {
      #expect(try await run("root: above\noutput: \(output)") == "bad-output", "\(output)")
      try #require(unlink(spool.path("failed/a")) == 0)
    }
    #expect(try await run("root: above\noutput: \(name)") == "bad-output", "the spool itself")
    try #require(unlink(spool.path("failed/a")) == 0)
    let payload = "\(name).payload"
    defer { unlink("\(above)/\(payload)") }
    #expect(try await run("root: above\noutput: \(payload)") == nil)
    #expect(try readFile("\(above)/\(payload)") == Array("payload\n".utf8))
    #expect(spool.names("new") == [] && spool.payloads == [])
  }

  @Test func `a root that is gone fails the job, and a retry goes on`() async throws {
    let root = "\(outside.path)/root"
    try offer(root, as: "music")
    #expect(try await run("root: music") == "bad-output")
    try #require(mkdir(root, 0o700) == 0)
    try await spoolrun("retry", "--spool", spool.root, "a").exits(0)
    try await spool.once(exits: 0)
    #expect(names(in: root) == ["a"])
  }
}
