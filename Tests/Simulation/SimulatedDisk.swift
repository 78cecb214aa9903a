import Glibc

@testable import Spool

/// A file system in memory. What is seen and what a power cut leaves are kept apart.
final class SimulatedDisk {
  /// A file, directory or symbolic link.
  final class Inode {
    let number: UInt64
    let type: mode_t
    var permissions: mode_t
    fileprivate(set) var owner = geteuid()
    var bytes: [UInt8] = []
    /// What is on the disk of ``bytes``.
    var durableBytes: [UInt8] = []
    /// Ranges that a failed flush has lost: they are read as they were written, and never get to the disk.
    var lost: [Range<Int>] = []
    /// The next flush reports a failed write.
    var owesError = false
    /// It was emptied, and has fewer bytes than are on the disk.
    var isRewritten = false
    /// By name; each has the number of its creation, in whose order it is listed.
    var entries: [[UInt8]: (inode: Inode, order: UInt64)] = [:]
    /// The names that came, oldest first, also those that have gone since.
    var arrivals: [(order: UInt64, name: [UInt8])] = []
    var durableEntries: [[UInt8]: Inode] = [:]
    /// Of a directory.
    fileprivate(set) unowned var parent: Inode?
    var links: UInt64 = 1
    var modified: Int64
    var changed: Int64

    init(_ number: UInt64, _ type: mode_t, _ permissions: mode_t, at time: Int64) {
      (self.number, self.type, self.permissions, modified, changed) = (number, type, permissions, time, time)
      if type == S_IFDIR { links = 2 }
    }
  }

  /// A name that a directory got or lost; `inode` is nil where it lost it.
  struct Change {
    let directory: Inode
    let name: [UInt8]
    let inode: Inode?
    /// What had the name before.
    var former: Inode?
  }

  /// open(2) calls it an open file description.
  final class OpenFile {
    let inode: Inode
    let flags: Int32
    let process: Int
    /// Where it was opened.
    let place: (directory: Inode, name: [UInt8])?
    var lock: Int32 = LOCK_UN
    var ranges: [(range: Range<Int64>, lock: RangeLock)] = []
    /// The next byte, or the last entry that was listed.
    var position: UInt64 = 0
    /// Of the inode, as fstat(2) says it.
    fileprivate(set) var number: UInt64

    init(_ inode: Inode, _ flags: Int32, process: Int, _ place: (Inode, [UInt8])?) {
      (self.inode, self.flags, self.process, self.place, number) = (inode, flags, process, place, inode.number)
    }

    var writes: Bool { flags & O_ACCMODE != O_RDONLY }
  }

  let root: Inode
  private(set) var open: [Int32: OpenFile] = [:]
  /// Files that may have bytes which are not on the disk, by number.
  private var unflushed: [UInt64: Inode] = [:]
  /// Calls that change names, oldest first, which a power cut can still undo. One call's changes stay together.
  private var pending: [[Change]] = []
  /// Nanoseconds since the epoch. It never jumps.
  var clock: Int64 = 1_800_000_000_000_000_000
  /// Nanoseconds by which the wall clock was set, and the time that files get by it.
  var ahead: Int64 = 0
  var time: Int64 { clock + ahead }
  /// Bytes that still fit.
  var room = 1 << 40
  /// What a power cut leaves of changes of names.
  enum Keeping {
    /// Those up to any moment, as a journal does.
    case inOrder
    /// Each call's for themselves, unless they are about one name, as on btrfs.
    case any
    /// All: another machine has the disk.
    case all
  }
  var keeping = Keeping.inOrder
  /// What renameat2(2) refuses here.
  var unknownRenames: Set<RenameManner> = []
  /// Each name of a file has an inode of its own, with one link, as on SSHFS. A rename keeps it.
  var isBlind = false
  /// The inodes of names that a file got by link(2), where they have their own.
  private var ownNumbers: [EntryName: UInt64] = [:]
  private struct EntryName: Hashable {
    let directory: UInt64
    let name: [UInt8]
  }
  /// Called after the changes that one call makes in directories.
  var onChange: ([Change]) -> Void = { _ in }
  /// Called when a file that was emptied has as many bytes again as are on the disk.
  var onRewrite: () -> Void = {}
  /// Called before bytes are written at an offset.
  var onWrite: (Inode, UnsafeRawBufferPointer, Int) -> Void = { _, _, _ in }
  /// Hears what inotify(7) would tell of a name in a directory.
  var onEvent: (Inode, Int32, [UInt8]) -> Void = { _, _, _ in }
  /// Hears of changes of names, and of what a power cut does to them.
  var onTrace: (String) -> Void = { _ in }
  private var lastNumber: UInt64 = 1
  private var lastOrder: UInt64 = 0

  init() { root = Inode(1, S_IFDIR, 0o755, at: clock) }

  // MARK: names

  struct Failure: Error { let errno: Int32 }

  func fail(_ errno: Int32) -> Failure { Failure(errno: errno) }

  private func directory(_ at: Int32, _ path: [UInt8]) throws(Failure) -> (Inode, [ArraySlice<UInt8>]) {
    let parts = path.split(separator: 0x2F)
    if path.first == 0x2F { return (root, parts) }
    if path.isEmpty { throw fail(ENOENT) }
    guard let start = open[at] else { throw fail(EBADF) }
    guard start.inode.type == S_IFDIR else { throw fail(ENOTDIR) }
    return (start.inode, parts)
  }

  /// The directory that the last part of a path is in, and that part; nil for a path of no parts, such as `.`.
  private func parent(_ at: Int32, _ path: [UInt8]) throws(Failure) -> (directory: Inode, name: [UInt8]?) {
    var (place, parts) = try directory(at, path)
    parts.removeAll { $0.elementsEqual([0x2E]) }
    guard let last = parts.popLast() else { return (place, nil) }
    let up = [0x2E, 0x2E] as [UInt8]
    for part in parts {
      guard place.type == S_IFDIR else { throw fail(place.type == S_IFLNK ? ENOENT : ENOTDIR) }
      if part.elementsEqual(up) {
        place = place.parent ?? place
        continue
      }
      guard let next = place.entries[Array(part)]?.inode else { throw fail(ENOENT) }
      place = next
    }
    // No link on the way leads anywhere here.
    guard place.type == S_IFDIR else { throw fail(place.type == S_IFLNK ? ENOENT : ENOTDIR) }
    if last.elementsEqual(up) { return (place.parent ?? place, nil) }
    if last.count > 255 { throw fail(ENAMETOOLONG) }
    return (place, Array(last))
  }

  func find(_ at: Int32, _ path: [UInt8]) throws(Failure) -> Inode {
    let (place, name) = try parent(at, path)
    guard let name else { return place }
    guard let inode = place.entries[name]?.inode else { throw fail(ENOENT) }
    return inode
  }

  /// The inode of a name, as stat(2) says it.
  func number(_ at: Int32, _ path: [UInt8]) throws(Failure) -> UInt64 {
    let (place, name) = try parent(at, path)
    guard let name else { return place.number }
    guard let inode = place.entries[name]?.inode else { throw fail(ENOENT) }
    return ownNumbers[EntryName(directory: place.number, name: name)] ?? inode.number
  }

  /// To be called before the changes are made.
  private func renumber(_ changes: [Change], isRename: Bool) {
    let names = changes.map { EntryName(directory: $0.directory.number, name: $0.name) }
    let former = names.map { ownNumbers[$0] }
    for (index, change) in changes.enumerated() {
      ownNumbers[names[index]] = nil
      guard let inode = change.inode else { continue }
      if isRename {
        ownNumbers[names[index]] = former[1 - index]
      } else if inode.links > 0 {
        lastNumber += 1
        ownNumbers[names[index]] = lastNumber
      }
    }
  }

  /// - Parameter isRename: whether names move, and do not come and go.
  private func apply(_ wanted: [Change], isRename: Bool = false) {
    writeBack()
    if isBlind { renumber(wanted, isRename: isRename) }
    var changes = wanted
    for index in changes.indices {
      let change = changes[index]
      let (directory, inode) = (change.directory, change.inode)
      if let old = directory.entries.removeValue(forKey: change.name)?.inode {
        old.links -= 1
        changes[index].former = old
      }
      if let inode {
        enter(inode, directory, change.name)
        inode.links += 1
        if inode.type == S_IFDIR { inode.parent = directory }
      }
      (directory.modified, directory.changed) = (time, time)
    }
    pending.append(changes)
    onTrace(Self.text(changes))
    onChange(changes)
    for change in changes {
      let came = isRename ? IN_MOVED_TO : IN_CREATE
      let went = isRename ? IN_MOVED_FROM : IN_DELETE
      let isDirectory = (change.inode ?? change.former)?.type == S_IFDIR
      onEvent(change.directory, Int32((change.inode == nil ? went : came)) | (isDirectory ? IN_ISDIR : 0), change.name)
    }
  }

  private func enter(_ inode: Inode, _ directory: Inode, _ name: [UInt8]) {
    lastOrder += 1
    directory.entries[name] = (inode, lastOrder)
    directory.arrivals.append((lastOrder, name))
    if directory.arrivals.count > 2 * directory.entries.count + 100 {
      directory.arrivals.removeAll { directory.entries[$0.name]?.order != $0.order }
    }
  }

  private func make(_ type: mode_t, _ permissions: mode_t, in directory: Inode, as name: [UInt8]) -> Inode {
    lastNumber += 1
    let inode = Inode(lastNumber, type, permissions & 0o7777, at: time)
    inode.links = 0
    apply([Change(directory: directory, name: name, inode: inode)])
    if type == S_IFDIR { inode.links += 1 }
    return inode
  }

  func makeDirectory(_ at: Int32, _ path: [UInt8], _ permissions: mode_t) throws(Failure) {
    let (place, name) = try parent(at, path)
    guard let name, place.entries[name] == nil else { throw fail(EEXIST) }
    _ = make(S_IFDIR, permissions, in: place, as: name)
  }

  func makeLink(_ target: [UInt8], _ at: Int32, _ path: [UInt8]) throws(Failure) {
    let (place, name) = try parent(at, path)
    guard let name, place.entries[name] == nil else { throw fail(EEXIST) }
    make(S_IFLNK, 0o777, in: place, as: name).bytes = target
  }

  func link(_ inode: Inode, _ toDirectory: Int32, _ to: [UInt8]) throws(Failure) {
    let (place, name) = try parent(toDirectory, to)
    guard let name, place.entries[name] == nil else { throw fail(EEXIST) }
    if inode.type == S_IFDIR { throw fail(EPERM) }
    inode.changed = time
    apply([Change(directory: place, name: name, inode: inode)])
  }

  func unlink(_ at: Int32, _ path: [UInt8]) throws(Failure) {
    let (place, name) = try parent(at, path)
    guard let name else { throw fail(EISDIR) }
    guard let inode = place.entries[name]?.inode else { throw fail(ENOENT) }
    if inode.type == S_IFDIR { throw fail(EISDIR) }
    inode.changed = time
    apply([Change(directory: place, name: name, inode: nil)])
  }

  func rename(_ at: Int32, _ from: [UInt8], _ to: [UInt8], _ manner: RenameManner) throws(Failure) {
    if unknownRenames.contains(manner) { throw fail(EINVAL) }
    let (source, sourceName) = try parent(at, from)
    let (target, targetName) = try parent(at, to)
    guard let sourceName, let targetName else { throw fail(EBUSY) }
    guard let inode = source.entries[sourceName]?.inode else { throw fail(ENOENT) }
    let other = target.entries[targetName]?.inode
    if manner == .withoutReplacing, other != nil { throw fail(EEXIST) }
    if manner == .exchanging, other == nil { throw fail(ENOENT) }
    if inode.type == S_IFDIR, contains(inode, target) { throw fail(EINVAL) }
    if let other, other.type == S_IFDIR, contains(other, source) {
      throw fail(manner == .exchanging ? EINVAL : ENOTEMPTY)
    }
    switch manner {
    case .withoutReplacing: break
    case .exchanging:
      guard let other else { throw fail(ENOENT) }
      for each in [inode, other] { each.changed = time }
      if other === inode { return }
      return apply(
        [
          Change(directory: source, name: sourceName, inode: other),
          Change(directory: target, name: targetName, inode: inode),
        ], isRename: true)
    case .replacing:
      if other === inode { return }
      if let other, (other.type == S_IFDIR) != (inode.type == S_IFDIR) {
        throw fail(other.type == S_IFDIR ? EISDIR : ENOTDIR)
      }
      if let other, !other.entries.isEmpty { throw fail(ENOTEMPTY) }
      other?.changed = time
    }
    inode.changed = time
    apply(
      [
        Change(directory: source, name: sourceName, inode: nil),
        Change(directory: target, name: targetName, inode: inode),
      ], isRename: true)
  }

  private func contains(_ directory: Inode, _ other: Inode) -> Bool {
    directory === other || directory.entries.values.contains { $0.inode.type == S_IFDIR && contains($0.inode, other) }
  }

  // MARK: open files

  func open(
    _ at: Int32, _ path: [UInt8], _ flags: Int32, _ permissions: mode_t, process: Int, user: uid_t = geteuid()
  ) throws(Failure) -> Int32 {
    let (place, name) = try parent(at, path)
    let found = name.map { place.entries[$0]?.inode } ?? place
    let inode: Inode
    if let found {
      if flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL { throw fail(EEXIST) }
      if found.type == S_IFLNK { throw fail(flags & O_DIRECTORY != 0 ? ENOTDIR : ELOOP) }
      if flags & O_DIRECTORY != 0, found.type != S_IFDIR { throw fail(ENOTDIR) }
      if found.type == S_IFDIR, flags & (O_ACCMODE | O_CREAT) != O_RDONLY { throw fail(EISDIR) }
      inode = found
    } else {
      guard flags & O_CREAT != 0, let name else { throw fail(ENOENT) }
      if room <= 0 { throw fail(ENOSPC) }
      inode = make(S_IFREG, permissions, in: place, as: name)
      inode.owner = user
    }
    let file = OpenFile(inode, flags, process: process, name.map { (place, $0) })
    file.number = try self.number(at, path)
    if flags & O_TRUNC != 0, file.writes, inode.type == S_IFREG { truncate(inode, to: 0) }
    // The lowest that is free, as open(2) gives it, but none that a real file may have.
    let number = (10_000...).first { open[Int32($0)] == nil }.map(Int32.init)!
    open[number] = file
    return number
  }

  func close(_ number: Int32) throws(Failure) {
    guard let file = open.removeValue(forKey: number) else { throw fail(EBADF) }
    if isCopied(file) {
      if file.lock != LOCK_UN { onLockLeft(file) }
    } else if file.writes {
      tell(IN_CLOSE_WRITE, of: file)
    }
  }

  /// A child has the open files of its parent until ``exec(_:)``.
  func fork(_ process: Int, to child: Int) { copies[child] = open.values.filter { $0.process == process } }

  func exec(_ child: Int) {
    for file in copies.removeValue(forKey: child) ?? []
    where file.writes && !isCopied(file) && !open.values.contains(where: { $0 === file }) {
      tell(IN_CLOSE_WRITE, of: file)
    }
  }

  private var copies: [Int: [OpenFile]] = [:]
  private func isCopied(_ file: OpenFile) -> Bool {
    !copies.isEmpty && copies.values.contains { $0.contains { $0 === file } }
  }
  /// The host of a process, where hosts do not see each other's locks; nil where they do.
  var hostOfLocks: ((Int) -> Int)?
  var allOpen: [OpenFile] { Array(open.values) + copies.values.joined() }
  /// Called when a process closes a file whose lock a child of it keeps.
  var onLockLeft: (OpenFile) -> Void = { _ in }

  func closeAll(of process: Int) {
    exec(process)
    for (number, file) in open.sorted(by: { $0.key < $1.key }) where file.process == process {
      open[number] = nil
      if file.writes { tell(IN_CLOSE_WRITE, of: file) }
    }
  }

  /// If its name is still the one that it was opened by.
  func tell(_ event: Int32, of file: OpenFile) {
    guard let place = file.place, place.directory.entries[place.name]?.inode === file.inode else { return }
    onEvent(place.directory, event, place.name)
  }

  func file(_ number: Int32) throws(Failure) -> OpenFile {
    guard let file = open[number] else { throw fail(EBADF) }
    return file
  }

  func write(_ bytes: UnsafeRawBufferPointer, to file: OpenFile, at offset: Int) throws(Failure) -> Int {
    guard file.writes else { throw fail(EBADF) }
    let inode = file.inode
    onWrite(inode, bytes, offset)
    writeBack()
    let growth = offset + bytes.count - inode.bytes.count
    if growth > room { throw fail(ENOSPC) }
    if growth > 0 {
      room -= growth
      inode.bytes += [UInt8](repeating: 0, count: growth)
    }
    inode.bytes.replaceSubrange(offset..<offset + bytes.count, with: bytes)
    unflushed[inode.number] = inode
    if !inode.lost.isEmpty { inode.keepLost(outside: offset..<offset + bytes.count) }
    (inode.modified, inode.changed) = (time, time)
    if inode.isRewritten, inode.bytes.count >= inode.durableBytes.count {
      inode.isRewritten = false
      onRewrite()
    }
    return bytes.count
  }

  /// Makes everything durable if nothing has changed for ten minutes: the kernel writes back by itself, after 30 s
  /// (dirty_expire_centisecs) or, where a laptop saves its battery, some minutes. To be called before each change.
  private func writeBack() {
    defer { changedAt = clock }
    guard clock - changedAt > 600_000_000_000 else { return }
    for changes in pending { Self.apply(changes, to: \.durableEntries) }
    pending = []
    for file in unflushed.values { file.flush() }
    unflushed = unflushed.filter { !$0.value.lost.isEmpty }
  }
  private var changedAt: Int64 = 0

  func truncate(_ file: OpenFile, to length: Int) throws(Failure) {
    guard file.writes, file.inode.type == S_IFREG else { throw fail(EINVAL) }
    truncate(file.inode, to: length)
  }

  private func truncate(_ inode: Inode, to length: Int) {
    writeBack()
    let gone = inode.bytes.count - length
    if gone > 0 { inode.bytes.removeLast(gone) } else { inode.bytes += [UInt8](repeating: 0, count: -gone) }
    room += gone
    inode.isRewritten = length == 0 && !inode.durableBytes.isEmpty
    unflushed[inode.number] = inode
    (inode.modified, inode.changed) = (time, time)
  }

  /// The next entries, at most `most`.
  func list(_ file: OpenFile, most: Int) throws(Failure) -> [(name: [UInt8], inode: Inode)] {
    guard file.inode.type == S_IFDIR else { throw fail(ENOTDIR) }
    let arrivals = file.inode.arrivals
    var (low, high) = (0, arrivals.count)
    while low < high {
      let middle = (low + high) / 2
      if arrivals[middle].order <= file.position { low = middle + 1 } else { high = middle }
    }
    var next: [(name: [UInt8], inode: Inode)] = []
    while low < arrivals.count, next.count < most {
      let (order, name) = arrivals[low]
      low += 1
      guard let entry = file.inode.entries[name], entry.order == order else { continue }
      next.append((name, entry.inode))
      file.position = order
    }
    return next
  }

  // MARK: power cuts

  /// Whether a power cut leaves the file's bytes, and this name of it.
  func isDurable(_ name: [UInt8], in directory: Inode) -> Bool {
    guard let inode = directory.entries[name]?.inode else { return false }
    return inode.durableBytes == inode.bytes && (keeping == .all || directory.durableEntries[name] === inode)
  }

  func sync(_ inode: Inode, _ extent: SyncExtent) throws(Failure) {
    if inode.owesError, extent != .fileSystem {
      inode.owesError = false
      throw fail(EIO)
    }
    for each in extent == .fileSystem ? changedFiles() : [inode] {
      each.flush()
      if each.lost.isEmpty { unflushed[each.number] = nil }
    }
    // btrfs logs a file with its names, or a directory with its entries.
    let isFlushed = { [keeping] (changes: [Change]) in
      keeping != .any || extent == .fileSystem || changes.contains { $0.inode === inode || $0.directory === inode }
    }
    // With a name comes what it was before; but on btrfs not how the file came to it that has just given it to this
    // one (INTERNALS.md, what btrfs taught).
    let isAlone = keeping == .any && extent != .fileSystem && inode.type == S_IFREG
    var (names, given, flushed): (Set<[UInt8]>, Set<[UInt8]>, [[Change]]) = ([], [], [])
    for index in pending.indices.reversed() {
      let changes = pending[index]
      if !isFlushed(changes) {
        if names.isDisjoint(with: Self.names(changes)) { continue }
        if isAlone, changes.count == 2, changes[0].inode == nil, !names.contains(Self.name(changes[0])),
          given.contains(Self.name(changes[1])), changes[1].directory.durableEntries[changes[1].name] == nil
        {
          pending[index].removeLast()
          given.remove(Self.name(changes[1]))
          continue
        }
      } else if changes.count == 2, changes.allSatisfy({ $0.inode != nil }) {
        given = Set(Self.names(changes))
      }
      flushed.append(pending.remove(at: index))
      names.formUnion(Self.names(changes))
    }
    for changes in flushed.reversed() { Self.apply(changes, to: \.durableEntries) }
  }

  /// A flush has failed: the pages count as clean, and what was in them never gets to the disk.
  func failToSync(_ inode: Inode, _ extent: SyncExtent) {
    guard extent == .fileSystem else { return inode.losePages() }
    for each in changedFiles() where each.bytes != each.durableBytes {
      each.losePages()
      each.owesError = true
    }
  }

  /// Files that have a name, and may have bytes which are not on the disk.
  private func changedFiles() -> [Inode] {
    unflushed.values.filter { $0.links > 0 }.sorted { $0.number < $1.number }
  }

  /// Whether it is a rename from `new/` to `cur/`.
  private static func isClaim(_ changes: [Change]) -> Bool {
    guard changes.count == 2, changes[0].inode == nil, let spool = changes[0].directory.parent else { return false }
    return zip(changes, ["new", "cur"]).allSatisfy { change, name in
      spool.entries[Array(name.utf8)]?.inode === change.directory
    }
  }

  private static func name(_ change: Change) -> [UInt8] { Array("\(change.directory.number)/".utf8) + change.name }

  private static func names(_ changes: [Change]) -> [[UInt8]] { changes.map(name) }

  private static func text(_ changes: [Change]) -> String {
    changes.map { change in
      let name = "\(change.directory.number)/\(String(decoding: change.name, as: UTF8.self))"
      return change.inode.map { "\(name) = \($0.number)" } ?? "\(name) gone"
    }.joined(separator: ", ")
  }

  private static func apply(_ changes: [Change], to entries: ReferenceWritableKeyPath<Inode, [[UInt8]: Inode]>) {
    for change in changes { change.directory[keyPath: entries][change.name] = change.inode }
  }

  /// Closes all files, and loses some of what was not made durable.
  func cutPower(_ random: inout some RandomNumberGenerator) {
    (open, copies) = ([:], [:])
    writeBack()
    let end = keeping == .all ? pending.count : Int.random(in: 0...pending.count, using: &random)
    var undone: Set<[UInt8]> = []
    for (index, changes) in pending.enumerated() {
      let names = Self.names(changes)
      let isKept = keeping != .any ? index < end : Bool.random(using: &random) && undone.isDisjoint(with: names)
      onTrace("\(isKept ? "kept" : "lost"): \(Self.text(changes))")
      // INTERNALS.md, what btrfs taught: a job that has just been claimed may have both names.
      if isKept, keeping == .any, Self.isClaim(changes), Int.random(in: 1...3, using: &random) == 1,
        !pending[(index + 1)...].contains(where: { $0.contains { $0.inode === changes[1].inode } })
      {
        onTrace("half of it")
        Self.apply([changes[1]], to: \.durableEntries)
        undone.formUnion(Self.names([changes[0]]))
        continue
      }
      if isKept {
        Self.apply(changes, to: \.durableEntries)
        continue
      }
      undone.formUnion(names)
      // ext4, XFS and btrfs keep no length of a file that is newer than a name which they lose.
      for inode in changes.compactMap(\.inode) { inode.bytes = inode.durableBytes }
    }
    pending = []
    var seen: Set<UInt64> = []
    settle(root, &seen, &random)
  }

  private func settle(_ inode: Inode, _ seen: inout Set<UInt64>, _ random: inout some RandomNumberGenerator) {
    inode.links += 1
    guard seen.insert(inode.number).inserted else { return }
    inode.links = 1
    if inode.type == S_IFREG, inode.bytes != inode.durableBytes {
      let (now, durable) = (inode.bytes, inode.durableBytes)
      let length = Int.random(in: min(now.count, durable.count)...max(now.count, durable.count), using: &random)
      // Each block for itself: ext4 writes a length that ends in an old block without waiting for the bytes.
      let block = [1 << 20, 1024, 64].randomElement(using: &random)!
      inode.bytes = stride(from: 0, to: length, by: block).flatMap { start in
        let source = Bool.random(using: &random) ? now : durable
        return (start..<min(start + block, length)).map { $0 < source.count ? source[$0] : 0 }
      }
      inode.durableBytes = inode.bytes
    }
    guard inode.type == S_IFDIR else { return }
    inode.links += 1
    (inode.entries, inode.arrivals) = ([:], [])
    // Names have tags that no seed decides.
    let entries = inode.durableEntries.sorted {
      $0.value.number == $1.value.number
        ? $0.key.lexicographicallyPrecedes($1.key) : $0.value.number < $1.value.number
    }
    for (name, entry) in entries {
      enter(entry, inode, name)
      settle(entry, &seen, &random)
    }
  }
}
