import Glibc

@testable import Spool

/// What must be true of the jobs in a spool at any moment (INTERNALS.md, invariants 1 and 2).
final class Oracle {
  private let world: World
  private let spool: SimulatedDisk.Inode
  private var jobs: [Int: Job] = [:]
  /// The processes that remove jobs for a person.
  var cancellers: Set<String> = []

  private struct Job {
    /// Whoever dropped it knows that it is there.
    var isAcknowledged = false
    /// A person has removed it; nil where a power cut may have brought it back.
    var isCancelled: Bool? = false
  }

  static let directories: [Directory] = [.new, .urgent, .cur, .partial, .hold, .failed, .done]

  init(_ world: World, spool: SimulatedDisk.Inode) {
    (self.world, self.spool) = (world, spool)
    world.disk.onChange = { [unowned self] in look($0) }
    world.onDeath = { [unowned self] in excuse($0) }
    world.onOutcome = { [unowned self] in withdrawing[$0] = nil }
    world.disk.onWrite = { [unowned self] inode, bytes, offset in
      // A journal only grows. But two workers that do not see each other's locks may both note how a job came, by lines
      // of one length.
      let isArrival = ["requeued:", "urgent:"].contains { bytes.starts(with: $0.utf8) }
      if world.disk.hostOfLocks != nil, isArrival { return }
      // It was rejected after 10 s without a change, where nothing shows who writes.
      if world.currentName.hasPrefix("writer"), let id = Int(world.currentName.dropFirst(7)),
        directory(.failed)?.entries.values.contains(where: { $0.inode === inode }) ?? false
      {
        late.insert(id)
      }
      if offset < inode.bytes.count, let id = Self.id(in: inode.bytes) { blame(id, "has a line that was overwritten") }
    }
  }

  /// The number has a fixed length, so that one that was cut is none.
  static func text(_ id: Int) -> String { "url: http://\(id % 3 == 0 ? "g" : "h")/\(1_000_000 + id)\n" }

  private static let mark = Array("http://".utf8)

  /// The number of the job that a text is of.
  static func id(in bytes: [UInt8]) -> Int? {
    // Data and payloads are no texts, and long.
    let found: Int? = bytes.prefix(2000).withUnsafeBytes { bytes in
      (0..<max(0, bytes.count - mark.count)).first { start in
        bytes[start] == mark[0] && bytes[start..<start + mark.count].elementsEqual(mark)
      }
    }
    guard let host = found.map({ bytes[($0 + mark.count)...].prefix(20) }),
      let slash = host.firstIndex(of: 0x2F)
    else { return nil }
    let digits = bytes[(slash + 1)...].prefix { (0x30...0x39).contains($0) }
    let number = Int(String(decoding: digits, as: UTF8.self))
    return number.flatMap { $0 > 1_000_000 ? $0 - 1_000_000 : nil }
  }

  /// The same, remembered: a file's first lines never change.
  private func id(of inode: SimulatedDisk.Inode) -> Int? {
    if let known = ids[inode.number] { return known }
    let id = Self.id(in: inode.bytes)
    ids[inode.number] = id
    return id
  }
  private var ids: [UInt64: Int] = [:]

  // MARK: what the processes say

  private struct Holder {
    let process: Process
    let began: Int64
    let lastSign: Int64
  }

  private var holders: [Int: Holder] = [:]

  /// A worker has claimed the job, or gives a sign of life for it.
  /// - Parameter since: when it began to; nil for now. It may have slept since.
  func hold(
    _ bytes: [UInt8], _ process: Process, from origin: Directory? = nil, since: Int64? = nil, lease: Int64
  ) {
    guard let id = Self.id(in: bytes) else { return }
    let (since, holder) = (since ?? world.disk.clock, holders[id])
    if origin == .cur, let holder, holder.process !== process, !holder.process.isDead {
      // The other one has taken the job since, or has woken, because this one slept.
      if since < holder.lastSign { return }
      if since - holder.lastSign < (lease - 2) * 1_000_000_000 {
        blame(id, "was taken from \(holder.process.name), which lives")
      }
    }
    let began = holder.flatMap { $0.process === process ? $0.began : nil } ?? since
    holders[id] = Holder(process: process, began: began, lastSign: since)
  }

  /// What a worker that lives and was never stopped has locked is not taken over, however clocks jump.
  func checkOwner(_ changes: [SimulatedDisk.Change]) {
    guard changes.count == 2, let inode = changes[1].inode, let taker = world.thread?.process,
      changes.allSatisfy({ $0.directory === directory(.cur) }),
      let owner = ClaimName(FileName(changes[0].name))?.owner?.process, owner != Int32(taker.number),
      let process = world.living("worker").first(where: { Int32($0.number) == owner }), !process.hadTrouble,
      world.disk.isOpen(inode, by: process.number, locked: true), let id = id(of: inode),
      // A file that has just taken the name of the one that it has open goes back.
      world.disk.isOpen(inode, by: taker.number),
      // It cannot know of a jump before it began, and the owner has not noticed it yet.
      !(taker.began >= world.jumpedAt && world.disk.clock - world.jumpedAt < 30_000_000_000)
    else { return }
    blame(id, "was taken from \(process.name), which lives")
  }

  func letGo(_ bytes: [UInt8]) { if let id = Self.id(in: bytes) { holders[id] = nil } }

  /// A worker gives a job that it takes a name that no older job has.
  private func checkName(_ changes: [SimulatedDisk.Change]) {
    guard world.thread?.process.hadTrouble == false, world.currentName.hasPrefix("worker"), changes.count == 2,
      let taken = changes[1].inode,
      let name = ClaimName(FileName(changes[1].name))?.job.fileName.bytes, let id = id(of: taken),
      [Directory.new, .urgent].contains(where: { self.directory($0) === changes[0].directory })
    else { return }
    for directory in [Directory.partial, .hold, .failed] {
      guard let other = self.directory(directory)?.entries[name]?.inode, other !== taken else { continue }
      if world.disk.time - other.changed > 20_000_000_000 { blame(id, "got the name of another job") }
    }
  }

  private func directory(_ directory: Directory) -> SimulatedDisk.Inode? {
    spool.entries[Array(directory.rawValue.utf8)]?.inode
  }

  /// The jobs whose writers went on with their files when those were in `failed/`.
  private var late: Set<Int> = []

  /// The files of jobs that a person has put into `hold/`.
  private var held: Set<UInt64> = []
  /// The people who are between the link and the unlink of a move of a file.
  private var linking: [UInt64: Set<String>] = [:]

  /// A person was told that the job is held now.
  func noteHeld(_ place: JobPlace) {
    let found = directory(place.directory)?.entries[Array(place.name.bytes)]?.inode
    // Another one's move may have left the worker its name for now.
    guard let found, found.number == place.inode else { return }
    if linking[found.number, default: []].subtracting([world.currentName]).isEmpty { held.insert(found.number) }
  }

  /// No worker brings a job on that is held, unless a person moves it again.
  private func checkHeld(_ change: SimulatedDisk.Change) {
    if let former = change.former { linking[former.number]?.remove(world.currentName) }
    if let inode = change.inode, inode.links > 1, !world.currentName.hasPrefix("worker") {
      linking[inode.number, default: []].insert(world.currentName)
    }
    guard let inode = change.inode ?? change.former, held.contains(inode.number) else { return }
    // Two who had moved it at once by link and unlink, and took it back at once, may both give it its name again.
    let comesBack = directory(.tmp)?.entries.values.contains { $0.inode === inode } ?? false
    if !world.currentName.hasPrefix("worker") || comesBack {
      held.remove(inode.number)
    } else if change.inode != nil, let id = id(of: inode),
      [.done, .failed].contains(where: { directory($0) === change.directory })
        // Where it is held all the same, a worker gives it back, and the next one sees that.
        || directory(.partial) === change.directory
          && directory(.hold)?.entries.values.contains(where: { $0.inode === inode }) == false
    {
      blame(id, "was held, and \(world.currentName) has moved it on")
    }
  }

  /// Who has made the last name of each file outside `tmp/`, and its first.
  private var movers: [UInt64: String] = [:]
  private var makers: [UInt64: String] = [:]

  /// Whoever dropped the job was told that this failed, so it is gone unless somebody has taken it or moved it.
  func noteFailedDrop(_ id: Int) {
    let places = places()[id] ?? []
    for place in places where [movers, makers].allSatisfy({ $0[place.inode] == world.currentName }) {
      blame(id, "is in \(place.place), although its drop has failed")
    }
  }

  func acknowledge(_ id: Int) {
    jobs[id, default: Job()].isAcknowledged = true
    check([id])
  }

  /// Is asked about each change of names.
  var onChange: ([SimulatedDisk.Change]) -> Void = { _ in }

  private func look(_ changes: [SimulatedDisk.Change]) {
    onChange(changes)
    let changed = changes.flatMap(note)
    exchanging.remove(world.currentName)
    given[world.currentName] = nil
    let (tmp, cur) = (directory(.tmp), directory(.cur))
    let isExchange = changes.allSatisfy { $0.inode != nil }
    let isReplaced = changes.allSatisfy { $0.inode == nil ? $0.directory === tmp : $0.directory === cur }
    if changes.count == 2, isExchange || isReplaced { exchanging.insert(world.currentName) }
    if changes.count == 2, isExchange, let taken = changes.first(where: { $0.directory === tmp })?.inode,
      let given = changes.first(where: { $0.directory !== tmp })?.inode
    {
      // nil for a text that a power cut has torn.
      let id = id(of: given)
      if let id, self.given.values.contains(taken.number) { overtaken.insert(id) }
      self.given[world.currentName] = given.number
      // Here as well, because nobody misses a job before its drop is acknowledged.
      if let id { exchanged[id] = nil }
      if let other = self.id(of: taken), other != id { exchanged[other] = world.currentName }
    }
    // The same where a withdrawal takes a job to `tmp/` that has just got the name.
    if changes.count == 2, !isExchange, let moved = changes.first(where: { $0.inode != nil }),
      let id = moved.inode.flatMap({ self.id(of: $0) }), jobs[id]?.isAcknowledged != true,
      !cancellers.contains(world.currentName)
    {
      exchanged[id] = moved.directory === tmp ? world.currentName : nil
    }
    // It may have to remove several names, one after the other.
    if !changes.allSatisfy({ $0.inode == nil || $0.directory === tmp }) { withdrawing[world.currentName] = nil }
    if changes.count == 2, isReplaced, !isExchange, let given = changes.first(where: { $0.inode != nil })?.inode {
      withdrawing[world.currentName] = id(of: given)
    }
    checkName(changes)
    changes.forEach(checkHeld)
    for change in changes {
      guard let inode = change.inode else { continue }
      if change.directory !== directory(.tmp) { movers[inode.number] = world.currentName }
      makers[inode.number] = makers[inode.number] ?? world.currentName
    }
    if changes.count == 1, let change = changes.first, change.inode == nil, let file = change.former,
      cancellers.contains(world.currentName), let id = Self.id(in: file.bytes)
    {
      // Whoever is about to complete a move by link and unlink removes its other name. Whoever is about to replace a
      // claim by a rename may bring the job back: a known hole.
      let isHalf = file.links > 0 || world.isReplacing || replaced.contains(id)
      if isHalf || places()[id] == nil { jobs[id, default: Job()].isCancelled = isHalf ? nil : true }
      world.tell("job \(id) cancelled")
    }
    // It may die before it has removed the job from `tmp/`.
    if cancellers.contains(world.currentName),
      changes.contains(where: { $0.inode != nil && $0.directory === directory(.tmp) }),
      let file = changes.first(where: { $0.inode == nil })?.former, let id = Self.id(in: file.bytes)
    {
      jobs[id, default: Job()].isCancelled = nil
      if world.isReplacing { replaced.insert(id) }
    }
    check(changed)
  }

  /// Jobs that were to be cancelled while a process was about to replace a claim.
  private var replaced: Set<Int> = []

  /// After a power cut, a removal that was not made durable may be undone.
  func powerWasCut() {
    for id in jobs.keys where jobs[id]?.isCancelled == true { jobs[id]?.isCancelled = nil }
    held = []
    (index, names, unwritten) = ([:], [:], [:])
    for directory in Self.directories { for (name, file) in entries(directory) { add(file, directory, name) } }
    check(allIDs)
  }

  struct Place {
    let directory: Directory
    let name: [UInt8]
    let inode: UInt64
    var place: String { "\(directory.rawValue)/\(String(decoding: name, as: UTF8.self))" }
  }

  // MARK: where the jobs are, kept up with each change, because a spool may have a hundred thousand

  private var index: [Int: [Place]] = [:]
  private var names: [Directory: [[UInt8]: Int]] = [:]
  /// Files that somebody still writes, so that they are no jobs yet.
  private var unwritten: [Directory: [[UInt8]: SimulatedDisk.Inode]] = [:]

  /// The jobs, and where they are.
  func places() -> [Int: [Place]] {
    readUnwritten()
    return index
  }

  private func entries(_ directory: Directory) -> [[UInt8]: SimulatedDisk.Inode] {
    self.directory(directory)?.entries.mapValues(\.inode) ?? [:]
  }

  /// - Returns: the jobs that it concerns.
  private func note(_ change: SimulatedDisk.Change) -> [Int] {
    guard let directory = Self.directories.first(where: { self.directory($0) === change.directory }) else { return [] }
    var changed: [Int] = []
    unwritten[directory]?[change.name] = nil
    if let id = names[directory]?.removeValue(forKey: change.name) {
      index[id]?.removeAll { $0.directory == directory && $0.name == change.name }
      if index[id]?.isEmpty == true { index[id] = nil }
      changed.append(id)
    }
    if let inode = change.inode, let id = add(inode, directory, change.name) { changed.append(id) }
    return changed
  }

  @discardableResult
  private func add(_ inode: SimulatedDisk.Inode, _ directory: Directory, _ name: [UInt8]) -> Int? {
    if name.suffix(5).elementsEqual(".part".utf8) { return nil }
    guard let id = id(of: inode) else {
      unwritten[directory, default: [:]][name] = inode
      return nil
    }
    names[directory, default: [:]][name] = id
    index[id, default: []].append(Place(directory: directory, name: name, inode: inode.number))
    return id
  }

  private func readUnwritten() {
    let files = unwritten
    unwritten = [:]
    for (directory, files) in files { for (name, file) in files { add(file, directory, name).map { new.append($0) } } }
  }
  /// What was read since the last check.
  private var new: [Int] = []

  private var allIDs: [Int] { Array(Set(index.keys).union(jobs.keys)) }

  private func jobName(_ place: String) -> Substring { place.drop { $0 != "/" }.prefix { $0 != ":" } }

  /// What is wrong with a job at this moment.
  private func wrong(with id: Int) -> String? {
    let found = index[id] ?? []
    let isHalved = halved.contains(id) || overtaken.contains(id)
    if isHalved, Set(found.map { jobName($0.place) }).count > 1 { excused.insert(id) }
    if excused.contains(id) { return nil }
    let (count, all) = (Set(found.map(\.inode)).count, found.map(\.place).sorted())
    if count > 1 { return "is there twice: \(all)" }
    guard let job = jobs[id] else { return nil }
    if job.isCancelled == true, count > 0 { return "is back after its cancellation: \(all)" }
    return job.isAcknowledged && job.isCancelled == false && count == 0 ? "is lost" : nil
  }

  /// Looks at these jobs, and at those with which something was wrong. A process that has exchanged the names of two
  /// files, or replaced a claim, may undo that with its next change, before which nobody can take one of them. It stays
  /// the one to blame also where another process takes one of the files away meanwhile, and puts it back.
  private func check(_ ids: [Int], isLast: Bool = false) {
    readUnwritten()
    let ids = Set(ids + new).union(suspects.keys)
    new = []
    let wrongs = Dictionary(uniqueKeysWithValues: ids.compactMap { id in wrong(with: id).map { (id, $0) } })
    suspects = suspects.filter { id, name in
      wrongs[id] != nil || exchanging.contains(name) || withdrawing[name] != nil
    }
    for (id, what) in wrongs.sorted(by: { $0.key < $1.key }) {
      if isLast { blame(id, what) }
      let isTaken = isTaken(id)
      guard let name = suspects[id] else {
        // Another process may give back the file that has lost its place.
        let name = world.currentName
        suspects[id] = withdrawing[name] == id ? name : withdrawing.filter { $0.value == id }.keys.min() ?? name
        if isTaken { exchanged[id] = world.currentName }
        continue
      }
      // A job that was taken to `tmp/` by mistake comes back after its place is free again.
      if name == world.currentName, withdrawing[name] == nil, !isTaken || exchanged[id] != name { blame(id, what) }
    }
  }

  private func isTaken(_ id: Int) -> Bool {
    directory(.tmp)?.entries.values.contains { self.id(of: $0.inode) == id } ?? false
  }

  /// A command that gives a job another text, or moves it by link and unlink, may take another job to `tmp/`, which has
  /// just got its name. If the command dies before it has put that back, or the power is cut before that is durable,
  /// that job is lost: a known hole.
  ///
  /// Or it dies between its link and its unlink, while a worker gives the job a number: each name may be moved on.
  ///
  /// Or it stands still between an exchange and the one that undoes it, and another command replaces its text by the
  /// next. It cannot tell then whether what it has taken is that job's former text or another job, and puts it back.
  ///
  /// Where names cannot be exchanged, a link may begin just before a copy takes a claim's place. If the owner dies
  /// before it has seen that, the job is there twice.
  private func excuse(_ dead: Process?) {
    if let dead, ["editor", "person", "refetcher"].contains(where: dead.name.hasPrefix) {
      for (id, found) in places() where found.count > 1 { halved.insert(id) }
    }
    for (id, name) in exchanged
    where dead == nil
      || dead?.name == name && (suspects[id] == name || isTaken(id) || jobs[id]?.isAcknowledged != true)
    {
      excused.insert(id)
    }
    // The job whose text is in the other one's place is there twice.
    for (id, name) in suspects
    where (exchanged.values.contains(name) || exchanging.contains(name) || withdrawing[name] != nil)
      && (dead == nil || dead?.name == name)
    { excused.insert(id) }
    if dead == nil { exchanged = [:] }
    exchanging = dead.map { exchanging.subtracting([$0.name]) } ?? []
    withdrawing = dead.map { (dead) in withdrawing.filter { $0.key != dead.name } } ?? [:]
  }
  private var halved: Set<Int> = []
  /// The jobs whose new text was replaced before the command that gave it could undo that.
  private var overtaken: Set<Int> = []
  /// The file to which each process has just given another one's name by an exchange.
  private var given: [String: UInt64] = [:]
  private var exchanged: [Int: String] = [:]
  private var excused: Set<Int> = []

  /// Who has made the change after which something was wrong with a job.
  private var suspects: [Int: String] = [:]
  /// Whose last change has exchanged two names, or given a file in `tmp/` a claim's name.
  private var exchanging: Set<String> = []
  /// Who has given a file in `tmp/` a claim's name, and has only removed names since; and of which job.
  private var withdrawing: [String: Int] = [:]

  /// When everything has come to its end.
  func checkEnd() {
    for directory in Self.directories {
      let (seen, known) = (entries(directory).compactMapValues { id(of: $0) }, names[directory] ?? [:])
      if seen.filter({ !$0.key.suffix(5).elementsEqual(".part".utf8) }) != known {
        world.blame("the oracle does not know what is in \(directory.rawValue)/")
      }
    }
    check(allIDs, isLast: true)
    for (id, found) in places().sorted(by: { $0.key < $1.key }) {
      // A text that has lost its end, or bytes before its end, settles in `new/`, each time that it is put back.
      let isTorn =
        world.boots > 1
        && found.allSatisfy { file(at: $0.place).map { $0.bytes.last != 0x0A || $0.bytes.contains(0) } ?? true }
      let isAtEnd = isTorn || found.allSatisfy { $0.place.hasPrefix("done/") || $0.place.hasPrefix("failed/") }
      // A power cut may tear the first line of a journal, and then nobody can tell who wrote it.
      if world.boots == 1, let inode = found.first.flatMap({ file(at: $0.place) }),
        !late.contains(id), inode.bytes.firstRange(of: Array("code=malformed".utf8)) != nil
      {
        blame(id, "was rejected")
      }
      if !isAtEnd { blame(id, "has not come to its end: \(found.map(\.place))") }
    }
  }

  private func file(at place: String) -> SimulatedDisk.Inode? {
    let parts = place.split(separator: "/", maxSplits: 1)
    return spool.entries[Array(parts[0].utf8)]?.inode.entries[Array(parts[1].utf8)]?.inode
  }

  private var blamed: Set<Int> = []

  func blame(_ id: Int, _ what: String) {
    if blamed.insert(id).inserted { world.blame("job \(id) \(what)") }
  }
}
