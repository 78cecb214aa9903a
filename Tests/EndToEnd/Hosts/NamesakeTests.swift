import Glibc
import TestSupport
import Testing

/// Hosts of one name: process 1 of two pods, each with a mount of its own, whose locks the other does not see (bindfs).
@Suite struct NamesakeTests {
  /// They took the job from each other with each pass.
  @Test(.enabled("needs bindfs") { try await Need.bindfs.isMet() })
  func theJobOfALivingOneIsLeftAlone() async throws {
    let spool = try TemporarySpool()
    let (one, other) = (try await BindMount(spool.root), try await BindMount(spool.root))
    let (_, server, worker, gate) = try await startHalfway(
      "# complete\n", in: spool, at: one.directoryPath, ["--once", "-v"], prefix: one.pod("worker-0"))
    defer { withExtendedLifetime(server) { worker.send(signal: SIGKILL) } }
    let claim = try spool.claim(of: "a")
    #expect(claim.hasPrefix("cur/a:worker-0.1."), "\(claim)")
    let second = try await spoolrun(["--once", "-v", other.directoryPath], prefix: other.pod("worker-0")).exits(0)
    #expect(try spool.claim(of: "a") == claim, "\(second)")
    gate.open()
    try await worker.result().exits(0)
    #expect(try spool.payload("a") == halfwayBody)
    #expect(try spool.lines("done/a").filter { $0.key == "started" }.count == 1)
  }

  /// The other one may only sleep, so its data goes on in a new file, and only as far as a checkpoint.
  @Test(.enabled("needs bindfs") { try await Need.bindfs.isMet() })
  func theJobOfADeadOneIsTakenOverAfterItsLease() async throws {
    let spool = try TemporarySpool()
    let (one, other) = (try await BindMount(spool.root), try await BindMount(spool.root))
    let (_, server, worker, gate) = try await startHalfway(
      "# complete\n", in: spool, at: one.directoryPath, ["--lease", "5s"], prefix: one.pod("worker-0"))
    defer { withExtendedLifetime(server) { worker.send(signal: SIGKILL) } }
    let data = try #require(fileStatus(spool.path("partial/a.part"))).st_ino
    try await worker.stop(SIGKILL)
    gate.open()
    let second = try startSpoolrun(["-v", other.directoryPath], prefix: other.pod("worker-0"))
    defer { second.send(signal: SIGKILL) }
    try await waitUntil("it is done") { spool.places(of: "a") == ["done/a"] }
    #expect(try spool.payload("a") == halfwayBody)
    #expect(try #require(fileStatus(spool.path("files/a"))).st_ino != data)
    let started = try spool.lines("done/a").filter { $0.key == "started" }.compactMap { $0["worker"] }
    #expect(started.count == 2 && Set(started.map { $0.prefix(11) }) == ["worker-0.1."], "\(started)")
  }

  /// Nobody waits for the lease of a worker that has ended for sure.
  @Test(.enabled("needs bindfs") { try await Need.bindfs.isMet() })
  func theNextWorkerOfAHostTakesItsJobsAtOnce() async throws {
    let spool = try TemporarySpool()
    let mount = try await BindMount(spool.root)
    let (_, server, worker, gate) = try await startHalfway(
      "# complete\n", in: spool, at: mount.path, ["--once", "--lease", "1h"])
    defer { withExtendedLifetime(server) {} }
    try await worker.stop(SIGKILL)
    gate.open()
    let second = try await spoolrun("--once", "-v", mount.path)
    #expect(second.status == .exited(0) && spool.places(of: "a") == ["done/a"], "\(second)")
    #expect(try spool.payload("a") == halfwayBody)
  }

  @Test func aNameIsGiven() async throws {
    let (spool, server, worker, gate) = try await startHalfway("", ["--once", "--host-id", "site-b_7"])
    defer { withExtendedLifetime(server) {} }
    #expect(try spool.claim(of: "a").hasPrefix("cur/a:site-b_7.\(worker.processID)."))
    gate.open()
    try await worker.result().exits(0)
    let longest = String(repeating: "h", count: 40)
    for wrong in ["", "a.b", "a b", "\u{FC}", longest + "h"] {
      #expect(try await spoolrun("--once", "--host-id", wrong, spool.root).status == .exited(64), "\(wrong)")
    }
    try await spoolrun("--once", "--host-id", longest, spool.root).exits(0)
  }
}
