import Glibc
import TestSupport
import Testing

@testable import Spool

/// Processes of one host or several, with the real code of the spool, in a world that a seed plays.
@Suite struct SimulationTests {
  /// What one seed came to.
  struct Outcome { let problems: [String]; let story: [String]; let hash: UInt64; let calls: Int; let jobs: Int }

  static func play(_ seed: UInt64) throws -> Outcome {
    let world = World(seed: seed)
    let kind = world.pick([
      FileSystemKind(type: 0xEF53), FileSystemKind(type: 0xEF53),
      FileSystemKind(name: "nfs", sharing: .network, leases: .granted),
      FileSystemKind(name: "sshfs", sharing: .program), FileSystemKind(name: "smb3", sharing: .network),
    ])
    if !kind.isLocal {
      // Not `exchanging`: without it, a copy replaces a claim that a person may just have moved, a known hole.
      world.disk.unknownRenames = world.pick([[], [.withoutReplacing]])
      world.skew = Int64(world.pick([0, 3, -40, 7200, -7200]))
    }
    world.disk.keeping = kind.isLocal ? world.pick([.inOrder, .any]) : .all
    world.start("init") { _, system in
      do { try Spool.create(Play.location, system: system) } catch { world.blame("init: \(error)") }
    }
    world.run()
    let spool = world.disk.root.entries[Array("spool".utf8)]!.inode
    let oracle = Oracle(world, spool: spool)
    let play = Play(world, oracle, kind)
    var jobs = 0
    for _ in 0..<world.random(1...3) {
      // A command that stops between its link and its unlink may remove a name that has come back meanwhile: a known
      // hole of file systems that cannot rename without replacing.
      let peopleFreeze = world.disk.unknownRenames.isEmpty
      /// - Parameter calls: about as many as the process makes.
      func fates(in calls: Int, freezes: Bool = true) -> [Fate] {
        var fates: [Fate] = []
        if world.isChance(1, in: 4) { fates.append(Fate(calls: world.random(1...calls), blow: .death)) }
        for _ in 0..<world.random(0...3) where freezes {
          fates.append(Fate(calls: world.random(1...calls), blow: .freeze(world.pick([2, 10, 30, 130, 300]))))
        }
        if world.isChance(1, in: 6) {
          fates.append(Fate(calls: world.random(1...calls), blow: .failure(world.pick([ENOSPC, EIO, EDQUOT]))))
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
        play.work(number, host: host, passes: 6, fates(in: 400))
      }
      for number in 0..<world.random(0...2) { play.steer(number, gestures: 8, fates(in: 100, freezes: peopleFreeze)) }
      for number in 0..<world.random(0...1) { play.move(number, gestures: 8) }
      for number in 0..<world.random(0...1) { play.edit(number, gestures: 5, fates(in: 100, freezes: peopleFreeze)) }
      if world.isChance(1, in: 4) {
        jobs += 1
        play.write(jobs)
      }
      if world.isChance(1, in: 3) { play.cancel(1, gestures: 3) }
      if world.isChance(1, in: 2) {
        world.start("power") { _, _ in
          HostClock.current.wait(milliseconds: world.random(1...40_000))
          world.cutPower()
        }
      }
      world.run()
      if world.wasCut { oracle.powerWasCut() }
    }
    play.settle()
    world.run()
    oracle.checkEnd()
    return Outcome(problems: world.problems, story: world.story, hash: world.hash, calls: world.calls, jobs: jobs)
  }

  /// SIMULATE=N plays that seed and tells its story; SIMULATE=N-M plays those until one fails, for SIMULATE_SECONDS at
  /// most.
  @Test func `no job is lost, or there twice`() throws {
    func numbers(_ name: String) -> [UInt64] {
      getenv(name).map { String(cString: $0) }?.split(separator: "-").compactMap { UInt64($0) } ?? []
    }
    let wanted = numbers("SIMULATE")
    let seeds = wanted.isEmpty ? 1...80 : wanted[0]...wanted[wanted.count - 1]
    let end = numbers("SIMULATE_SECONDS").first.map { time(nil) + Int($0) }
    var (played, jobs, calls) = (0, 0, 0)
    for seed in seeds {
      let outcome = try Self.play(seed)
      (played, jobs, calls) = (played + 1, jobs + outcome.jobs, calls + outcome.calls)
      if wanted.count == 1 { print(outcome.story.joined(separator: "\n")) }
      #expect(outcome.problems == [], "seed \(seed):\n\(outcome.story.suffix(60).joined(separator: "\n"))")
      if !outcome.problems.isEmpty || end.map({ time(nil) >= $0 }) ?? false { break }
    }
    print("simulation: \(played) seeds, \(jobs) jobs, \(calls) calls")
  }

  @Test func `a seed plays the same story`() throws {
    for seed in UInt64(1)...5 { #expect(try Self.play(seed).hash == Self.play(seed).hash, "seed \(seed)") }
  }
}
