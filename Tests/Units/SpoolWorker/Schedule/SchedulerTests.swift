import Testing

@testable import Spool
@testable import SpoolWorker

/// The schedule without files and without a clock: see ``SchedulerWorld``.
@Suite struct SchedulerTests {
  @Test(arguments: [(1, 1), (3, 1), (8, 4), (20, 20)])
  func allRunOnceWithinTheLimits(jobs: Int, perHost: Int) {
    var world = SchedulerWorld(jobs: jobs, perHost: perHost)
    world.jobs = Set((0..<500).map { "\("abcdef".randomElement() ?? "a")-\($0)" })
    let all = world.jobs
    world.runToEnd { world in
      #expect(world.running.count <= jobs)
      for host in "abcdef" { #expect(world.count(of: String(host)) <= perHost) }
    }
    #expect(world.started.count == 500 && Set(world.started) == all)
  }

  /// A busy host's thousands, more than is looked ahead at, do not keep another's from running.
  @Test func aBusyHostStarvesNobody() {
    var world = SchedulerWorld(jobs: 4, perHost: 2)
    world.jobs = Set((0..<9000).map { "busy-\($0)" } + (0..<20).map { "other-\($0)" })
    world.scheduler.requestPass()
    // The busy host's two never end.
    for _ in 0..<2000 where world.started.count(where: { $0.hasPrefix("other") }) < 20 || world.count(of: "other") > 0 {
      world.turn()
      for (id, name) in world.running where name.hasPrefix("other") { world.end(id) }
      world.now += 100
      if world.scheduler.isPassDue(at: world.now) { world.scheduler.requestPeriodicPass(at: world.now) }
    }
    #expect(world.started.count { $0.hasPrefix("other") } == 20)
    #expect(world.count(of: "busy") == 2)
  }

  /// Of each host the oldest go first.
  @Test func oldestFirstOfEachHost() {
    var world = SchedulerWorld(jobs: 6, perHost: 2)
    world.jobs = Set((0..<900).map { "\("abc".randomElement() ?? "a")-\($0)" })
    world.runToEnd { _ in }
    #expect(world.started.count == 900)
    for host in ["a", "b", "c"] {
      let numbers = world.started.filter { $0.hasPrefix(host + "-") }.compactMap { Int($0.dropFirst(2)) }
      #expect(numbers == numbers.sorted())
    }
  }

  /// As with a pace for each server, of which most wait for their turn.
  @Test func aTurnEndsThoughEachOfManyHostsIsFull() throws {
    var scheduler = Scheduler(TransferLimits(jobs: 8, perHost: 4, commits: 200))
    let hosts = 1200
    for number in 0..<hosts {
      let job = Candidate(name: FileName("\(number)"), origin: .new, modified: Int64(number))
      scheduler.backlog.add(job, Peek(host: "host-\(number)"))
    }
    for _ in 0..<hosts { scheduler.putBack(try scheduler.choice(at: 0), until: 1000, isForTurn: true) }
    #expect(scheduler.nextStep(at: 999) == nil && scheduler.backlog.count == hosts)
    #expect(try scheduler.choice(at: 1000).candidate.name == FileName("0"))
  }

  /// A pass would see that they are not due.
  @Test func jobsThatMayRunEarlyOutlastThePassesMeanwhile() {
    var backlog = PrioritisedBacklog()
    let early = Candidate(name: FileName("a"), origin: .partial, modified: 0, knownDue: 9)
    backlog.add([early, Candidate(name: FileName("b"), origin: .partial, modified: 0)])
    backlog.beginPass(over: [.partial])
    #expect(backlog.candidates == [early])
  }

  /// A pass ends only with all that came before it began; what comes later needs another.
  @Test func nothingThatCameMeanwhileIsMissed() {
    var world = SchedulerWorld(jobs: 1, perHost: 1)
    world.jobs = ["a-1"]
    world.scheduler.requestPass()
    world.turn()
    world.jobs.insert("a-2")
    #expect(!world.scheduler.isSettled || !world.running.isEmpty)
    for id in world.running.keys { world.end(id) }
    #expect(!world.scheduler.isSettled, "the last pass is older than the last job's end")
    world.runToEnd { _ in }
    #expect(world.started == ["a-1", "a-2"])
  }

  /// What does not fit on the disk waits, and lets others go first; after a thousand in vain there is a pause.
  @Test func whatLacksSpaceLetsOthersRun() throws {
    var scheduler = Scheduler(TransferLimits(jobs: 2, perHost: 2, commits: 9))
    scheduler.requestPass()
    scheduler.began([.urgent, .cur, .partial, .new, .standing], at: 0)
    for directory in [Directory.urgent, .cur, .partial, .new, .standing] { scheduler.passes.ended(directory) }
    scheduler.found(
      (0..<1001).map { Candidate(name: FileName("j-\($0)"), origin: .new, modified: Int64($0)) }, took: 1)
    var refused = 0
    while let step = scheduler.nextStep(at: 0) {
      switch step {
      case .look(let candidate): scheduler.backlog.add(candidate, Peek(host: "h", needed: 1000 + UInt64(refused)))
      case .start(let choice):
        let isNews = scheduler.noteLackOfSpace(choice, at: 0)
        #expect(isNews)
        refused += 1
      case .search, .park: Issue.record("there is nothing to search for, or to park")
      }
    }
    #expect(refused == 1000 && scheduler.spaceWait.least == 1000)
    #expect(!scheduler.isSettled, "one is left")
    #expect(scheduler.nextStep(at: SpaceWait.pause) != nil)
    scheduler.spaceCame()
    #expect(!scheduler.passes.areSettled)
  }

  /// What may have killed workers comes last, and runs alone.
  @Test func aSuspectRunsAlone() throws {
    var scheduler = Scheduler(TransferLimits(jobs: 4, perHost: 4, commits: 9))
    scheduler.backlog.add(
      Candidate(name: FileName("suspect"), origin: .partial, modified: 1), Peek(host: "h", deaths: 2))
    scheduler.backlog.add(Candidate(name: FileName("good"), origin: .new, modified: 2), Peek(host: "h"))
    let first = try scheduler.choice(at: 0)
    #expect(first.candidate.name == FileName("good"))
    scheduler.started(1, first)
    #expect(scheduler.nextStep(at: 0) == nil, "not beside another")
    scheduler.ended(1)
    scheduler.started(2, try scheduler.choice(at: 0))
    scheduler.backlog.add(Candidate(name: FileName("late"), origin: .new, modified: 3), Peek(host: "h"))
    #expect(scheduler.nextStep(at: 0) == nil, "nothing beside it")
    scheduler.slots.clear(2)
    #expect(scheduler.nextStep(at: 0) != nil)
  }

  /// Jobs with one output run one after the other, beside the others, and none is lost. Also where more wait than are
  /// kept in mind.
  @Test(arguments: [5, OutputWait.most + 200])
  func oneJobAtATimeForEachOutput(count: Int) {
    var world = SchedulerWorld(jobs: 8, perHost: 8)
    world.outputs = 3
    world.jobs = Set((0..<count).map { "a-\($0)" })
    world.runToEnd { world in
      let busy = world.running.values.map { world.output($0) }
      #expect(Set(busy).count == busy.count)
    }
    #expect(world.started.count == count && Set(world.started).count == count)
  }

  /// The text of a job that waits for an output is read a few times, not at the end of each other job. Otherwise
  /// thousands of jobs with one output would take the worker's time.
  @Test func waitersAreReadOnceForEachStart() {
    var world = SchedulerWorld(jobs: 8, perHost: 8)
    world.outputs = 1
    world.jobs = Set((0..<500).map { "a-\($0)" })
    world.runToEnd { _ in }
    #expect(world.started.count == 500)
    #expect(world.looks <= 10 * 500, "\(world.looks) looks")
  }

  @Test func aJobThatWaitsForAnOutputLetsOthersStart() throws {
    var scheduler = Scheduler(TransferLimits(jobs: 4, perHost: 4, commits: 9))
    func look(_ name: String, at time: Int64, _ output: String) {
      scheduler.backlog.add(
        Candidate(name: FileName(name), origin: .new, modified: time), Peek(host: "h", output: output.exact))
    }
    look("first", at: 1, "o")
    look("second", at: 2, "o")
    look("third", at: 3, "p")
    var started: [String] = []
    while case .start(let choice) = scheduler.nextStep(at: 0) {
      started.append(choice.candidate.name.display)
      scheduler.started(UInt64(started.count), choice)
    }
    #expect(started == ["first", "third"])
    scheduler.ended(2)
    #expect(scheduler.nextStep(at: 0) == nil, "the other's end frees nothing")
    scheduler.ended(1)
    guard case .look(let candidate) = scheduler.nextStep(at: 0) else { throw Unexpected("nothing is free") }
    #expect(candidate.name.display == "second")
  }
}
