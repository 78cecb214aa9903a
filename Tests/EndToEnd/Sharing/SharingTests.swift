import Glibc
import TestSupport
import Testing

/// Several workers on one spool: overlapping cron lines are normal.
@Suite struct SharingTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  @Test func twoHundredJobsNoneTwice() async throws {
    let server = try simpleServer()
    for number in 0..<200 { try spool.drop("job-\(number)", "url: \(server.url("/\(number)-x"))\n") }
    let workers = try (0..<5).map { _ in try startSpoolrun(["--once", spool.root]) }
    for worker in workers {
      let result = try await worker.result()
      #expect(result.status == .exited(0) && result.errors == "", "losing a race is silent: \(result)")
    }
    // One may have found the other's lease on a job and left it for later.
    if !spool.names("new").isEmpty { _ = try await spoolrun("--once", spool.root) }
    #expect(server.requests.count == 200)
    #expect(Set(server.requests.map(\.target)).count == 200, "each asked for once")
    #expect(spool.names("done").count == 200 && spool.payloads.count == 200)
    for state in ["new", "cur", "partial", "failed", "tmp"] { #expect(spool.names(state) == []) }
  }

  /// What a worker cannot start is left to the others.
  @Test func aWorkerClaimsOnlyWhatItStarts() async throws {
    let limits = ["--jobs", "2"]
    let gate = try Gate()
    let server = try halfwayServer(halfwayBody, gate: gate)
    for number in 0..<20 { try spool.drop("\(number)", "\(server.url("/\(number)"))\n\(patient)") }
    let worker = try startSpoolrun(["--once"] + limits + [spool.root])
    defer { worker.send(signal: SIGKILL) }
    try await waitUntil("two have begun") { server.requests.count == 2 }
    let other = try startSpoolrun(["--once"] + limits + [spool.root])
    defer { other.send(signal: SIGKILL) }
    try await waitUntil("the other has begun two as well") { server.requests.count == 4 }
    #expect(spool.names("cur").count == 4 && spool.names("new").count == 16)
    gate.open()
    for each in [worker, other] { try await each.result().exits(0) }
    #expect(spool.names("done").count == 20 && server.requests.count == 20)
  }

  /// Running or stopped, until the lease ends the claim is its owner's.
  @Test(arguments: [false, true])
  func aLiveWorkersClaimIsNeverTaken(isStopped: Bool) async throws {
    let (spool, server, worker, gate) = try await startHalfway()
    let claim = try spool.claim(of: "a")
    if isStopped { worker.send(signal: SIGSTOP) }
    for _ in 0..<3 {
      // Whatever time a run takes, the lease has not ended.
      try setModificationTime(spool.path(claim), secondsFromNow: 0)
      try await spool.once(exits: 0)
    }
    #expect(spool.places(of: "a") == [claim] && server.requests.count == 1)
    worker.send(signal: SIGCONT)
    gate.open()
    try await worker.result().exits(0)
    #expect(spool.places(of: "a") == ["done/a"] && server.requests.count == 1)
    #expect(try spool.payload("a") == halfwayBody)
  }

  /// The kernel closes the files of a killed worker one by one. Its successor may have the claim while the dead
  /// worker's lock on the data remains: it waits, instead of taking another name and fetching everything again.
  @Test func theDataOfADyingWorkerIsWaitedFor() async throws {
    try await replay { try await isWaitedFor(within: .seconds(4)) }
  }

  /// - Parameter most: below the 5 s for which a successor waits.
  /// - Returns: false, without a judgement, if the machine stood still for longer.
  private func isWaitedFor(within most: Duration) async throws -> Bool {
    let (spool, server, worker, gate) = try await startHalfway()
    try await worker.stop(SIGKILL)
    gate.open()
    let lock = open(spool.path("partial/a.part"), O_RDWR | O_CLOEXEC)
    try #require(lock >= 0)
    defer { close(lock) }
    try #require(flock(lock, LOCK_EX | LOCK_NB) == 0)
    let closings = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
    defer { close(closings) }
    try #require(inotify_add_watch(closings, spool.path("partial/a.part"), UInt32(IN_CLOSE_WRITE)) >= 0)
    let began = ContinuousClock.now
    let successor = try startSpoolrun(["--once", spool.root])
    try await waitUntil("the successor opens the data, finds it locked, and closes it") {
      var event = [UInt8](repeating: 0, count: 64)
      return read(closings, &event, event.count) > 0
    }
    try #require(flock(lock, LOCK_UN) == 0)
    let isInTime = ContinuousClock.now - began < most
    try await successor.result().exits(0)
    #expect(spool.places(of: "a") == ["done/a"])
    #expect(try spool.payload("a") == halfwayBody)
    guard isInTime else { return false }
    #expect(server.requests.last?.rangeStart ?? 0 > 0, "resumed: \(server.requests)")
    return true
  }

  /// A signal that a broken lease sends would end a worker that does not ignore it (fcntl(2), F_SETLEASE).
  @Test func leaseSignalsAreIgnored() async throws {
    let gate = try Gate()
    let server = try halfwayServer(halfwayBody, gate: gate)
    try spool.drop("a", "\(server.url("/a"))\n\(patient)")
    let worker = try startSpoolrun(["--once", spool.root])
    try await waitUntil("it is under way") { server.requests.count == 1 }
    worker.send(signal: SIGIO)
    worker.send(signal: SIGPIPE)
    gate.open()
    try await worker.result().exits(0)
  }

  /// Of another host only what has been silent for the lease.
  @Test func anotherHostsClaim() async throws {
    let server = try simpleServer()
    for (name, age) in [("fresh", 0), ("old", -3600)] {
      let claim = spool.path("cur/\(name):elsewhere.1.0000000a")
      try writeFile(claim, "\(server.url("/\(name)"))\n")
      try setModificationTime(claim, secondsFromNow: age)
    }
    try await spool.once(exits: 0)
    #expect(spool.places(of: "fresh") == ["cur/fresh:elsewhere.1.0000000a"])
    #expect(spool.places(of: "old") == ["done/old"])
  }

  /// It is looked at when its lease ends, and not with the next scan.
  @Test func anotherHostsClaimWhenItsLeaseEnds() async throws {
    let server = try simpleServer()
    // Before its last sign of life.
    let began = ContinuousClock.now
    try spool.write("tmp/a", "\(server.url("/a"))\n")
    try spool.move("tmp/a", "cur/a:elsewhere.1.0000000a")
    let worker = try startSpoolrun(["--lease", "5s", "--rescan", "1h", spool.root])
    defer { worker.send(signal: SIGKILL) }
    try await waitUntil("it is taken over") { spool.places(of: "a") == ["done/a"] }
    #expect(ContinuousClock.now - began > .seconds(3))
    #expect(try spool.text("lease") == "5\n")
    try await spoolrun("--once", "--lease", "1m", spool.root).exits(78, saying: "a lease of 5 s")
    try await spool.once(exits: 0)
    try await worker.stop()
  }

  /// A worker that slept past its lease, on a file system whose locks other hosts don't see: its successor has the
  /// claim, and has written to the journal. That is a loss like any other, and no error of the spool.
  @Test(.timeLimit(.minutes(30)))
  func theSuccessorOfASleeper() async throws {
    let (spool, server, worker, _) = try await startHalfway()
    worker.send(signal: SIGSTOP)
    let taken = "cur/a:elsewhere.1.0000000a"
    try spool.move(try spool.claim(of: "a"), taken)
    let line =
      "started: 2026-11-21T03:00:00Z attempt=1 worker=elsewhere.1.0000000a boot=b mirror=1 url=\(server.url("/a"))\n"
    let journal = try readFile(spool.path(taken)) + Array(line.utf8)
    let descriptor = open(spool.path(taken), O_WRONLY | O_APPEND | O_CLOEXEC)
    #expect(write(descriptor, line, line.utf8.count) == line.utf8.count)
    close(descriptor)
    worker.send(signal: SIGCONT)
    let result = try await worker.result()
    #expect(result.status == .exited(0) && result.errors == "", "\(result)")
    #expect(try readFile(spool.path(taken)) == journal, "the successor's journal is its own")
    #expect(spool.places(of: "a") == [taken])
  }

  /// The same before the successor has written a line: it finds the journal and the data as they were.
  @Test func theReturningWorkerSaysThatItWasTakenOver() async throws {
    let (_, server, worker, _) = try await startHalfway(in: spool, ["--once", "-v"])
    defer { withExtendedLifetime(server) {} }
    worker.send(signal: SIGSTOP)
    let taken = "cur/a:elsewhere.1.0000000a"
    try spool.move(try spool.claim(of: "a"), taken)
    let journal = try readFile(spool.path(taken))
    worker.send(signal: SIGCONT)
    let result = try await worker.result().exits(0)
    #expect(result.errors.contains(" taken-over job=a at="), "\(result)")
    #expect(!result.errors.contains(" held ") && !result.errors.contains(" cancelled "), "\(result)")
    #expect(try readFile(spool.path(taken)) == journal)
    #expect(spool.length("partial/a.part") >= halfwayBody.count / 2)
  }

  /// While it works, a job that is dropped is run as well, and a half-written one is left.
  @Test func whatIsDroppedMeanwhile() async throws {
    let gate = try Gate()
    let server = try halfwayServer(halfwayBody, gate: gate)
    let other = try simpleServer()
    try spool.drop("a", "\(server.url("/a"))\n\(patient)")
    let worker = try startSpoolrun(["--once", spool.root])
    try await waitUntil("it is under way") { server.requests.count == 1 }
    let writer = open(spool.path("new/half"), O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    let text = Array("\(other.url("/half"))\n".utf8)
    #expect(write(writer, text, text.count) == text.count)
    try spool.drop("b", "\(other.url("/b"))\n")
    gate.open()
    try await worker.result().exits(0)
    #expect(spool.places(of: "b") == ["done/b"])
    #expect(spool.places(of: "half") == ["new/half"] && other.requests(for: "/half").isEmpty)
    // So that no process which another test starts has it any more.
    whileNothingStarts { _ = close(writer) }
    try await spool.once(exits: 0)
    #expect(spool.places(of: "half") == ["done/half"])
  }
}
