internal import Glibc
internal import SystemPackage

/// Moves old receipts from `done/` into archives, one for each month (INTERNALS.md, invariant 15). No receipt is
/// removed before an archive that has it is durable. One that an earlier run has archived, and not removed, is known by
/// its name and its bytes.
struct Archiver {
  private let spool: Spool
  private let isOld: (FileStatus) -> Bool
  private let report: (CleanupFinding) -> Void
  private let progress: (Int, Int) -> Void

  /// Hashes of the names of old receipts: two of one hash cost a look.
  private var candidates: Set<Int> = []
  private var looked = 0
  private var batch = ArchiveBatch()
  /// How many receipts were removed from `done/` in this run, or would be, by months. Those whose archive was read have
  /// a count.
  private var moved: [ArchiveMonth: Int] = [:]
  /// Those whose archive gets no more receipts.
  private var damaged: Set<ArchiveMonth> = []
  /// Names of receipts that are archived and cannot be removed.
  private var stuck: Set<FileName> = []
  private let buffer = ReadBuffer()

  /// - Parameter isOld: whether a receipt is to be archived.
  init(
    _ spool: Spool, isOld: @escaping (FileStatus) -> Bool, progress: @escaping (Int, Int) -> Void,
    report: @escaping (CleanupFinding) -> Void
  ) {
    (self.spool, self.isOld, self.progress, self.report) = (spool, isOld, progress, report)
  }

  /// - Parameter isDry: whether to report what there is to do, and do nothing.
  /// - Throws: ``SpoolError``, EWOULDBLOCK while another process archives.
  mutating func run(isDry: Bool) throws(SpoolError) {
    try findCandidates()
    if candidates.isEmpty { return }
    if isDry { return try count() }
    let archive = Archive(spool: spool)
    try archive.provide()
    let lock = try archive.lock()
    defer { reportMonths() }
    let stream = try spool.stream(.done)
    while let name = try stream.next() {
      guard isCandidate(name) else { continue }
      try take(name)
      if batch.isFull { try commit() }
    }
    try commit()
    // Held until here.
    try lock.close()
  }

  private func isCandidate(_ name: FileName) -> Bool { candidates.contains(name.hashValue) && JobName(name) != nil }

  private mutating func findCandidates() throws(SpoolError) {
    let stream = try spool.stream(.done)
    while let name = try stream.next() {
      if name.isIgnored { continue }
      guard let status = try spool.status(.done, name), status.isRegular, isOld(status) else { continue }
      candidates.insert(name.hashValue)
    }
  }

  private mutating func count() throws(SpoolError) {
    let stream = try spool.stream(.done)
    while let name = try stream.next() {
      if isCandidate(name), let found = try read(name) { moved[found.month, default: 0] += 1 }
    }
    reportMonths()
  }

  private func reportMonths() {
    for (month, count) in moved.sorted(by: { $0.key < $1.key }) where count > 0 {
      report(CleanupFinding(.archived, Archive.path(month.fileName), count: count))
    }
  }

  // MARK: one receipt

  private mutating func take(_ name: FileName) throws(SpoolError) {
    looked += 1
    progress(looked, candidates.count)
    guard let found = try read(name) else { return }
    if moved[found.month] == nil {
      moved[found.month] = 0
      try settle(found.month)
      // It may be one of those that were archived already.
      if try spool.status(.done, name) == nil { return }
    }
    if damaged.contains(found.month) || stuck.contains(name) { return }
    try batch.add(found.line, ArchiveBatch.Receipt(name, found.status, found.month))
  }

  /// - Returns: nil if it has gone, is no old receipt any more, or cannot be read.
  private func read(_ name: FileName) throws(SpoolError) -> (line: [UInt8], month: ArchiveMonth, status: FileStatus)? {
    let path = Path(.done, name)
    do throws(SpoolError) {
      var line: [UInt8] = []
      guard let status = try buffer.read(path, of: spool), isOld(status),
        let month = ArchivedReceipt.append(name, buffer.bytes, modified: status.modified, to: &line)
      else { return nil }
      return (line, month, status)
    } catch  where error.isGone || error.isNoRegularFile {
      return nil
    } catch  where spool.concernsOneFile(error, in: .done) {
      report(CleanupFinding(.stuck, path, obstacle: error))
      return nil
    }
  }

  /// Removes the receipts in `done/` that the archive of this month has already, because a run was killed before it
  /// removed them, or somebody brought them back. An archive that is damaged gets no more receipts.
  private mutating func settle(_ month: ArchiveMonth) throws(SpoolError) {
    let stream = ArchiveStream(spool, [month.fileName])
    var known: [ArchiveBatch.Receipt] = []
    do throws(SpoolError) {
      while let receipt = try stream.next() {
        guard isCandidate(receipt.name), let status = try buffer.read(Path(.done, receipt.name), orNoneOf: spool),
          buffer.bytes.elementsEqual(receipt.bytes)
        else { continue }
        known.append(ArchiveBatch.Receipt(receipt.name, status, month))
      }
    } catch  where error.isDamage {
      damaged.insert(month)
      return report(CleanupFinding(.damaged, Archive.path(month.fileName), obstacle: error))
    }
    if known.isEmpty { return }
    // Whoever put the archive there may not have made it durable.
    try spool.system.open(spool.root, Archive.path(month.fileName), O_RDONLY | O_NOFOLLOW).fsync()
    try Archive(spool: spool).flush()
    for receipt in known { try remove(receipt) }
  }

  // MARK: many receipts

  /// Writes what was read into the archives, makes them durable, and then removes the receipts.
  private mutating func commit() throws(SpoolError) {
    let (members, receipts) = try batch.take()
    if receipts.isEmpty { return }
    for (month, members) in members.sorted(by: { $0.key < $1.key }) {
      try Archive(spool: spool).add(members, of: month)
    }
    try Archive(spool: spool).flush()
    for receipt in receipts { try remove(receipt) }
  }

  /// Removes a receipt that is archived, unless it has changed since it was read.
  private mutating func remove(_ receipt: ArchiveBatch.Receipt) throws(SpoolError) {
    let path = Path(.done, receipt.name)
    do throws(SpoolError) {
      let status = try spool.system.status(spool.root, path)
      guard status.inode == receipt.inode, status.stamp == receipt.stamp else { return }
      try spool.system.unlink(spool.root, path)
      moved[receipt.month, default: 0] += 1
    } catch  where error.errno == .noSuchFileOrDirectory {
    } catch  where spool.concernsOneFile(error, in: .done) {
      stuck.insert(receipt.name)
      report(CleanupFinding(.stuck, path, obstacle: error))
    }
  }
}

extension ReadBuffer {
  /// As ``read(_:of:)``; nil also if there is no such file.
  fileprivate func read(_ path: Path, orNoneOf spool: Spool) throws(SpoolError) -> FileStatus? {
    do throws(SpoolError) { return try read(path, of: spool) } catch  where error.isGone || error.isNoRegularFile {
      return nil
    }
  }
}

/// Receipts that were read and are archived together: so many that the price of writing an archive anew is shared among
/// them, and so few that they fit into memory.
struct ArchiveBatch {
  /// A receipt as it was read.
  struct Receipt {
    let name: FileName
    let inode: UInt64
    let stamp: FileStatus.Stamp
    let month: ArchiveMonth

    init(_ name: FileName, _ status: FileStatus, _ month: ArchiveMonth) {
      (self.name, inode, stamp, self.month) = (name, status.inode, status.stamp, month)
    }
  }

  /// Bytes of lines, which are gzipped together, and of what comes of that.
  private static let mostLines = 8 << 20
  private static let mostMembers = 8 << 20

  private var receipts: [Receipt] = []
  private var lines: [ArchiveMonth: [UInt8]] = [:]
  private var members: [ArchiveMonth: [UInt8]] = [:]
  private var lineBytes = 0
  private var memberBytes = 0

  /// Whether it has to be written before more is added.
  var isFull: Bool { memberBytes >= Self.mostMembers }

  /// - Throws: ``SpoolError``, ENOMEM.
  mutating func add(_ line: [UInt8], _ receipt: Receipt) throws(SpoolError) {
    receipts.append(receipt)
    lines[receipt.month, default: []] += line
    lineBytes += line.count
    if lineBytes >= Self.mostLines { try pack() }
  }

  /// Empties the batch.
  /// - Returns: the members of gzipped files to add to each archive, and the receipts that are in them.
  /// - Throws: ``SpoolError``, ENOMEM.
  mutating func take() throws(SpoolError) -> (members: [ArchiveMonth: [UInt8]], receipts: [Receipt]) {
    try pack()
    defer { self = ArchiveBatch() }
    return (members, receipts)
  }

  private mutating func pack() throws(SpoolError) {
    for (month, lines) in lines {
      let before = members[month]?.count ?? 0
      try Gzip.append(lines, to: &members[month, default: []])
      memberBytes += (members[month]?.count ?? 0) - before
    }
    lines = [:]
    lineBytes = 0
  }
}
