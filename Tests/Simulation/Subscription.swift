import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Spool
@testable import SpoolWorker

/// A subscription with `keep: N` to one file, over weeks, with workers that die, errors, and power cuts: the last N
/// versions stay, the others go, and so does no file of anybody else.
private final class Subscription {
  private let world: World
  private let play: Play
  private let whole: WholeWorkers
  private let spool: SimulatedDisk.Inode
  private let keep: Int
  private let resource: SimulatedServers.Resource
  /// Files of others, some with names like those of versions.
  private let foreign: [String: [UInt8]] = [
    "1000042~20200101T000000Z": Array("old".utf8), "1000042~20990101T000000Z": Array("new".utf8),
    "notes.txt": Array("notes".utf8),
  ]
  /// The jobs that were done at any time.
  private var done: Set<String> = []

  private var name: String { "1000042" }
  private var files: SimulatedDisk.Inode? { directory(.files) }
  private var now: Int64 { world.disk.clock / 1_000_000_000 }

  init(_ world: World) throws {
    self.world = world
    world.disk.keeping = world.pick([.inOrder, .any])
    let kind = FileSystemKind(type: world.disk.keeping == .any ? 0x9123_683E : 0xEF53)
    world.start("init") { _, system in
      do { try Spool.create(Play.location, system: system) } catch { world.blame("init: \(error)") }
    }
    world.run()
    spool = try #require(world.disk.root.entries[Array("spool".utf8)]?.inode)
    play = Play(world, Oracle(world, spool: spool), kind)
    whole = WholeWorkers(play, spool: spool)
    keep = world.random(1...4)
    var since = world.disk.clock / 1_000_000_000
    let versions = (1...UInt64(world.random(6...14))).map { number in
      defer { since += Int64(world.random(3600...3 * 86_400)) }
      return SimulatedServers.Version(since: number == 1 ? 0 : since, size: world.random(1...3000), number: number)
    }
    resource = SimulatedServers.Resource(
      id: 42, versions: versions, validator: .strongETag, hasRanges: true, tellsLength: true, lie: .none,
      hasDigest: false, hasMirror: false, places: [], alternates: false)
    whole.servers.put(resource)
    // Its jobs have one URL, which the oracle takes for one job's.
    world.disk.onChange = { [unowned self] in look($0) }
    world.disk.onWrite = { _, _, _ in }
  }

  private func directory(_ directory: Directory) -> SimulatedDisk.Inode? {
    spool.entries[Array(directory.rawValue.utf8)]?.inode
  }

  func run() {
    let keep = keep
    play.start("subscriber") { [foreign] spool, _ in
      for (name, bytes) in foreign.sorted(by: { $0.key < $1.key }) {
        let file = try spool.system.create(spool.root, Path(.files, FileName(name)), O_WRONLY | O_EXCL)
        try file.write(bytes, at: 0)
        try file.fsync()
      }
      try spool.flush(.files).run()
      let text = "url: http://h/1000042\nevery: 1d\nentries: file\nkeep: \(keep)\nattempts: 99\n"
      _ = try Drops(spool).subscribe(text, as: JobName(FileName("sub"))!)
    }
    world.run()
    for run in 1...world.random(10...30) {
      for other in 0...world.random(0...1) {
        let stays = world.isChance(1, in: 3) ? world.pick([5000, 100_000, 4_000_000]) : nil
        whole.work(2 * run + other, stays: stays, fates())
      }
      if world.isChance(1, in: 4) {
        world.start("power") { [world] _, _ in
          Host.current.wait(milliseconds: world.random(1...world.pick([2000, 40_000])))
          world.cutPower()
        }
      }
      world.run()
      world.disk.clock += Int64(world.pick([1, 6, 24, 60])) * 3600 * 1_000_000_000
    }
    settle()
    checkEnd()
  }

  private func fates() -> [Fate] {
    if world.isChance(1, in: 2) { return [] }
    let kind = world.pick([.any, .any, .any] + Fate.Kind.allCases)
    let blow = world.pick([.death, .death, .powerCut, .freeze(130), .failure(EIO), .failure(ENOSPC)] as [Fate.Blow])
    return [Fate(blow, at: kind, after: world.random(1...(kind == .any ? 600 : 12)))]
  }

  /// What failed is tried again, and a worker comes each day.
  private func settle() {
    whole.servers.areFaulty = false
    world.isEnding = true
    for day in 1...12 {
      play.start("person") { spool, _ in
        for (name, directory) in try Steering(spool).jobs(for: .retry, in: [.failed, .partial]) {
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

  private func receipts() -> [(name: String, output: String, time: Timestamp)] {
    (directory(.done)?.entries ?? [:]).compactMap { name, entry in
      let publication = entry.inode.bytes.withUnsafeBytes { JobText($0) }.journal.publication
      guard let receipt = publication.receipt, let time = publication.receiptTime else { return nil }
      return (String(decoding: name, as: UTF8.self), receipt.output, time)
    }
  }

  /// The keys of the jobs that the order has recorded. A version of a check that a crash ended before its record is
  /// none of them, unless the next check finds it again: it stays (INTERNALS.md, "What is not crash-proof").
  private var seen: Set<String> {
    let places = [Directory.standing, .cur, .failed, .hold].compactMap { directory($0)?.entries }
    let order = places.lazy.compactMap { entries in
      entries.first { $0.key == Array("sub".utf8) || $0.key.starts(with: Array("sub:".utf8)) }?.value.inode
    }.first
    guard let order else { return [] }
    let checks = order.bytes.withUnsafeBytes { JobText($0) }.journal.checks
    return Set(checks.seen.map { String($0.prefix(FeedEntry.keyLength)) })
  }

  private func look(_ changes: [SimulatedDisk.Change]) {
    for change in changes {
      let name = String(decoding: change.name, as: UTF8.self)
      if change.directory === directory(.done), change.inode != nil { done.insert(name) }
      guard change.directory === files, let former = change.former, former !== change.inode else { continue }
      if foreign[name] != nil { world.blame("\(name), which is no version, is gone") }
      if change.inode != nil || !name.hasPrefix("\(self.name)~") { continue }
      let all = receipts()
      guard let own = all.first(where: { $0.output == name }) else {
        world.blame("\(name) is removed, which has no receipt")
        continue
      }
      let newer = all.filter {
        $0.output != name && $0.time >= own.time && files?.entries[Array($0.output.utf8)] != nil
      }
      if newer.count < keep { world.blame("\(name) is removed, and \(newer.count) newer ones are there, not \(keep)") }
    }
  }

  private func checkEnd() {
    for directory in [Directory.new, .urgent, .cur, .partial, .failed] {
      // A power cut may tear a journal's first line, as in `Oracle.checkEnd`, or bring data's name back.
      let left = (self.directory(directory)?.entries ?? [:]).filter { name, entry in
        world.boots == 1
          || !FileName(name).isData && entry.inode.bytes.firstRange(of: Array("code=malformed".utf8)) == nil
      }.map { String(decoding: $0.key, as: UTF8.self) }
      if !left.isEmpty { world.blame("there are still \(left) in \(directory.rawValue)") }
    }
    let (all, files) = (receipts(), files?.entries ?? [:])
    let seen = seen
    func count(_ names: some Sequence<String>) -> Int {
      names.count { seen.contains(String($0.suffix(FeedEntry.keyLength))) }
    }
    let (known, ended) = (count(all.map(\.name)), count(done))
    if known > keep || known < min(keep, ended) {
      world.blame("\(known) of \(ended) versions have receipts, not \(keep)")
    }
    for (name, bytes) in foreign where files[Array(name.utf8)]?.inode.bytes != bytes {
      world.blame("\(name), which is no version, has changed")
    }
    // A crash may leave a version that is there a name that goes with it.
    let whole = files.filter { !$0.key.starts(with: Array(".spoolrun-".utf8)) || $0.value.inode.links == 1 }
    let names = Set(whole.keys.map { String(decoding: $0, as: UTF8.self) }).subtracting(foreign.keys)
    let wanted = Set(all.map(\.output) + [name])
    if names != wanted { world.blame("there are \(names.sorted()), not \(wanted.sorted())") }
    for name in wanted {
      guard let bytes = files[Array(name.utf8)]?.inode.bytes else { continue }
      let version = self.whole.servers.version(resource.id, is: bytes)
      if version == nil { world.blame("\(name) has wrong bytes") }
      // A power cut may tear the text of the job for the last one.
      if name == self.name, world.boots == 1, version?.number != resource.versions.last?.number {
        world.blame("\(name) is version \(version?.number ?? 0)")
      }
    }
  }
}

extension SimulationTests {
  @Test func `a subscription keeps its last versions`() async throws {
    try await playSeeds(1...4) { seed, _ in
      let world = World(seed: seed)
      try Subscription(world).run()
      world.forgetListeners()
      let outcome = Outcome(
        problems: world.problems, story: world.story, hash: world.hash, calls: world.calls, jobs: 1, cast: world.cast)
      return (outcome, Omitted())
    }
  }
}
