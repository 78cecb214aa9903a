import Testing

@testable import Spool
@testable import SpoolWorker

/// What comes first: jobs of three priorities in random order, and what must hold at each start.
@Suite struct PriorityTests {
  private static func name(_ number: Int) -> String {
    let kind = ["", "", "-low", "-high", "-urgent"].randomElement() ?? ""
    return "\("abcd".randomElement() ?? "a")-\(number)\(kind)"
  }

  /// All run, each once unless it was parked. At each start: none of lower priority goes before one of higher priority
  /// that could start, and one of low priority leaves a slot of several free.
  @Test(arguments: [(1, 1), (2, 1), (4, 2), (8, 8)])
  func higherPriorityFirst(jobs: Int, perHost: Int) {
    var world = SchedulerWorld(jobs: jobs, perHost: perHost)
    world.jobs = Set((0..<300).map { Self.name($0) })
    let all = world.jobs.count
    world.willStart = { world, name in
      let priority = SchedulerWorld.priority(name)
      func couldStart(_ other: String) -> Bool {
        SchedulerWorld.priority(other) < priority && world.count(of: String(other.prefix(1))) < perHost
      }
      #expect(!world.jobs.contains(where: couldStart), "\(name) before others")
      if priority == .low, jobs > 1 { #expect(world.running.count < jobs - 1, "\(name) takes the last slot") }
      if priority == .low, perHost > 1 { #expect(world.count(of: String(name.prefix(1))) < perHost - 1) }
      #expect(world.running.count < jobs && world.count(of: String(name.prefix(1))) < perHost)
    }
    world.runToEnd { _ in }
    #expect(world.started.count == all + world.parked.count && Set(world.started).count == all)
    #expect(world.parked.allSatisfy { SchedulerWorld.priority($0) == .low })
  }

  /// Jobs are dropped while others run. One in `urgent/` starts in the same turn if there is a slot or a job of low
  /// priority that can give one up.
  @Test func whatIsDroppedStartsByItsPriority() {
    var world = SchedulerWorld(jobs: 4, perHost: 4)
    var number = 0
    world.runToEnd { world in
      guard number < 2000 else { return }
      for _ in 0..<Int.random(in: 1...3) {
        world.drop(Self.name(number))
        number += 1
      }
      for id in world.running.keys.shuffled().prefix(Int.random(in: 0...2)) { world.end(id) }
      world.turn()
      world.turn()
      let waits = world.jobs.contains { SchedulerWorld.priority($0) == .high }
      #expect(!waits || world.running.count == 4 && world.count(of: .low) == 0)
    }
    #expect(Set(world.started).count == number)
    #expect(!world.parked.isEmpty)
  }

  /// Other workers have the slots of `a`. A slot of this worker that gets free is used at once; another one is taken
  /// only when it is time to look again.
  @Test func ownSlotsAreUsedAgain() throws {
    var scheduler = Scheduler(TransferLimits(jobs: 9, perHost: 9, commits: 9))
    for number in 0..<4 {
      let candidate = Candidate(name: FileName("\(number)"), origin: .new, modified: Int64(number))
      scheduler.backlog.add(candidate, Peek(host: "a"))
    }
    scheduler.started(1, try scheduler.choice(at: 0))
    scheduler.putBack(try scheduler.choice(at: 0), until: 1000)
    #expect(scheduler.nextStep(at: 1) == nil)
    scheduler.ended(1)
    scheduler.started(2, try scheduler.choice(at: 2))
    #expect(scheduler.nextStep(at: 3) == nil)
    _ = try scheduler.choice(at: 1000)
  }

  /// A server whose slots others had for a while.
  @Test func aJobIsParkedForOneOfAServerThatIsFreeAgain() throws {
    var scheduler = Scheduler(TransferLimits(jobs: 1, perHost: 9, commits: 9))
    func look(_ name: String, _ host: String, _ priority: Priority) {
      scheduler.backlog.add(
        Candidate(name: FileName(name), origin: .new, modified: 1), Peek(host: host, priority: priority))
    }
    look("wanted", "a", .high)
    scheduler.putBack(try scheduler.choice(at: 0), until: 1000)
    look("low", "b", .low)
    scheduler.started(1, try scheduler.choice(at: 1))
    #expect(scheduler.nextStep(at: 1001) == .park(1))
  }

  /// Nor does a slot help a job that waits for the pace of its server.
  @Test(arguments: [1, 2, 9]) func noJobIsParkedForOneThatWaitsForItsTurn(jobs: Int) throws {
    var scheduler = Scheduler(TransferLimits(jobs: jobs, perHost: 9, commits: 9))
    func look(_ name: String, _ priority: Priority) {
      scheduler.backlog.add(
        Candidate(name: FileName(name), origin: .new, modified: 1), Peek(host: "a", priority: priority))
    }
    look("low", .low)
    scheduler.started(1, try scheduler.choice(at: 0))
    look("wanted", .high)
    if jobs > 1 {
      scheduler.putBack(try scheduler.choice(at: 1), until: 50_000, isForTurn: true)
    } else {
      scheduler.slots.fill("a", until: 50_000, isForTurn: true)
    }
    #expect(scheduler.nextStep(at: 2) == nil)
    #expect((scheduler.nextStep(at: 50_000) == .park(1)) == (jobs == 1), "its turn has come")
  }

  /// `priority: high` may be a default of the spool.
  @Test func manyOfHighPriorityTakeBoundedMemory() {
    var backlog = PrioritisedBacklog()
    for number in 0..<PrioritisedBacklog.horizon + 9 {
      let candidate = Candidate(name: FileName("\(number)"), origin: .new, modified: 1)
      backlog.add(candidate, Peek(host: "a", priority: .high))
    }
    #expect(backlog.count == PrioritisedBacklog.horizon && backlog.isSomethingPassedOver)
  }

  /// However many others wait, and in whatever order they are read.
  @Test func urgentOnesStartBehindManyOthers() {
    var world = SchedulerWorld(jobs: 4, perHost: 4)
    world.jobs = Set((0..<20_000).map { "a-\($0)" } + ["b-1-urgent"])
    world.scheduler.requestPass()
    world.turn()
    #expect(world.started.first == "b-1-urgent")
    world.drop("a-30000-urgent")
    world.turn()
    #expect(!world.started.contains("a-30000-urgent"), "there is no slot")
    world.end(2)
    world.turn()
    #expect(world.started.last == "a-30000-urgent")
  }

  /// The youngest of those whose slot is of use, and no more than are needed.
  @Test func theYoungestLowOneIsParked() {
    var world = SchedulerWorld(jobs: 4, perHost: 2)
    world.jobs = ["a-1-low", "b-2-low", "c-3-low"]
    world.scheduler.requestPass()
    world.turn()
    #expect(world.count(of: .low) == 3)
    world.drop("d-4")
    world.turn()
    world.drop("d-5-urgent")
    world.turn()
    #expect(world.parked.count == 1 && world.count(of: .high) == 1 && world.count(of: .low) == 2)
    let youngest = world.started.prefix(3).last ?? ""
    #expect(world.parked == [youngest])
    // There is a slot again, but not for this host.
    world.end(world.running.first { $0.value == "d-4" }?.key ?? 0)
    world.drop("d-6")
    world.turn()
    world.drop("d-7-urgent")
    world.turn()
    #expect(world.parked.count == 1, "none of its host is of low priority")
  }

  @Test func oneOfItsHostIsParkedWhereTheHostHasNoSlot() {
    var world = SchedulerWorld(jobs: 9, perHost: 2)
    world.jobs = ["a-1-low", "b-2-low"]
    world.scheduler.requestPass()
    world.turn()
    world.drop("a-3")
    world.turn()
    world.drop("a-4-urgent")
    world.turn()
    #expect(world.parked == ["a-1-low"])
    #expect(Set(world.running.values) == ["b-2-low", "a-3", "a-4-urgent"])
  }

  /// With a single slot, one of low priority gets it when nothing else waits.
  @Test func aSingleSlotIsForAll() {
    var world = SchedulerWorld(jobs: 1, perHost: 1)
    world.jobs = ["a-1-low", "a-2"]
    world.runToEnd { _ in }
    #expect(world.started == ["a-2", "a-1-low"])
  }

  /// Jobs of higher priority never end, and one that has waited for a day gets a turn nevertheless, in its order. One
  /// that has not does not.
  @Test(arguments: [("low", "normal"), ("low", "high"), ("low", "urgent"), ("normal", "urgent")])
  func nobodyStarves(patient: String, busy: String) {
    var world = SchedulerWorld(jobs: 3, perHost: 3)
    world.agedBefore = 10
    for number in 50..<54 { world.drop("b-\(number)-\(busy)") }
    world.turn()
    for number in [1, 2, 11] { world.drop("a-\(number)-\(patient)") }
    for number in 100..<400 {
      world.drop("b-\(number)-\(busy)")
      world.turn()
      if world.running.count == 3, let id = world.running.keys.min() { world.end(id) }
      world.now += 100
    }
    let turns = world.started.indices.filter { world.started[$0].hasPrefix("a-") }
    #expect(turns.map { world.started[$0] } == ["a-1-\(patient)", "a-2-\(patient)"])
    #expect(turns.allSatisfy { $0 < 40 })
  }

  /// Thousands of low priority, more than are kept in mind, do not keep a job of normal priority among them from being
  /// found.
  @Test func aNormalOneAmongThousandsOfLowOnesIsFound() {
    var world = SchedulerWorld(jobs: 4, perHost: 4)
    world.jobs = Set((0..<12_000).map { "a-\($0)-low" } + ["b-5"])
    world.scheduler.requestPass()
    // The others never end.
    for _ in 0..<3000 where !world.started.contains("b-5") {
      world.turn()
      world.now += 100
      world.passIfDue()
    }
    #expect(world.started.contains("b-5"))
    #expect(world.count(of: .low) <= 3)
  }

  @Test func allOfManyOfLowPriorityRun() {
    var world = SchedulerWorld(jobs: 40, perHost: 40)
    world.jobs = Set((0..<9000).map { "a-\($0)-low" })
    var turns = 0
    world.scheduler.requestPass()
    while turns < 100_000, !world.running.isEmpty || !world.scheduler.isSettled {
      turns += 1
      world.turn()
      for id in Array(world.running.keys) { world.end(id) }
      world.now += 100
      world.passIfDue()
    }
    #expect(world.started.count == 9000 && Set(world.started).count == 9000)
  }

  /// A job of high priority that waits for its next attempt is remembered, because a pass would find it late.
  @Test func aRetryIsRemembered() {
    var scheduler = Scheduler(TransferLimits(jobs: 1, perHost: 1, commits: 9))
    let candidate = Candidate(name: FileName("x"), origin: .partial, modified: 50)
    scheduler.willRetry(FileName("x"), .high, at: 50)
    scheduler.willRetry(FileName("y"), .normal, at: 40)
    scheduler.addDue(at: 49)
    #expect(scheduler.nextStep(at: 0) == nil)
    scheduler.addDue(at: 50)
    #expect(scheduler.nextStep(at: 0) == .look(candidate))
    scheduler.addDue(at: 51)
    #expect(scheduler.nextStep(at: 0) == nil)
  }

  /// A pass finds the jobs of its directories again, and forgets those that it knew. But one of high priority outside
  /// of `urgent/` would be found late.
  @Test func aPassDoesNotForgetHighPriority() {
    var scheduler = Scheduler(TransferLimits(jobs: 1, perHost: 1, commits: 9))
    let candidate = Candidate(name: FileName("x"), origin: .new, modified: 1)
    for _ in 0..<3 {
      scheduler.backlog.add(candidate, Peek(host: "h", priority: .high))
      scheduler.began([.urgent, .cur, .partial, .new], at: 0)
    }
    #expect(scheduler.backlog.count == 1)
  }
}
