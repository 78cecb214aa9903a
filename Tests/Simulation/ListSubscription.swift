import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool
@testable import SpoolWorker

/// A subscription to a list whose entries come and go over weeks, with workers of two hosts that die, errors, clocks
/// that are set, and power cuts: each entry becomes one job.
private final class ListSubscription {
  private let world: World
  private let play: Play
  private let oracle: Oracle
  private let whole: WholeWorkers
  private let spool: SimulatedDisk.Inode
  private let isLocal: Bool
  /// The entries of each version of the list, as numbers.
  private let lists: [[Int]]
  /// When there is the last version, in seconds.
  private let lastSince: Int64

  init(_ world: World) throws {
    self.world = world
    var kind = world.pick([
      FileSystemKind(type: 0xEF53), FileSystemKind(name: "nfs", sharing: .network, leases: .granted),
    ])
    world.disk.keeping = kind.isLocal ? world.pick([.inOrder, .any]) : .all
    if world.disk.keeping == .any { kind = FileSystemKind(type: 0x9123_683E) }
    isLocal = kind.isLocal
    world.start("init") { _, system in
      do { try Spool.create(Play.location, system: system) } catch { world.blame("init: \(error)") }
    }
    world.run()
    spool = try #require(world.disk.root.entries[Array("spool".utf8)]?.inode)
    oracle = Oracle(world, spool: spool)
    play = Play(world, oracle, kind)
    whole = WholeWorkers(play, spool: spool, hasPrograms: true)
    whole.programs?.meddle = false
    whole.servers.sizes = [10, 3000]
    lists = Self.lists(world)
    var since = world.disk.clock / 1_000_000_000
    var versions: [SimulatedServers.Version] = []
    let texts = lists.map { Array($0.map { "http://h/\(1_000_000 + $0)\n" }.joined().utf8) }
    for (number, text) in texts.enumerated() {
      versions.append(.init(since: number == 0 ? 0 : since, size: text.count, number: UInt64(number + 1)))
      since += Int64(world.random(3600...3 * 86_400))
    }
    lastSince = since
    whole.servers.put(
      SimulatedServers.Resource(
        id: 42, versions: versions, validator: world.pick([.strongETag, .lastModified, .none]), hasRanges: false,
        tellsLength: world.isChance(3, in: 4), lie: .none, hasDigest: false, hasMirror: false, places: [],
        alternates: false, texts: texts))
    let former = oracle.onChange
    oracle.onChange = { [unowned self] in
      former($0)
      look($0)
    }
  }

  /// Entries come and go, and some come back.
  private static func lists(_ world: World) -> [[Int]] {
    var (last, list) = (100, [Int]())
    return (1...world.random(3...8)).map { _ in
      list.removeAll { _ in world.isChance(1, in: 5) }
      for _ in 0..<world.random(1...5) {
        last += 1
        list.append(last)
      }
      if last > 101, world.isChance(1, in: 3) {
        let old = world.random(101...last)
        if !list.contains(old) { list.append(old) }
      }
      list.shuffle(using: &world.generator)
      return list
    }
  }

  var jobs: Int { Set(lists.joined()).count }

  func run() {
    play.start("subscriber") { spool, _ in
      let text = "url: http://h/1000042\nevery: 1d\nentries: list\nfirst: all\nattempts: 99\n"
      _ = try Drops(spool).subscribe(text, as: JobName(FileName("sub"))!)
    }
    world.run()
    for run in 1...world.random(6...16) {
      // Its clock is set.
      if !isLocal { world.skew = Int64(world.pick([0, 0, 3, -40, 7200, -7200, 400 * 86_400])) }
      for other in 0...world.random(0...1) {
        let stays = world.isChance(1, in: 3) ? world.pick([5000, 100_000, 4_000_000]) : nil
        whole.work(2 * run + other, host: isLocal ? 1 : world.random(1...2), stays: stays, fates())
      }
      if world.isChance(1, in: 4) {
        world.start("power") { [world] _, _ in
          let (thread, waits) = (world.thread, world.isChance(1, in: 2))
          if waits { world.onMoment = { if $0 == .checked { world.wake(thread) } } }
          Host.current.wait(milliseconds: waits ? 60_000 : world.random(1...world.pick([2000, 40_000])))
          world.onMoment = { _ in }
          world.cutPower()
        }
      }
      world.run()
      if world.wasCut {
        oracle.powerWasCut()
        whole.powerWasCut()
      }
      world.disk.clock += Int64(world.pick([1, 6, 24, 60])) * 3600 * 1_000_000_000
    }
    settle()
    checkEnd()
  }

  private func fates() -> [Fate] {
    if world.isChance(1, in: 3) { return [] }
    let kind = world.pick([.any, .any, .any] + Fate.Kind.allCases)
    let blow = world.pick([.death, .death, .powerCut, .freeze(130), .failure(EIO), .failure(ENOSPC)] as [Fate.Blow])
    return [Fate(blow, at: kind, after: world.random(1...(kind == .any ? 1500 : 40)))]
  }

  private func settle() {
    whole.servers.areFaulty = false
    whole.programs?.areFaulty = false
    world.skew = 0
    world.disk.clock = max(world.disk.clock, lastSince * 1_000_000_000)
    world.isEnding = true
    for day in 1...8 {
      play.start("person") { spool, _ in
        for (name, directory) in try Steering(spool).jobs(for: .retry, in: [.failed, .partial, .standing]) {
          _ = try Steering(spool).perform(.retry, name, in: directory)
        }
      }
      world.run()
      whole.work(1000 + day)
      world.run()
      world.disk.clock += 86_400 * 1_000_000_000
    }
  }

  // MARK: what must be true

  /// All files of a job, but for those that are not dropped yet.
  private func files(of id: Int) -> [(name: String, inode: SimulatedDisk.Inode)] {
    func found(in directory: SimulatedDisk.Inode, _ path: String) -> [(String, SimulatedDisk.Inode)] {
      directory.entries.flatMap { name, entry -> [(String, SimulatedDisk.Inode)] in
        let path = "\(path)/\(String(decoding: name, as: UTF8.self))"
        if entry.inode.type == S_IFDIR { return path == "/tmp" ? [] : found(in: entry.inode, path) }
        return Oracle.id(in: entry.inode.bytes) == id ? [(path, entry.inode)] : []
      }
    }
    return found(in: spool, "")
  }

  private func look(_ changes: [SimulatedDisk.Change]) {
    let drops = [Directory.new, .urgent].map { spool.entries[Array($0.rawValue.utf8)]?.inode }
    for change in changes where drops.contains(where: { $0 === change.directory }) {
      guard let inode = change.inode, let id = Oracle.id(in: inode.bytes), id != 42 else { continue }
      let others = files(of: id).filter { $0.inode !== inode }
      if let other = others.first { oracle.blame(id, "is dropped, and is \(other.name)") }
    }
  }

  private func checkEnd() {
    oracle.checkEnd()
    for id in lists[lists.count - 1] {
      let found = files(of: id).map(\.name).sorted()
      // A power cut may tear a journal's first line, as in `Oracle.checkEnd`.
      let isDone =
        found.count == 1 && (found[0].hasPrefix("/done/") || world.boots > 1 && found[0].hasPrefix("/failed/"))
      if !isDone { oracle.blame(id, "of the list is \(found)") }
    }
    if files(of: 42).map(\.name) != ["/standing/sub"] {
      world.blame("the subscription is \(files(of: 42).map(\.name))")
    }
  }
}

extension SimulationTests {
  @Test func `each entry of a list becomes one job`() async throws {
    try await playSeeds(1...6) { seed, _ in
      let world = World(seed: seed)
      let list = try ListSubscription(world)
      list.run()
      world.forgetListeners()
      let outcome = Outcome(
        problems: world.problems, story: world.story, hash: world.hash, calls: world.calls, jobs: list.jobs,
        cast: world.cast)
      return (outcome, Omitted())
    }
  }
}
