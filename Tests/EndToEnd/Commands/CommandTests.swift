import Glibc
import Spool
import SpoolWorker
import Synchronization
import TestSupport
import Testing

@testable import spoolrun

/// init, add and verify, and the sentences of a run.
@Suite struct CommandTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  @Test func initMakesASpool() async throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/a b\u{202e}"
    for _ in 1...2 {
      try await spoolrun("init", path).exits(0)
      #expect(
        Set(TestSupport.names(in: path)).isSuperset(of: [
          "tmp", "new", "cur", "partial", "done", "failed", "hold", "files",
        ]))
    }
    #expect((fileStatus(path)?.st_mode ?? 0) & 0o777 == 0o700)
    try await spoolrun("--once", path).exits(0)
    // Where to: the argument, the environment, here.
    #expect(
      try await spoolrun("init", environment: ["SPOOLRUN_SPOOL": "\(directory.path)/by-environment"]).status
        == .exited(0))
    try await spoolrun("init", directory: directory.path).exits(0)
    #expect(Set(TestSupport.names(in: directory.path)).isSuperset(of: ["by-environment", "spool"]))
  }

  @Test func addDropsAJob() async throws {
    let server = try simpleServer()
    let sum = hex8(independentCRC32(Array("payload\n".utf8)))
    let result = try await spoolrun(
      "add", "--spool", spool.root, server.url("/404"), server.url("/a"), "-o", "sets/x", "--size", "8", "--crc32",
      sum.uppercased(),
      "--header", "X-One: 1", "--header", "X-Two: a: b", "--attempts", "3", "--expires", "2099-01-01", "--timeout",
      "5s 1h", "--max-size", "1k", "--limit-rate", "1M", "--connections", "2", "--priority", "low", "--name", "my job")
    #expect(result.status == .exited(0) && result.errors == "", "\(result)")
    #expect(result.output == "my job\n")
    #expect(spool.places(of: "my job") == ["new/my job"] && spool.names("tmp") == [])
    try await spoolrun("--once", environment: ["SPOOLRUN_SPOOL": spool.root]).exits(0)
    #expect(try spool.payload("sets/x") == Array("payload\n".utf8))
    let request = try #require(server.requests(for: "/a").first)
    #expect(request.value("x-one") == "1" && request.value("x-two") == "a: b")
    #expect(request.value("accept-encoding") == "identity")
  }

  @Test(arguments: [
    (["http://h/a.bin?x#y"], "a.bin"), (["http://h/x", "-o", "d/e/y"], "y"),
    (["http://h/.hidden"], "hidden"),
    (["http://h/x.part"], "x"), (["http://h/", "-o", "y"], "y"), (["http://h/a%20b"], "a b"),
    (["http://h/" + String(repeating: "n", count: 250)], String(repeating: "n", count: 170)),
    (["http://h/x", "--name", "a:b\u{202e}c"], "a:b\u{202e}c"), (["http://h/%c3%bc"], "ü"),
    (["http://h/...part"], "part"), (["http://h/--dash"], "dash"), (["http://h/-"], "job"),
    (["http://h/x", "--name=-x"], "-x"),
  ])
  func addNames(arguments: [String], name: String) async throws {
    let result = try await startSpoolrun(["add", "--spool", spool.root] + arguments).result().exits(0)
    #expect(result.output == "\(name)\n", "printed as other commands take it")
    #expect(spool.names("new").count == 1)
    let again = try await startSpoolrun(["add", "--spool", spool.root] + arguments).result()
    #expect(again.output == "\(name)~2\n", "nothing is replaced")
    #expect(spool.names("new").count == 2)
  }

  @Test(arguments: [
    ["--name", "a/b"], ["--name", ".x"], ["--name", "x.part"], ["--name", "a\u{1b}b"], ["--name", ""],
    ["--name", String(repeating: "n", count: 181)],
    ["-o", "../x"], ["-o", "/etc/x"], ["-o", ""], ["--crc32", "xyz"], ["--size", "-1"], ["--attempts", "0"],
    ["--expires", "soon"], ["--expires", "2001-01-01"],
    ["--timeout", "0"], ["--header", "Range: bytes=0-"], ["--header", "A: b\r\nurl: http://evil/x"],
    ["-o", "x\nheader: A: b"],
  ])
  func addRefuses(arguments: [String]) async throws {
    let result = try await startSpoolrun(["add", "--spool", spool.root, "http://h/x"] + arguments).result()
    #expect(result.exitStatus == 64 && result.output == "", "\(result)")
    #expect(!result.errors.contains("\u{1b}"))
    #expect(spool.names("new") == [] && spool.names("tmp") == [])
  }

  @Test func addNamesTheOptionThatDoesNotExist() async throws {
    try await spoolrun("add", "--spool", spool.root, "--outpt", "x", "http://h/a")
      .exits(64, saying: "unknown option '--outpt'")
    #expect(spool.names("new") == [] && spool.names("tmp") == [])
  }

  /// A spool of done jobs with these names and outputs.
  private func done(_ jobs: [(name: String, output: String)]) async throws -> TemporarySpool {
    let server = try ScriptedServer { request, reply in
      try reply.respond("200 OK", body: Array("of \(request.target)".utf8))
    }
    let spool = try TemporarySpool()
    for job in jobs { try spool.drop(job.name, "url: \(server.url("/x"))\noutput: \(job.output)\n") }
    try await spool.once(exits: 0)
    return spool
  }

  @Test func verifySaysWhatRotted() async throws {
    let spool = try await done(["sound", "flipped", "short", "long", "gone", "link", "dir"].map { ($0, "d/\($0)") })
    #expect(try await spoolrun("verify", "--spool", spool.root).output == "")
    func alter(_ name: String, _ change: (inout [UInt8]) -> Void) throws {
      var bytes = try readFile(spool.path("files/d/\(name)"))
      change(&bytes)
      try spool.write("files/d/\(name)", bytes)
    }
    try alter("flipped") { $0[2] ^= 1 }
    try alter("short") { $0.removeLast() }
    try alter("long") { $0.append(0) }
    for name in ["gone", "link", "dir"] { #expect(unlink(spool.path("files/d/\(name)")) == 0) }
    #expect(symlink("sound", spool.path("files/d/link")) == 0 && mkdir(spool.path("files/d/dir"), 0o700) == 0)
    try spool.write("done/by-hand", "https://h/x\n")

    let result = try await spoolrun("verify", "--spool", spool.root).exits(1, saying: "verify --refetch")
    let lines = result.output.split(separator: "\n")
    #expect(lines.map { $0.prefix { $0 != ":" } } == ["by-hand", "dir", "flipped", "gone", "link", "long", "short"])
    func line(_ name: String) -> Substring { lines.first { $0.hasPrefix("\(name): ") } ?? "" }
    #expect(line("flipped").contains("changed") && line("flipped").contains("expected crc32"))
    #expect(line("short").contains("expected 5 bytes, found 4") && line("long").contains("expected 5 bytes, found 6"))
    for name in ["gone", "link", "dir"] { #expect(line(name).contains("missing: d/\(name)"), "\(line(name))") }
    #expect(line("by-hand").contains("no receipt"))

    let verbose = try await spoolrun("verify", "-v", "--spool", spool.root, "sound").exits(0)
    #expect(verbose.output == "sound: sound: d/sound size=5 crc32=\(hex8(independentCRC32(Array("of /x".utf8))))\n")
    try await spoolrun("verify", "--spool", spool.root, "sound", "nonsense").exits(1)
    try await spoolrun("verify", "--spool", spool.root, "../new/x").exits(1)
  }

  /// Names that would steer a terminal are shown escaped, and found again.
  @Test func verifyEscapes() async throws {
    let spool = try await done([("a\u{202e}b\\", "x\u{9b}31m\u{202e}")])
    let verbose = try await spoolrun("verify", "-v", "--spool", spool.root).exits(0)
    #expect(
      verbose.output.hasPrefix("a\\xe2\\x80\\xaeb\\x5c: sound: x\\xc2\\x9b31m\\xe2\\x80\\xae size=5 "), "\(verbose)")
    #expect(unlink(spool.path("files/x\u{9b}31m\u{202e}")) == 0)
    try await spoolrun("verify", "--spool", spool.root, "a\u{202e}b\\").exits(1, printing: "missing: x\\xc2\\x9b31m")
  }

  @Test func verifyElsewhere() async throws {
    let server = try simpleServer()
    let root = try TemporaryDirectory()
    try spool.drop("a", "url: \(server.url("/a"))\noutput: d/a\n")
    try await spoolrun("--once", "--directory", root.path, spool.root).exits(0)
    #expect(filesBelow(root.path) == ["d/a"] && spool.payloads == [])
    #expect(try spool.lines("done/a").last?["directory"] == root.path)
    try await spoolrun("verify", "--spool", spool.root).exits(0)
    let moved = try TemporaryDirectory()
    #expect(rename("\(root.path)/d", "\(moved.path)/d") == 0)
    try await spoolrun("verify", "--spool", spool.root).exits(1)
    try await spoolrun("verify", "--spool", spool.root, "--directory", moved.path).exits(0)
    // One output root that is gone hides nothing of the others.
    try spool.drop("b", "url: \(server.url("/a"))\noutput: b\n")
    try await spool.once(exits: 0)
    #expect(rmdir(root.path) == 0)
    let gone = try await spoolrun("verify", "-v", "--spool", spool.root).exits(1, printing: "a: cannot be checked: ")
    #expect(gone.output.contains("b: sound: "), "\(gone)")
  }

  @Test(arguments: [
    (Failure(.diskFull, "5 bytes and 3 are free", expected: "5", found: "3"), "5 bytes and 3 are free; next at "),
    (Failure(.noNetwork, "no network"), "no network; next at "),
    (
      Failure(.mismatchSize, "too long", expected: "5", found: "6"),
      "too long (expected 5, found 6); attempt 1 failed, next at "
    ),
  ])
  func whatDoesNotCountIsNoAttempt(failure: Failure, text: String) {
    let record = FailureRecord(time: .now(), attempt: 1, failure: failure, mark: nil, fetched: 0, retry: .now())
    let lines = Mutex<[String]>([])
    let printer = EventPrinter(of: "s", isVerbose: false, format: .text, reader: .other) { line in
      lines.withLock { $0.append(line) }
    }
    printer.print(Event("failed", .warning, job: FileName("a"), record.facts))
    #expect(lines.withLock { $0 }.allSatisfy { $0.hasPrefix("spoolrun: a: \(failure.code.rawValue): \(text)20") })
    #expect(lines.withLock { $0.count } == 1)
  }

  @Test func helpNamesTheCommands() async throws {
    let result = try await spoolrun("--help").exits(0)
    for word in ["init", "add", "verify", "run"] { #expect(result.output.contains("\n  \(word)"), "\(word)") }
    try await spoolrun("--version").exits(0)
  }
}
