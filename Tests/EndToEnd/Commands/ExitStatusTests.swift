import Glibc
import TestSupport
import SystemPackage
import Testing

@testable import Spool
@testable import SpoolWorker
@testable import spoolrun

/// The table of exit statuses, each by a run that earns it.
@Suite struct ExitStatusTests {
  private let server: ScriptedServer
  private let spool: TemporarySpool

  init() throws { (server, spool) = (try simpleServer(), try TemporarySpool()) }

  @Test func allDone() async throws {
    #expect(try await spoolrun("--once", spool.root).exitStatus == 0, "an empty spool")
    try spool.drop("a", "\(server.url("/a"))\n")
    try await spool.once(exits: 0)
    #expect(spool.places(of: "a") == ["done/a"])
  }

  @Test func givenUp() async throws {
    try spool.drop("a", "\(server.url("/404"))\n")
    try await spool.once(exits: 1)
    #expect(try await spoolrun("--once", spool.root).exitStatus == 0, "the next run has nothing to do with it")
    try spool.drop("b", "no job\n")
    try await spool.once(exits: 1)
  }

  @Test func waiting() async throws {
    let server = try ScriptedServer { _, reply in
      try reply.respond("503 Service Unavailable", ["Retry-After: 3600"], body: [])
    }
    try spool.drop("a", "\(server.url("/503"))\n")
    try await spool.once(exits: 75)
    #expect(spool.places(of: "a") == ["partial/a"])
    #expect(try await spoolrun("--once", spool.root).exitStatus == 0, "not due yet")
    #expect(server.requests.count == 1)
  }

  @Test func theWorstOutcomeWins() async throws {
    for (name, target) in [("a", "/a"), ("b", "/503"), ("c", "/404"), ("d", "/d")] {
      try spool.drop(name, "\(server.url(target))\n")
    }
    try await spool.once(exits: 1)
    #expect(spool.names("done") == ["a", "d"])
  }

  @Test(arguments: [
    ["--no-such-option"], ["--once", "--jobs", "0", "SPOOL"], ["--once", "--jobs", "many", "SPOOL"],
    ["--once", "--per-host", "0", "SPOOL"], ["--once", "--limit-rate", "2", "SPOOL"],
    ["--once", "--protocols", "http,file", "SPOOL"], ["--once", "--protocols", "", "SPOOL"],
    ["--once", "--log-format", "xml", "SPOOL"],
    ["--once", "SPOOL", "another"], ["--once", "--spool", "SPOOL", "SPOOL"],
    ["add"], ["add", "--spool", "SPOOL", "no-url"],
    ["add", "--spool", "SPOOL", "http://h/a", "--size", "x"],
    // Two files.
    ["add", "--spool", "SPOOL", "--size", "1", "http://h/a", "http://h/b"],
  ])
  func usage(arguments: [String]) async throws {
    let result = try await startSpoolrun(arguments.map { $0 == "SPOOL" ? spool.root : $0 }).result().exits(64)
    #expect(result.output == "" && result.errors != "")
    #expect(spool.names("new") == [])
  }

  @Test func noSuchSpool() async throws {
    let directory = try TemporaryDirectory()
    let missing = "\(directory.path)/missing"
    for arguments in [
      ["--once", missing], ["add", "--spool", missing, "http://h/a"], ["verify", "--spool", missing],
      ["status", missing],
      ["--once", directory.path],
    ] {
      let result = try await startSpoolrun(arguments).result()
      #expect(result.exitStatus == 66, "\(arguments): \(result)")
      #expect(result.errors.contains("spoolrun init"), "it says what to do")
    }
    let result = try await spoolrun("--once", directory: directory.path)
    #expect(result.exitStatus == 66, "spool, here, by default")
  }

  /// What bars the way is mended in different places.
  @Test(.enabled("needs root, to be another user") { try await Need.users.isMet() })
  func spoolThatMayNotBeEntered() async throws {
    let directory = try TemporaryDirectory()
    let spool = try TemporarySpool(in: directory.path)
    // The program is opened as root: the user may not reach it.
    let script = #"exec 3<"$0"; exec setpriv --reuid=61001 --regid=61001 --clear-groups /proc/self/fd/3 status "$1""#
    func expect(_ reason: String) async throws {
      let result = try await run(["/bin/sh", "-c", script, productPath("spoolrun"), spool.root])
      #expect(result.exitStatus == 66 && result.errors.hasSuffix("Permission denied: \(reason)\n"), "\(result)")
    }
    try await expect("a directory above the spool cannot be entered")
    try #require(chmod(directory.path, 0o755) == 0)
    try await expect("the spool belongs to another user")
    try #require(chown(spool.root, 61_001, 61_001) == 0 && chmod(spool.root, 0o600) == 0)
    try await expect("the spool's mode does not let its owner read and enter it")
  }

  @Test func cannotCreate() async throws {
    let directory = try TemporaryDirectory()
    try await spoolrun("init", "\(directory.path)/missing/spool").exits(73)
    try writeFile("\(directory.path)/file", [])
    try await spoolrun("init", "\(directory.path)/file").exits(73)
    try await spoolrun("--once", "--directory", "\(directory.path)/missing", spool.root).exits(73, saying: "missing")
  }

  @Test(arguments: ["attempts: 0\n", "url: https://h/a\n", "attempts: 3", "nonsense: 1\n"])
  func configuration(defaults: String) async throws {
    try spool.drop("a", "\(server.url("/a"))\n")
    try spool.write("defaults", defaults)
    try await spoolrun("--once", spool.root).exits(78, saying: "defaults")
    #expect(spool.places(of: "a") == ["new/a"] && server.requests.isEmpty)
    try await spoolrun("--once", "--cacert", nowhere, spool.root).exits(78)
  }

  /// A file that is no library stands where the dynamic linker looks first. Without a job nobody looks for libcurl.
  @Test func noLibcurl() async throws {
    let libraries = try TemporaryDirectory()
    try writeFile("\(libraries.path)/libcurl.so.4", "no library")
    let environment = ["LD_LIBRARY_PATH": libraries.path]
    #expect(try await spoolrun("--once", spool.root, environment: environment).exitStatus == 0, "an empty spool")
    try spool.drop("a", "https://host.invalid/a\n")
    for arguments in [["--once", spool.root], [spool.root], ["add", "--spool", spool.root, "https://host.invalid/b"]] {
      try await startSpoolrun(arguments, environment: environment).result()
        .exits(69, saying: "libcurl.so.4 cannot be loaded: ")
    }
    #expect(spool.names("new") == ["a"], "as it was dropped")
    #expect(try spool.lines("new/a").count == 1)
  }

  /// zlib takes its place.
  @Test func noLibdeflate() async throws {
    let libraries = try TemporaryDirectory()
    try writeFile("\(libraries.path)/libdeflate.so.0", "no library")
    let server = try simpleServer([UInt8](repeating: 7, count: 1 << 20))
    try spool.drop("a", "\(server.url("/a"))\n")
    let result = try await spoolrun("--once", spool.root, environment: ["LD_LIBRARY_PATH": libraries.path])
    #expect(result.exitStatus == 0 && spool.names("done") == ["a"], "\(result)")
  }

  /// A job that is not due yet is no reason to load libcurl, one that is due is.
  @Test func libcurlIsLoadedForWorkOnly() async throws {
    func loads() async throws -> Bool {
      try await spoolrun("--once", spool.root, environment: ["LD_DEBUG": "files"]).errors.contains("libcurl.so.4")
    }
    try spool.write("partial/a", "http://127.0.0.1:1/a\n")
    let later = timeval(tv_sec: time(nil) + 3600, tv_usec: 0)
    #expect(utimes(spool.path("partial/a"), [later, later]) == 0)
    #expect(try await loads() == false)
    #expect(utimes(spool.path("partial/a"), nil) == 0)
    #expect(try await loads())
  }

  /// libcurl is still being loaded on another thread when the command ends.
  @Test func endsWhileLibcurlIsLoaded() async throws {
    try spool.drop("a", "http://127.0.0.1:1/a\n")
    for _ in 0..<20 {
      try await spoolrun("--once", "--directory", "\(spool.root)/missing", spool.root).exits(73, saying: "missing")
    }
  }

  /// The work is done all the same.
  @Test func lostOutput() async throws {
    func full(_ arguments: String...) async throws -> CommandResult {
      let shell = ["/bin/sh", "-c", "exec \"$0\" \"$@\" >/dev/full"]
      return try await startSpoolrun(arguments, environment: ["SPOOLRUN_SPOOL": spool.root], prefix: shell).result()
    }
    func expectLoss(_ result: CommandResult) {
      #expect(result.exitStatus == 74, "\(result)")
      #expect(result.errors == "spoolrun: write standard output: No space left on device\n")
    }
    expectLoss(try await full("add", "http://h/a"))
    #expect(spool.names("new") == ["a"])
    expectLoss(try await full("status"))
    for option in ["--version", "--help", "--generate-completion-script=bash", "--generate-completion-script=fish"] {
      expectLoss(try await full(option))
    }
    expectLoss(try await full("get", "--help"))
    expectLoss(try await full("status", "--watch"))
    expectLoss(try await full("cancel", "-v", "a"))
    #expect(spool.names("new") == [])
    for name in ["a", "b"] { try spool.write("partial/\(name).part", [1]) }
    expectLoss(try await full("clean"))
    #expect(spool.names("partial") == [])
    try spool.write("done/by-hand", "https://h/x\n")
    let rotten = try await full("verify")
    #expect(rotten.exitStatus == 1 && rotten.errors.contains("standard output"), "what went wrong first: \(rotten)")
    try await full("hold", "a", "-v").exits(1)
  }

  /// 74 is made for real in EnvironmentTests; here the order of the table.
  @Test func order() {
    var summary = RunSummary()
    var kind = FileSystemKind(type: 0xEF53)
    summary.done = 1
    #expect(ExitStatus(summary, on: kind) == .success)
    summary.cancelled = 1
    #expect(ExitStatus(summary, on: kind) == .success, "a person's wish is no failure")
    summary.waiting = 1
    #expect(ExitStatus(summary, on: kind) == .waiting)
    summary.givenUp = 1
    #expect(ExitStatus(summary, on: kind) == .givenUp)
    // An open that failed, and a mkdir that did.
    summary.spoolError = #expect(throws: SpoolError.self) {
      try Spool(nowhere, owner: WorkerID(host: "h", process: 1, tag: 1), boot: "b")
    }
    #expect(ExitStatus(summary, on: kind) == .inputOutput)
    summary.spoolError = #expect(throws: SpoolError.self) { try Spool.create("\(nowhere)/spool") }
    #expect(ExitStatus(summary, on: kind) == .cannotCreate)
    summary.spoolError = SpoolError(call: .mkdir, path: "files/sets", errno: .ioError)
    #expect(
      ExitStatus(summary, on: kind) == .inputOutput,
      "a disk that fails is one trouble, whichever call meets it first")
    kind = FileSystemKind(type: 0x6573_5546)
    #expect(ExitStatus(summary, on: kind) == .waiting, "a server that cannot be reached may be back later")
    summary.spoolError = SpoolError(call: .create, path: "tmp/a", errno: .timedOut)
    #expect(ExitStatus(summary, on: kind) == .waiting)
    summary.spoolError = SpoolError(call: .create, path: "tmp/a", errno: .permissionDenied)
    #expect(ExitStatus(summary, on: kind) == .cannotCreate)
    summary.obstacle = "no libcurl"
    #expect(ExitStatus(summary, on: kind) == .unavailable)
  }
}
