import Glibc
import TestSupport
import Testing

/// A worker of version 0.2 gives up a job with a key that is new since.
@Suite struct OldWorkerTests {
  private let spool: TemporarySpool
  private let list: TemporaryDirectory

  init() throws { (spool, list) = (try TemporarySpool(), try TemporaryDirectory()) }

  /// Leaves the file of a worker, which is this process.
  private func present(_ program: String, age: Int = 0) throws {
    if fileStatus(spool.path("workers")) == nil { try #require(mkdir(spool.path("workers"), 0o700) == 0) }
    try writeFile(file, "started: 2026-11-21T03:00:00Z program=\(program) mode=watch\nruns: 0\n")
    try setModificationTime(file, secondsFromNow: -age)
  }

  private var file: String { spool.path("workers/elsewhere.\(getpid()).0000000a") }

  /// It is alive, however long this test takes.
  private func beat() throws { try setModificationTime(file, secondsFromNow: 0) }

  private func add(_ arguments: String...) async throws -> CommandResult {
    try await spoolrun(["add", "--spool", spool.root, "https://host.test/a"] + arguments)
  }

  @Test func `while it runs, new keys are refused, and all others are taken`() async throws {
    try present("spoolrun/0.2.0")
    let result = try await add("--patience", "2d")
    #expect(result.status != .exited(0) && result.errors.contains("version 0.2"), "\(result)")
    try writeFile("\(list.path)/list", "https://host.test/b\nhttps://host.test/c\nhttps://host.test/d\n")
    let all = ["add", "--spool", spool.root, "--from", "\(list.path)/list"]
    try beat()
    #expect(try await spoolrun(all + ["--encoded", "keep"]).status != .exited(0))
    let order = ["subscribe", "--spool", spool.root, "https://host.test/feed"]
    for new in [["--signature", "https://host.test/sig"], ["--entries", "file"], ["--keep", "3"]] {
      try beat()
      #expect(try await spoolrun(order + new).status != .exited(0), "\(new)")
    }
    #expect(spool.names("new") == [] && spool.names("tmp") == [] && TestSupport.names(in: spool.path("standing")) == [])
    try beat()
    try await add("--attempts", "2").exits(0)
    #expect(try await spoolrun(all).status == .exited(0) && spool.names("new").count == 4)
    try await spoolrun(order).exits(0)
  }

  @Test(arguments: [("spoolrun/0.2.0", 3600), ("spoolrun/0.3.0", 0), ("spoolrun/1.0.0", 0), ("other", 0)])
  func `when it is gone, or newer, they are taken`(program: String, age: Int) async throws {
    try present(program, age: age)
    let result = try await add("--patience", "2d")
    #expect(result.status == .exited(0) && spool.names("new") == ["a"], "\(result)")
  }
}
