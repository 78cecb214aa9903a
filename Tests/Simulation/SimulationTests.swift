import Glibc
import TestSupport
import Testing

@testable import Spool

/// Processes of one host or several, with the real code of the spool, in a world that a seed plays.
@Suite(.serialized) struct SimulationTests {
  /// What one seed came to.
  struct Outcome: Sendable {
    let problems: [String]; let story: [String]; let hash: UInt64; let calls: Int; let jobs: Int
    let cast: [(number: Int, name: String)]
  }

  /// - Parameter isWhole: whether workers are whole, with transfers, or only what they do with claims.
  static func play(_ seed: UInt64, isWhole: Bool, without omitted: Omitted = Omitted()) throws -> Outcome {
    Watchdog.look(seed)
    defer { alarm(0) }
    let world = World(seed: seed)
    world.omitted = omitted
    // Moves by link and unlink, which others see half done.
    let isHalving = !isWhole && world.isChance(1, in: 3)
    var kind = world.pick([
      FileSystemKind(type: 0xEF53), FileSystemKind(type: 0xEF53), FileSystemKind(type: 0xEF53),
      FileSystemKind(name: "nfs", sharing: .network, leases: .granted),
      FileSystemKind(name: "sshfs", sharing: .program), FileSystemKind(name: "smb3", sharing: .network),
    ])
    if isHalving {
      kind = world.pick([
        FileSystemKind(name: "nfs", sharing: .network, leases: .granted),
        FileSystemKind(name: "smb3", sharing: .network),
      ])
    }
    // Those that found something before there were any keep their stories.
    let hidesLocks = !kind.isLocal && !isHalving && seed % 16 == 12
    if hidesLocks {
      kind = FileSystemKind(name: "sshfs", sharing: .program)
      world.hideLocks()
    }
    if !kind.isLocal {
      let plain: Set<RenameManner> = [.withoutReplacing, .exchanging]
      world.disk.unknownRenames = isHalving ? plain : world.pick([[], plain])
      world.skew = Int64(world.pick([0, 3, -40, 7200, -7200]))
    }
    world.disk.keeping = kind.isLocal ? world.pick([.inOrder, .any]) : .all
    if world.disk.keeping == .any { kind = FileSystemKind(type: 0x9123_683E) }
    world.start("init") { _, system in
      do { try Spool.create(Play.location, system: system) } catch { world.blame("init: \(error)") }
    }
    world.run()
    let spool = world.disk.root.entries[Array("spool".utf8)]!.inode
    let oracle = Oracle(world, spool: spool)
    var play = Play(world, oracle, kind)
    // Those that found something before there were any keep their stories.
    let whole = isWhole ? WholeWorkers(play, spool: spool, hasPrograms: seed % 8 == 3) : nil
    if let whole { (play.more, play.pieces) = ({ whole.more($0) }, { whole.servers.declaredPieces($0) }) }
    var jobs = 0
    let isCalm = world.isChance(1, in: 4)
    for _ in 0..<world.random(1...3) {
      // A command that stops between its link and its unlink may remove a name that has come back meanwhile: a known
      // hole of file systems that cannot rename without replacing.
      let peopleFreeze = world.disk.unknownRenames.isEmpty
      // Nor does anything tell a worker that stands still from a dead one where locks are not seen.
      /// - Parameter calls: about as many as the process makes.
      func fates(in calls: Int, freezes: Bool = true) -> [Fate] {
        func fate(_ blow: Fate.Blow) -> Fate {
          let kind = world.pick([.any, .any] + Fate.Kind.allCases)
          let most = kind == .any ? calls : kind == .truncate ? 3 : max(2, calls / 50)
          return Fate(blow, at: kind, after: world.random(1...most))
        }
        var fates: [Fate] = []
        if isCalm { return fates }
        if world.isChance(1, in: 4) { fates.append(fate(.death)) }
        if world.isChance(1, in: 8) { fates.append(fate(.powerCut)) }
        if isWhole, world.isChance(1, in: 4) {
          let error = world.pick([EIO, ENOSPC])
          for calls in 1...world.random(1...4) { fates.append(Fate(.failure(error), at: .truncate, after: calls)) }
        }
        if isWhole, world.isChance(1, in: 8) {
          fates.append(Fate(.lastFailure(EIO), at: .sync, after: world.random(1...12)))
        }
        for _ in 0..<world.random(0...3) where freezes {
          fates.append(fate(.freeze(world.pick([2, 10, 30, 130, 300]))))
        }
        if world.isChance(1, in: 4) {
          let error = world.pick([ENOSPC, EIO, EDQUOT])
          fates.append(fate(world.isChance(1, in: 3) ? .lastFailure(error) : .failure(error)))
        }
        return fates
      }
      let count = world.random(1...3)
      for _ in 0..<count {
        play.drop(jobs + 1...jobs + 2, fates(in: 40))
        jobs += 2
      }
      for number in 1...world.random(1...3) {
        let host = kind.isLocal ? 1 : world.random(1...2)
        if let whole {
          let stays = world.isChance(1, in: 3) ? world.pick([5000, 100_000, 4_000_000]) : nil
          let fates = fates(in: world.pick([300, 1500]), freezes: !hidesLocks)
          whole.work(number, host: host, stays: stays, fates)
        } else {
          play.work(number, host: host, passes: 6, fates(in: 400, freezes: !hidesLocks))
        }
      }
      for number in 0..<world.random(0...2) { play.steer(number, gestures: 8, fates(in: 100, freezes: peopleFreeze)) }
      if isHalving || world.isChance(1, in: 6) { play.grab(9, looks: 25) }
      if isHalving {
        play.crowd(jobs + 1...jobs + 3)
        jobs += 3
      }
      let least = isHalving ? 1 : 0
      for number in 0..<world.random(least...1 + least) { play.move(number, gestures: 8) }
      for number in 0..<world.random(least...1 + least) {
        play.edit(number, gestures: 5, fates(in: 100, freezes: peopleFreeze))
      }
      for _ in 0..<world.random(least...2) {
        jobs += 1
        play.write(jobs)
      }
      if let whole, world.isChance(1, in: 4) { whole.restore(1, gestures: 5) }
      if let whole, world.isChance(1, in: 4) { whole.refetch(1, gestures: 4) }
      if isWhole, world.isChance(1, in: 3) {
        play.swap(jobs + 1...jobs + 4)
        jobs += 4
      }
      if whole?.programs != nil, world.isChance(1, in: 2) {
        play.dropTogether(jobs + 1...jobs + 4, fates(in: 60))
        jobs += 4
      }
      if world.isChance(1, in: 3) { play.cancel(1, gestures: 3) }
      // As those with programs.
      if isWhole, kind.isLocal, seed % 8 == 7 {
        for _ in 0..<world.random(0...3) {
          world.start("clock") { _, _ in
            Host.current.wait(milliseconds: world.random(1...world.pick([3000, 60_000])))
            let isAsleep = world.isChance(1, in: 3)
            world.jump(
              seconds: world.pick(isAsleep ? [70, 1200, 90_000] : [70, 300, 300, 7 * 86_400, -300, -7 * 86_400]),
              asleep: isAsleep)
          }
        }
      }
      if world.isChance(1, in: 2) {
        world.start("power") { _, _ in
          if isWhole, world.isChance(1, in: 2) {
            var (left, thread) = (world.random(1...4), world.thread)
            let wanted = whole?.servers.flips == true && world.isChance(2, in: 3) ? World.Moment.rewritten : nil
            world.onMoment = { moment in
              if wanted ?? moment != moment { return }
              left -= 1
              if left == 0 || wanted != nil { world.wake(thread) }
            }
            Host.current.wait(milliseconds: 60_000)
            thread = nil
            Host.current.wait(milliseconds: world.random(0...world.pick([0, 5, 300, 2000])))
          } else {
            Host.current.wait(milliseconds: world.random(1...40_000))
          }
          world.cutPower()
        }
      }
      world.run()
      if world.wasCut {
        oracle.powerWasCut()
        whole?.powerWasCut()
      }
    }
    world.isEnding = true
    if let whole {
      whole.settle()
    } else {
      play.settle()
      world.run()
    }
    oracle.checkEnd()
    whole?.programs?.checkEnd()
    // They have each other.
    oracle.onChange = { _ in }
    world.forgetListeners()
    return Outcome(
      problems: world.problems, story: world.story, hash: world.hash, calls: world.calls, jobs: jobs, cast: world.cast)
  }

  /// - Parameter reduces: whether to leave out of a story with a problem what that can do without, one by one.
  private static func play(_ seed: UInt64, isWhole: Bool, reduces: Bool) throws -> (outcome: Outcome, omitted: Omitted)
  {
    let first = try play(seed, isWhole: isWhole)
    var (outcome, omitted) = (first, Omitted())
    if first.problems.isEmpty || !reduces { return (outcome, omitted) }
    let end = secondsOfCPU + 60
    for part in [\Omitted.processes, \Omitted.fates] {
      // The first one makes the spool.
      for number in first.cast.map(\.number).dropFirst() where secondsOfCPU < end {
        var less = omitted
        less[keyPath: part].insert(number)
        let played = try play(seed, isWhole: isWhole, without: less)
        if !played.problems.isEmpty { (outcome, omitted) = (played, less) }
      }
    }
    return (outcome, omitted)
  }

  private static func numbers(_ name: String) -> [UInt64] {
    getenv(name).map { String(cString: $0) }?.split(separator: "-").compactMap { UInt64($0) } ?? []
  }

  /// swift-testing takes a backtrace of each error that is thrown, in a third of the time of a play.
  private static func keepNoBacktraces() {
    for hook in ["_swift_willThrow", "_swift_willThrowTypedImpl"] {
      dlsym(nil, hook)?.storeBytes(of: 0, as: UInt.self)
    }
  }

  private static var secondsOfCPU: Double { Double(clock()) / Double(CLOCKS_PER_SEC) }

  /// SIMULATE=N plays that seed and tells its story; SIMULATE=N-M plays those until one fails, for SIMULATE_SECONDS of
  /// CPU at most; SIMULATE=N-M-K plays each K-th.
  func playSeeds(
    _ usual: ClosedRange<UInt64>, _ play: @escaping @Sendable (UInt64, _ reduces: Bool) throws -> (Outcome, Omitted)
  ) async throws {
    let wanted = Self.numbers("SIMULATE")
    let seeds = wanted.isEmpty ? usual : wanted[0]...wanted[min(wanted.count, 2) - 1]
    let end = Self.numbers("SIMULATE_SECONDS").first.map { Self.secondsOfCPU + Double($0) }
    if !wanted.isEmpty { Self.keepNoBacktraces() }
    var (played, jobs, calls) = (0, 0, 0)
    for seed in stride(from: seeds.lowerBound, through: seeds.upperBound, by: wanted.count > 2 ? Int(wanted[2]) : 1) {
      // A play blocks its thread for seconds, and the pool that other tests need has two.
      let (outcome, omitted) = try await onThread { try play(seed, wanted.count == 1) }
      (played, jobs, calls) = (played + 1, jobs + outcome.jobs, calls + outcome.calls)
      if wanted.count == 1 { print(outcome.story.joined(separator: "\n")) }
      let story = outcome.story.suffix(60).joined(separator: "\n")
      #expect(outcome.problems == [], "seed \(seed), without \(outcome.text(of: omitted)):\n\(story)")
      if !outcome.problems.isEmpty || end.map({ Self.secondsOfCPU >= $0 }) ?? false { break }
    }
    print("simulation: \(played) seeds, \(jobs) jobs, \(calls) calls, \(Self.secondsOfCPU) s of CPU")
  }

  @Test func `no claim is lost, or there twice`() async throws {
    try await playSeeds(1...60) { try Self.play($0, isWhole: false, reduces: $1) }
  }

  @Test func `whole workers lose nothing, and publish nothing wrong`() async throws {
    try await playSeeds(1...40) { try Self.play($0, isWhole: true, reduces: $1) }
  }

  /// Seeds that have found something.
  private static let former: [(seed: UInt64, isWhole: Bool)] = [
    // A move by link and unlink puts back what an edit has exchanged for a moment.
    (35_760, false),
    // The same, where the edit finds its own text put back.
    (2255, false),
    // An edit stands still before its exchange and after it, and a person edits the job each time.
    (16_072, false),
    // Where names cannot be exchanged, a person moves the claim of an edit just before the new text replaces it.
    (411, false),
    // There, a worker's claim of a file that it has still to copy looks like a frozen worker's.
    (282, false),
    // An edit sees its job, and reads another one that has got the job's name for a moment.
    (8979, false),
    // There, a person moves the job on while the edit looks where it is.
    (2_701_000_030_052, false),
    // A move takes another job away by the name that its own has left, and its own comes back to that name.
    (2_800_000_039_202, false),
    // It stands still while it looks, and the job has moved since it was seen.
    (3_101_000_033_062, false),
    // A copy that has to give way gets a new name while its names are looked for.
    (3_200_000_000_793, false),
    // The disk is full when an edit is about to give its claim back; the next edit has a claim of that name.
    (4483, false),
    // A power cut halves the claim of a job that was moved with the owner's suffix.
    (950_007_229, false),
    // An edit takes a job from its worker by link; the move is completed for it, and the worker claims the job again.
    (7905, false),
    // A worker takes the new name of a half move out of `cur/`, which a person has moved on, for half a claim; then
    // the old one goes.
    (900_000_270, true), (900_001_113, true),
    // After half of a claim has come back, a job that was moved with the owner's suffix is held, and runs.
    (900_009_392, true),
    // A move by link and unlink begins between two looks of a worker that claims the job.
    (6337, false),
    // Two who move a job at once see each other's new name, and both remove theirs.
    (2834, false),
    // What a failed drop removes is another job by then.
    (900_023_065, true),
    // A worker is frozen while it compares the clocks, and takes a job from one that lives.
    (2_102_000_051_845, false),
    // An edit stands still behind its exchange and before the one that undoes it, and a person moves its text on.
    (4_001_000_105_247, false),
    // Where names cannot be exchanged, a move has taken the claim of an edit by mistake when the new text replaces it.
    (4_003_000_077_993, false),
    // A person moves the other name of half a claim on while a worker looks for it.
    (2_200_000_000_288, false),
    // An edit gives a claim back by link and unlink, and a worker takes that for half a claim.
    (2_106_000_025_821, false),
    // A worker that slept right before its rename judges another file by the old time.
    (2_403_000_009_939, false),
    // Two people move the other name on, one after the other, while a command looks for it.
    (2_503_000_034_942, false),
    // There, a worker takes the claim of an edit whose text has an old time for a frozen one's.
    (20_001_000_005_669, false),
    // While a move looks whether it has been made, the file is moved there, and another job gets its old name.
    (51_000_000_065_660, false),
    // A repair from a server without ranges copies the old file anew in each attempt.
    (2_101_000_001_197, true),
  ]

  @Test(arguments: former) func `what was found does not come back`(_ seed: UInt64, isWhole: Bool) async throws {
    let outcome = try await onThread { try Self.play(seed, isWhole: isWhole) }
    #expect(outcome.problems == [], "seed \(seed)")
  }

  @Test func `a job moves through its states where two names of a file have two inodes`() async throws {
    let problems = try await onThread { try BlindDisk().play() }
    #expect(problems == [])
  }

  @Test func `a seed plays the same story`() async throws {
    for seed in UInt64(1)...5 {
      for isWhole in [false, true] {
        let hashes = try await onThread { try [1, 2].map { _ in try Self.play(seed, isWhole: isWhole).hash } }
        #expect(hashes[0] == hashes[1], "seed \(seed)")
      }
    }
  }
}

/// A disk like that of SSHFS, where moves by link and unlink show no second name of the file.
private struct BlindDisk {
  private struct Misplaced: Error {
    let step: String
    let found: [String]
  }

  func play() throws -> [String] {
    let world = World(seed: 1)
    (world.disk.isBlind, world.disk.unknownRenames) = (true, [.withoutReplacing, .exchanging])
    let kind = FileSystemKind(name: "sshfs", sharing: .program)
    world.start("mover") { _, system in
      do {
        try Spool.create(Play.location, system: system)
        let owner = WorkerID(host: "host1", process: 7, tag: 7)
        let spool = try Spool(Play.location, owner: owner, boot: "boot", system: system, kind: kind)
        try spool.learnClock()
        try move(spool)
      } catch { world.blame("\(error)") }
    }
    world.run()
    return world.problems
  }

  private func move(_ spool: Spool) throws {
    try drop("a", spool)
    try expect(["new/a"], after: "the drop", spool)
    var claim: Claim? = try self.claim("a", from: .new, spool)
    try expect(["cur/a"], after: "the claim", spool)
    _ = try Steering(spool).perform(.hold, FileName("a"))
    try expect(["hold/a"], after: "hold", spool)
    // Its worker lets go of it.
    claim = nil
    _ = try Steering(spool).perform(.release, FileName("a"))
    try expect(["new/a"], after: "release", spool)
    claim = try self.claim("a", from: .new, spool)
    try claim?.finish()
    try expect(["done/a"], after: "the end", spool)
    try drop("b", spool)
    try self.claim("b", from: .new, spool).park(until: spool.now())
    try expect(["partial/b", "done/a"], after: "an attempt", spool)
    _ = try Steering(spool).perform(.high, FileName("b"))
    try expect(["urgent/b", "done/a"], after: "high", spool)
    _ = try Steering(spool).perform(.cancel, FileName("b"))
    try expect(["done/a"], after: "cancel", spool)
  }

  private func drop(_ name: String, _ spool: Spool) throws {
    _ = try Drops(spool).drop("http://host/\(name)\n", as: JobName(FileName(name))!)
  }

  private func claim(_ name: String, from origin: Directory, _ spool: Spool) throws -> Claim {
    guard case .claimed(let claim) = try Claims(spool).claim(FileName(name), from: origin, now: spool.now()) else {
      throw Misplaced(step: "\(name) is not claimed", found: [])
    }
    return claim
  }

  private func expect(_ wanted: [String], after step: String, _ spool: Spool) throws {
    var found: [String] = []
    for directory in Directory.ofJobs + [.tmp] {
      for name in try spool.list(directory) {
        let job = ClaimName(name)?.job.fileName ?? name
        found.append("\(directory.rawValue)/\(job.display)")
      }
    }
    if found != wanted { throw Misplaced(step: step, found: found) }
  }
}

extension SimulationTests.Outcome {
  fileprivate func text(of omitted: Omitted) -> String {
    let left = cast.compactMap { (number, name) -> String? in
      if omitted.processes.contains(number) { return name }
      return omitted.fates.contains(number) ? "the faults of \(name)" : nil
    }
    return left.isEmpty ? "nothing" : left.joined(separator: ", ")
  }
}

/// Ends the process if a seed takes minutes: threads that wait for each other would take for ever.
private enum Watchdog {
  private nonisolated(unsafe) static var seed: UInt64 = 0
  private static let patience: UInt32 = 240

  static func look(_ seed: UInt64) {
    Self.seed = seed
    signal(SIGALRM) { _ in fatalError("the simulation of seed \(Watchdog.seed) does not end") }
    alarm(patience)
  }
}
