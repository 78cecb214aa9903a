import Glibc
import TestSupport
import Testing

/// Whatever lands in new/: a clear record, the right status, nothing lost, and the good jobs run all the same.
@Suite struct HostileDropTests {
  private let server: ScriptedServer
  private let spool: TemporarySpool

  init() throws { (server, spool) = (try simpleServer(), try TemporarySpool()) }

  @Test func aZooOfDrops() async throws {
    func new(_ name: String) -> String { spool.path("new/\(name)") }
    #expect(
      mkfifo(new("fifo"), 0o600) == 0 && mknod(new("socket"), S_IFSOCK | 0o600, 0) == 0
        && mkdir(new("directory"), 0o700) == 0)
    #expect(symlink("/etc/passwd", new("symlink")) == 0 && symlink(nowhere, new("dangling")) == 0)
    try writeFile(new("directory/inside"), [1])
    try writeFile(new("huge"), "\(server.url("/x"))\n")
    #expect(truncate(new("huge"), 1 << 30) == 0)
    let url = server.url("/x")
    let texts = [
      "binary": "\u{7f}ELF\u{2}\u{1}\u{1}\u{0}\n", "unknown": "url: \(url)\nmirror: x\n", "two": "\(url)\n\(url)\n",
      "range": "url: \(url)\nattempts: 0\n",
      "crlf-header": "url: \(url)\nheader: A: b\rC: d\n", "escape": "url: \(url)\noutput: ../../etc/x\n",
      "absolute": "url: \(url)\noutput: /etc/x\n",
      "scheme": "url: gopher://h/x\n", "file": "url: file:///etc/passwd\n", "port": "url: http://h:99999/x\n",
      "ftp": "url: ftp://127.0.0.1/x\n",
      "line\nbreak": "\(url)\n", "esc\u{1b}[31m": "\(url)\n", String(repeating: "n", count: 255): "\(url)\n",
      "x.part": "\(url)\n",
    ]
    for (name, text) in texts { try writeFile(new(name), text) }
    try spool.drop("good", "url: \(server.url("/good"))\n")
    try spool.drop("good \u{202e}:b", "url: \(server.url("/other"))\n")
    try writeFile(new(".ignored"), "\(url)\n")
    let dropped = TestSupport.names(in: spool.path("new")).count

    let result = try await spool.once(exits: 1)
    #expect(spool.names("done").count == 2 && spool.payloads == ["good", "other"])
    #expect(spool.names("new") == [] && spool.names("cur") == [] && spool.names("partial") == [])
    #expect(fileStatus(new(".ignored")) != nil)
    // One line each, none of which steers a terminal.
    let lines = result.errors.split(separator: "\n")
    #expect(lines.count == dropped - 2, "\(result)")
    #expect(lines.allSatisfy { $0.hasPrefix("spoolrun: ") } && !result.errors.contains("\u{1b}"))
    // Each is still there, with what is wrong: in the job itself, or in a record beside what is no job.
    let failed = spool.names("failed")
    let codes = try failed.compactMap { name -> String? in
      guard let status = fileStatus(spool.path("failed/\(name)")), status.st_mode & S_IFMT == S_IFREG,
        status.st_size < 1 << 20
      else { return nil }
      return try spool.lines("failed/\(name)").last { $0.key == "failed" }?["code"]
    }
    // Besides `huge`, whose record stands behind a gibibyte.
    #expect(codes.count == dropped - 2 - 1, "\(failed)")
    #expect(codes.filter { $0 == "protocol" }.count == 1 && Set(codes) == ["malformed", "protocol"])
    try await spool.once(exits: 0)
  }

  /// Places that a job may not write to: each is refused for good, nothing outside is touched, and nothing fetched.
  @Test func outputsThatLeadAway() async throws {
    let outside = try TemporaryDirectory()
    #expect(
      symlink(outside.path, spool.path("files/out")) == 0
        && symlink("\(outside.path)/x", spool.path("files/final")) == 0)
    try spool.write("files/plain", [9])
    for (name, output) in [("a", "out/x"), ("b", "out/deep/x"), ("c", "final"), ("d", "plain/x"), ("e", "plain")] {
      try spool.drop(name, "url: \(server.url("/x"))\noutput: \(output)\n")
    }
    try await spool.once(exits: 1)
    for name in ["a", "b", "d"] { #expect(try spool.lastFailure("failed/\(name)")["code"] == "bad-output") }
    for name in ["c", "e"] { #expect(try spool.lastFailure("failed/\(name)")["code"] == "output-exists") }
    #expect(TestSupport.names(in: outside.path) == [] && server.requests.isEmpty)
    #expect(try readFile(spool.path("files/plain")) == [9])
  }

  /// A worker keeps each directory on the way to an output open, and all its jobs share its descriptors.
  @Test func anOutputBelowManyDirectories() async throws {
    let way = String(repeating: "d/", count: 1100)
    try spool.drop("deep", "url: \(server.url("/x"))\noutput: \(way)x\n")
    try spool.drop("good", "\(server.url("/good"))\n")
    try await spoolrun("--once", spool.root, prefix: ["/usr/bin/prlimit", "--nofile=1024"]).exits(1)
    #expect(spool.names("failed") == ["deep"] && spool.names("done") == ["good"])
    #expect(try spool.lastFailure("failed/deep")["reason"]?.contains("more than 32 parts") == true)
    #expect(spool.payloads == ["good"] && fileStatus(spool.path("files/d")) == nil)
  }

  /// Enough for as many commits as there may be at once, each to an output as deep as it may be.
  @Test(arguments: [("1024:20000", "8664"), ("1024:4096", "4096")])
  func descriptorsForDeepOutputs(limit: String, raised: String) async throws {
    let worker = try startSpoolrun([spool.root], prefix: ["/usr/bin/prlimit", "--nofile=\(limit)"])
    try await waitUntil("the limit is raised") {
      let limits = try readText("/proc/\(worker.processID)/limits")
      let line = limits.split(separator: "\n").first { $0.hasPrefix("Max open files") } ?? ""
      return line.split(separator: " ").dropFirst(3).first.map { $0 == raised } ?? false
    }
    worker.send(signal: SIGKILL)
  }

  /// A directory where the data of a job should go, or its data set aside: the job says so, and other jobs go on.
  @Test func obstaclesInTheSpool() async throws {
    #expect(mkdir(spool.path("failed/a.part"), 0o700) == 0 && mkdir(spool.path("done/b"), 0o700) == 0)
    try spool.drop("a", "\(server.url("/a"))\n")
    try spool.drop("b", "\(server.url("/b"))\n")
    try spool.drop("c", "\(server.url("/c"))\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(spool.names("done") == ["a", "b", "b~2", "c"], "\(result)")
    #expect(spool.payloads == ["a", "b", "c"])
    for name in ["a", "b~2", "c"] { #expect(try spool.lines("done/\(name)").last?.key == "done") }
  }
}
