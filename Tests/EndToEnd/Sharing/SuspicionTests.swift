import Glibc
import Synchronization
import TestSupport
import Testing

/// Jobs in whose attempts workers died.
@Suite struct SuspicionTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  /// A claim of workers that are dead, each of which began with the job.
  private func leave(_ job: String, _ text: String, deaths: Int, in spool: TemporarySpool, age: Int = 0) throws {
    let host = try hostName()
    let starts = (1...deaths).map {
      "started: 2026-11-21T03:00:00Z attempt=1 worker=\(host).\($0).0000000a boot=b mirror=1 url=http://127.0.0.1/\n"
    }
    let path = spool.path("cur/\(job):\(host).\(deaths).0000000a")
    try writeFile(path, text + starts.joined())
    try setModificationTime(path, secondsFromNow: -age)
  }

  /// The oldest of all, so that each worker would take it first. The others are done all the same, and it comes to an
  /// end.
  @Test func aJobThatKillsEachWorkerIsGivenUp() async throws {
    let server = try simpleServer()
    try spool.install("verify", "test \"$SPOOLRUN_JOB\" != killer || kill -9 $PPID")
    try spool.drop("killer", "url: \(server.url("/killer"))\noutput: killer\nattempts: 4\n")
    try setModificationTime(spool.path("new/killer"), secondsFromNow: -1000)
    for number in 0..<6 { try spool.drop("\(number)", "url: \(server.url("/x"))\noutput: \(number)\n") }
    for round in 1...4 {
      #expect(try await spoolrun("--once", "--jobs", "2", spool.root).status == .killed(signal: SIGKILL))
      // Some of the others may have been running beside it, and be under suspicion as well: these come first from the
      // moment on when they have fewer deaths than it.
      if round == 4 { #expect(spool.payloads.count == 6) }
    }
    try await spoolrun("--once", spool.root).exits(1, saying: "kills-worker")
    let record = try spool.lastFailure("failed/killer")
    #expect(record["code"] == "kills-worker" && record["class"] == "permanent")
    #expect(record["reason"]?.hasPrefix("4 workers in a row died") == true, "\(record)")
    // Its data stays, and a person may send it again.
    #expect(spool.length("partial/killer.part") == 8)
    try spool.move("hooks/verify", "hooks/gone")
    try spool.move("failed/killer", "new/killer")
    try await spool.once(exits: 0)
    // Nothing says that the answers before each death ended well.
    #expect(server.requests(for: "/killer").count == 5 && spool.payloads.count == 7)
  }

  /// A power cut is a death as well, of all that ran.
  @Test func fewDeathsNeverGiveAJobUp() async throws {
    let server = try simpleServer()
    try leave("a", "\(server.url("/a"))\nattempts: 1\n", deaths: 2, in: spool)
    try await spool.once(exits: 0)
    try leave("b", "\(server.url("/b"))\nattempts: 1\n", deaths: 3, in: spool)
    try await spool.once(exits: 1)
    #expect(spool.payloads == ["a"])
  }

  /// Neither those that ran before it nor those that come while it runs.
  @Test func afterTwoDeathsItRunsAlone() async throws {
    let gate = try Gate()
    let running = Mutex<Set<String>>([])
    let besides = Mutex<[Set<String>]>([])
    let server = try ScriptedServer { request, reply in
      let all = running.withLock { running in
        running.insert(request.target)
        return running
      }
      if all.contains("/suspect"), all.count > 1 { besides.withLock { $0.append(all) } }
      switch request.target {
      case "/suspect":
        try spool.drop("late", "http://127.0.0.1:\(request.value("host")?.split(separator: ":").last ?? "")/late\n")
        // A worker that may start it does within milliseconds.
        try reply.pause(milliseconds: 1500)
      case "/late": break
      default: try reply.stall(until: gate)
      }
      // Before its answer: the next request may come before this thread goes on.
      running.withLock { _ = $0.remove(request.target) }
      try reply.respond("200 OK", body: [1])
    }
    try leave("suspect", "\(server.url("/suspect"))\n\(patient)", deaths: 2, in: spool, age: 1000)
    for name in ["a", "b"] { try spool.drop(name, "\(server.url("/\(name)"))\n\(patient)") }
    let worker = try startSpoolrun([spool.root])
    try await waitUntil("the others run") { running.withLock { $0 == ["/a", "/b"] } }
    // There is room for it all the time.
    try spool.drop("c", "\(server.url("/c"))\n\(patient)")
    try await waitUntil("another runs") { running.withLock { $0 == ["/a", "/b", "/c"] } }
    gate.open()
    try await waitUntil("all are done") { spool.names("done").count == 5 }
    try await worker.stop().exits(0)
    #expect(besides.withLock { $0 } == [])
    #expect(server.requests.map(\.target).suffix(2) == ["/suspect", "/late"])
  }

  /// One death is nothing to be alone for.
  @Test func afterOneDeathItRunsBesideOthers() async throws {
    let gauge = Gauge()
    let gate = try Gate()
    let server = try ScriptedServer { _, reply in
      try gauge.hold { if !gate.isOpen { try reply.stall(until: gate) } }
      try reply.respond("200 OK", body: [1])
    }
    try leave("suspect", "\(server.url("/suspect"))\n\(patient)", deaths: 1, in: spool, age: 1000)
    for name in ["a", "b"] { try spool.drop(name, "\(server.url("/\(name)"))\n\(patient)") }
    let worker = try startSpoolrun(["--once", "-v", spool.root])
    try await waitUntil("all run") { gauge.now == 3 }
    gate.open()
    let result = try await worker.result().exits(0)
    let starts = result.errors.split(separator: "\n").filter { $0.contains(" started ") }
    #expect(starts.count == 3 && starts.last?.contains("job=suspect") == true, "\(result)")
  }

  private func rig(_ spool: TemporarySpool, _ arguments: String...) throws -> RunningCommand {
    try RunningCommand([try productPath("FaultRig"), spool.root, "record=\(spool.path("calls"))"] + arguments)
  }

  /// A long transfer keeps others waiting for no longer than it takes to see that it does no harm.
  @Test func whatHasRunForAWhileIsCleared() async throws {
    let gate = try Gate()
    let server = try ScriptedServer { request, reply in
      if request.target == "/suspect" { try reply.stall(until: gate) }
      try reply.respond("200 OK", body: [1])
    }
    try leave("suspect", "\(server.url("/suspect"))\n\(patient)", deaths: 2, in: spool)
    let worker = try rig(spool, "probation=500", "watch=yes")
    try await waitUntil("it runs") { server.requests.count == 1 }
    try spool.drop("a", "\(server.url("/a"))\n")
    try await waitUntil("another is done beside it") { spool.payloads == ["a"] }
    gate.open()
    try await waitUntil("it is done") { spool.places(of: "suspect") == ["done/suspect"] }
    try await worker.stop().exits(0)
    #expect(try spool.lines("done/suspect").map(\.key).suffix(4) == ["cleared", "response", "verified", "done"])
  }

  /// Where there are always others, it waits for a while, and not for ever.
  @Test(arguments: [1, 2])
  func aStreamOfOthersDoesNotStarveIt(deaths: Int) async throws {
    var index = 0
    // On a busy machine the time for which it waits is over before two others are done.
    for play in 0..<6 where index < 2 { index = try await othersBeforeIt(deaths, probation: 500 << play) }
    #expect(index > 1)
  }

  /// - Parameter probation: in milliseconds.
  private func othersBeforeIt(_ deaths: Int, probation: Int) async throws -> Int {
    let most = 10 * probation
    let spool = try TemporarySpool()
    let server = try ScriptedServer { request, reply in
      let number = Int(request.target.dropFirst()) ?? most
      // Before this one is done, so that there always is one more.
      if number < most, fileStatus(spool.path("files/suspect")) == nil {
        let port = request.value("host")?.split(separator: ":").last ?? ""
        try spool.drop("\(number + 2)", "http://127.0.0.1:\(port)/\(number + 2)\n")
      }
      try reply.respond("200 OK", body: [1])
    }
    try leave("suspect", "\(server.url("/suspect"))\n", deaths: deaths, in: spool, age: 1000)
    for number in 1...2 { try spool.drop("\(number)", "\(server.url("/\(number)"))\n") }
    try await rig(spool, "probation=\(probation)", "jobs=1").result().exits(0)
    let targets = server.requests.map(\.target)
    let index = try #require(targets.firstIndex(of: "/suspect"))
    #expect(targets.count < most, "it came after \(index) of \(targets.count)")
    return index
  }
}
