import Glibc
import TestSupport
import Testing

/// A worker that is stopped for longer than the lease, with its locks, and then goes on.
@Suite struct FrozenWorkerTests {
  private func expectTakenOver(_ worker: RunningCommand) async throws -> CommandResult {
    worker.send(signal: SIGCONT)
    let result = try await worker.stop().exits(0)
    #expect(result.errors.contains(" taken-over job=a at="), "\(result)")
    for event in [" done ", " held ", " cancelled ", " failed ", " parked "] {
      #expect(!result.errors.contains(event), "\(result)")
    }
    return result
  }

  @Test func itsJobGoesOnElsewhereInNewFiles() async throws {
    let (spool, server, frozen, gate) = try await startHalfway("", ["--lease", "5s", "-v"])
    defer { withExtendedLifetime(server) { frozen.send(signal: SIGKILL) } }
    frozen.send(signal: SIGSTOP)
    let data = try #require(fileStatus(spool.path("partial/a.part"))).st_ino
    gate.open()
    let other = try startSpoolrun(["-v", "--rescan", "1h", spool.root])
    defer { other.send(signal: SIGKILL) }
    try await waitUntil("the other one is done with it, and has not waited for a scan") {
      spool.places(of: "a") == ["done/a"]
    }
    let receipt = try readFile(spool.path("done/a"))
    #expect(try #require(fileStatus(spool.path("files/a"))).st_ino != data)
    _ = try await expectTakenOver(frozen)
    #expect(try spool.payload("a") == halfwayBody)
    #expect(try readFile(spool.path("done/a")) == receipt)
    #expect(try spool.lines("done/a").filter { $0.key == "started" }.count == 2)
    #expect(try spool.lines("done/a").filter { $0.key == "done" }.count == 1)
    for state in ["cur", "partial", "tmp", "failed"] { #expect(spool.names(state) == [], "\(state)") }
    #expect(try spool.lines("done/a").filter { $0["former"] == "frozen" }.count == 1)
    let result = try await other.stop().exits(0)
    #expect(!result.errors.contains(" suspected "), "it has not died: \(result)")
  }

  /// It keeps the lock of the job's file.
  @Test func `a job that is held and released goes on elsewhere`() async throws {
    let (spool, server, frozen, gate) = try await startHalfway()
    defer { frozen.send(signal: SIGKILL) }
    frozen.send(signal: SIGSTOP)
    gate.open()
    for gesture in ["hold", "release"] {
      #expect(try await spoolrun(gesture, "--spool", spool.root, "a").status == .exited(0), "\(gesture)")
    }
    let result = try await spoolrun("--once", "-v", spool.root)
    #expect(result.status == .exited(0) && spool.places(of: "a") == ["done/a"], "\(result)")
    #expect(try spool.payload("a") == halfwayBody)
    frozen.send(signal: SIGCONT)
    _ = try await frozen.result()
    #expect(try spool.places(of: "a") == ["done/a"] && spool.payload("a") == halfwayBody && server.requests.count == 2)
    for state in ["cur", "partial", "tmp", "failed", "hold"] { #expect(spool.names(state) == [], "\(state)") }
  }

  /// Its successor has ended before it had the data copied, and so the claim is free, but not the data. The journal may
  /// name another inode, that of data which the frozen worker had replaced.
  @Test(arguments: [true, false])
  func itsSuccessorsSuccessorHasNewDataAsWell(isNamed: Bool) async throws {
    let (spool, server, worker, gate) = try await startHalfway()
    try await worker.stop(SIGKILL)
    gate.open()
    if !isNamed {
      try spool.write("tmp/data", [])
      try spool.move("tmp/data", "partial/a.part")
    }
    let data = open(spool.path("partial/a.part"), O_RDWR | O_CLOEXEC)
    try #require(data >= 0)
    defer { close(data) }
    try #require(flock(data, LOCK_EX | LOCK_NB) == 0)
    let result = try await spoolrun("--once", "-v", spool.root)
    #expect(result.status == .exited(0) && spool.places(of: "a") == ["done/a"], "\(result)")
    // What it writes when it wakes up goes nowhere.
    try #require(pwrite(data, "XXXX", 4, 0) == 4)
    #expect(try spool.payload("a") == halfwayBody && server.requests.count == 2)
    #expect(spool.names("partial") == [] && spool.names("tmp") == [])
  }

  /// It has verified the data, and wakes up when its successor has published: it would replace that payload.
  @Test func itPublishesNothing() async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    // The first worker is stopped by its hook, and goes on where the hook ends.
    try spool.install("verify", "mkdir '\(spool.root)/tmp/once' 2>/dev/null || exit 0\nkill -STOP $PPID")
    try spool.drop("a", "\(server.url("/a"))\noverwrite: yes\n")
    let frozen = try startSpoolrun(["--lease", "5s", "-v", spool.root])
    defer { frozen.send(signal: SIGKILL) }
    try await waitUntil("it stops") { fileStatus(spool.path("tmp/once")) != nil }
    let other = try startSpoolrun(["-v", spool.root])
    defer { other.send(signal: SIGKILL) }
    try await waitUntil("the other one is done with it") { spool.places(of: "a") == ["done/a"] }
    let published = try #require(fileStatus(spool.path("files/a"))).st_ino
    let receipt = try readFile(spool.path("done/a"))
    _ = try await expectTakenOver(frozen)
    #expect(try #require(fileStatus(spool.path("files/a"))).st_ino == published)
    #expect(try readFile(spool.path("done/a")) == receipt)
    try await other.stop().exits(0)
  }
}
