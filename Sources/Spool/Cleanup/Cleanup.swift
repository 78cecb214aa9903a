internal import Glibc
internal import SystemPackage

/// Something that a clean-up removed, or found and left alone.
package struct CleanupFinding: Sendable {
  package enum Kind: String, Sendable {
    /// Data in `partial/` or set aside in `failed/` whose job is gone.
    case orphan
    /// Data of a failed job whose output is another file.
    case unpublished
    /// A link in `roots/` that `spoolrun get` made, to a directory that is gone.
    case root
    /// A list in `pieces/` that no job names.
    case pieces
    /// A file in `tmp/` that was not written to for 36 hours.
    case stale
    /// A record in `failed/` of something that is gone.
    case record
    case receipt
    /// A directory that got receipts; ``CleanupFinding/count`` of them.
    case archived
    /// An archive of version 0.2: left alone.
    case oldArchive
    /// A receipt whose payload does not exist, and was not delivered: left alone.
    case missing
    /// Something in `done/` that names no payload: left alone.
    case noReceipt = "no-receipt"
    /// Something in `cur/` that no worker will take: left alone.
    case stray
    /// A leftover that the kernel does not let us remove (chattr(1)), or a file that cannot be read: it stays.
    case stuck
  }

  package let kind: Kind
  /// `DIRECTORY/NAME`, safe for a terminal.
  package let place: String
  /// Of the file; 0 where they are of no interest.
  package let bytes: Int64
  /// For ``Kind/archived``: how many receipts.
  package let count: Int
  /// For ``Kind/missing``: the payload's path, safe for a terminal.
  package let output: String?
  /// For ``Kind/stuck``: why it is left alone.
  package let obstacle: SpoolError?

  init(_ kind: Kind, _ path: Path, bytes: Int64 = 0, count: Int = 0, output: String? = nil, obstacle: SpoolError? = nil)
  {
    self.kind = kind
    place = path.display
    (self.bytes, self.count, self.output, self.obstacle) = (bytes, count, output, obstacle)
  }
}

/// One clean-up of a spool. Directories are read as streams, and only the names of leftovers are kept.
package struct Cleanup {
  package var isDry = false
  /// Seconds after which a file in `tmp/` is abandoned, as in a maildir.
  package var staleAge: Int64 = 36 * 3600
  /// Seconds for which data without a job is left alone: its job may be in a person's editor.
  package var grace: Int64 = 36 * 3600
  /// Seconds after which a receipt is removed; nil: never.
  package var keepDone: Int64?
  /// Seconds after which a receipt is archived; nil: never.
  package var archive: Int64?
  /// Whether to read jobs too: receipts, to look for their payloads; failed jobs, whose data cannot be published; and,
  /// where output roots are gone, all that may name them. A worker that starts has no time for that.
  package var readsJobs = false

  let spool: Spool
  /// The time by this host's clock.
  let now = Timestamp.now()
  let report: (CleanupFinding) -> Void

  /// Unless told otherwise, it keeps all receipts, and reads no jobs.
  /// - Parameter report: called for each finding, after the removal.
  package init(_ spool: Spool, report: @escaping (CleanupFinding) -> Void) {
    (self.spool, self.report) = (spool, report)
  }

  /// Removes what no job needs: data and records whose job is gone, old files in `tmp/`, old receipts if asked to.
  /// Never a job, never a payload. Archives old receipts if asked to.
  /// - Throws: ``SpoolError``; what a single file causes is reported as ``CleanupFinding/Kind/stuck``.
  package func run() throws(SpoolError) {
    try cleanPartial()
    try cleanTemporaries()
    try cleanFailed()
    if readsJobs || keepDone != nil || archive != nil { try cleanDone() }
    if readsJobs {
      // One job that cannot be read may name any of them.
      try unlessStuck(Path(NamedRoots.directory), cleanRoots)
      try unlessStuck(Path(PieceLists.directory), cleanPieces)
      for name in try spool.list(.cur) where ClaimName(name) == nil { report(CleanupFinding(.stray, Path(.cur, name))) }
      for path in try Archive(spool).oldFiles() { report(CleanupFinding(.oldArchive, path)) }
    }
  }

  private func cleanPartial() throws(SpoolError) {
    let stream = try spool.stream(.partial)
    var orphans: [FileName] = []
    while let name = try stream.next() {
      guard !name.isIgnored, name.isData else { continue }
      let path = Path(.partial, name)
      let isOrphan = try unlessStuck(path, in: .partial) { () throws(SpoolError) -> Bool? in
        // Two looks that cost little and settle nearly all; the one that counts is under the lock of the data.
        guard try isOlder(path, than: grace), try spool.status(.partial, name.dataOwner) == nil else { return false }
        if readsJobs { try removeUnpublished(path, of: name.dataOwner) }
        return true
      }
      if isOrphan == true { orphans.append(name) }
    }
    try removeOrphans(orphans, in: .partial)
  }

  private func cleanTemporaries() throws(SpoolError) {
    let stream = try spool.stream(.tmp)
    var time = now
    var isTimeKnown = isDry
    while let name = try stream.next() {
      // A leading dot is ignored here as everywhere, but for a worker's own files.
      guard !name.isIgnored || isOwnMark(name) else { continue }
      let path = Path(.tmp, name)
      let status = try unlessStuck(path, in: .tmp) { () throws(SpoolError) -> FileStatus? in
        guard try isOlder(path, than: staleAge, at: time) else { return nil }
        if !isTimeKnown {
          // Old by our clock: ask the one that stamped it, which may be another machine's.
          time = try spool.fileSystemTime()
          isTimeKnown = true
          guard try isOlder(path, than: staleAge, at: time) else { return nil }
        }
        return try spool.status(.tmp, name)
      }
      guard let status, !status.isDirectory else { continue }
      try remove(path, in: .tmp, CleanupFinding(.stale, path, bytes: status.size))
    }
  }

  /// What a process left that died while it asked for the time or for its user, or read a list; and ``ShortageMark``.
  private func isOwnMark(_ name: FileName) -> Bool {
    name == ShortageMark.name || [".clock:", ".owner:", ".list:"].contains { name.bytes.starts(with: $0.utf8) }
  }

  private func cleanFailed() throws(SpoolError) {
    let stream = try spool.stream(.failed)
    // Of many failed jobs only what may be a leftover, or the subject of a record whose name was cut.
    var names: [FileName] = []
    while let name = try stream.next() {
      if !name.isIgnored, name.isData || name.hasRecordSuffix || name.hasLongRecord { names.append(name) }
    }
    let all = Set(names)
    var leftovers: [FileName] = []
    for name in names {
      let isLeftover = try unlessStuck(Path(.failed, name), in: .failed) { () throws(SpoolError) -> Bool? in
        try JobSearch(spool).isLeftover(name, among: all)
      }
      if isLeftover == true { leftovers.append(name) }
    }
    let records = leftovers.isEmpty ? [] : Set(names.map(\.record))
    var orphans: [FileName] = []
    for name in leftovers {
      let path = Path(.failed, name)
      let status = try unlessStuck(path, in: .failed) { () throws(SpoolError) -> FileStatus? in
        if name.isData {
          guard try isOlder(path, than: grace) else { return nil }
        } else {
          guard !records.contains(name), try spool.status(.failed, name.recordSubject) == nil,
            // It is written before its subject is moved here, perhaps just now.
            try isOlder(path, than: max(grace, FileStatus.settlingTime), sinceRename: false)
          else { return nil }
        }
        return try spool.status(.failed, name)
      }
      guard let status else { continue }
      if name.isData {
        orphans.append(name)
      } else {
        try remove(path, in: .failed, CleanupFinding(.record, path, bytes: status.size))
      }
    }
    try removeOrphans(orphans, in: .failed)
  }

  private func cleanDone() throws(SpoolError) {
    var archived: [Path: Int] = [:]
    let end = Result { () throws(SpoolError) in try cleanDone(&archived) }
    // Also what was moved before an error.
    if !isDry, !archived.isEmpty { try Archive(spool).flush(archived.keys) }
    for (month, count) in archived.sorted(by: { $0.key.display < $1.key.display }) {
      report(CleanupFinding(.archived, month, count: count))
    }
    try end.get()
  }

  /// - Parameter archived: counts the receipts that it moves, by their new directories.
  private func cleanDone(_ archived: inout [Path: Int]) throws(SpoolError) {
    var roots: [ExactText: OutputRoot] = [:]
    // The inner nil: one cannot be read, and may have any.
    var open: Set<FileName>??
    for name in try spool.list(.done) {
      let path = Path(.done, name)
      let status = try unlessStuck(path, in: .done) { () throws(SpoolError) -> FileStatus? in
        try spool.status(.done, name)
      }
      guard let status else { continue }
      // The receipt is the last that was written to the file.
      let age = now.seconds - status.lastChange(countsRenames: false, at: now)
      let isOld = keepDone.map { age >= $0 } ?? false
      let isToArchive = archive.map { age >= $0 } ?? false
      guard isOld || isToArchive || readsJobs else { continue }
      let publication: Journal.Publication?
      do throws(SpoolError) {
        publication = JobName(name) == nil ? nil : try JobSearch(spool).job(.done, name)?.journal.publication
      } catch  where error.isUnreadable || spool.concernsOneFile(error, in: .done) {
        report(CleanupFinding(.stuck, path, obstacle: error))
        continue
      }
      guard let publication, let receipt = publication.receipt else {
        if try spool.status(.done, name) != nil { report(CleanupFinding(.noReceipt, path)) }
        continue
      }
      if isOld {
        if JobName(name).map(FeedEntry.isKeyed) == true {
          let entries = if let open { open } else { try openEntries(path) }
          open = .some(entries)
          guard let entries, !entries.contains(name) else { continue }
        }
        try remove(path, in: .done, CleanupFinding(.receipt, path, bytes: status.size))
        continue
      }
      if !receipt.isDelivered, try !hasPayload(receipt, &roots) {
        let root = receipt.directory.map { escaped($0) + "/" } ?? "\(Directory.files.rawValue)/"
        report(CleanupFinding(.missing, path, output: root + escaped(receipt.output)))
      }
      if isToArchive, let time = publication.receiptTime, let month = try take(name, time) {
        archived[month, default: 0] += 1
      }
    }
  }

  /// - Parameter path: of a receipt that waits for them.
  private func openEntries(_ path: Path) throws(SpoolError) -> Set<FileName>? {
    try unlessStuck(path, in: .done) { () throws(SpoolError) -> Set<FileName>? in try JobSearch(spool).openEntries() }
  }

  /// - Returns: the directory that the receipt is in now, or would be; nil for one that was not moved.
  private func take(_ name: FileName, _ time: Timestamp) throws(SpoolError) -> Path? {
    if isDry { return Archive.path(of: time) }
    return try unlessStuck(Path(.done, name), in: .done) { () throws(SpoolError) in
      try Archive(spool).take(name, doneAt: time)
    }
  }

  /// - Parameter roots: those opened already, by their paths.
  private func hasPayload(_ receipt: Journal.Receipt, _ roots: inout [ExactText: OutputRoot]) throws(SpoolError) -> Bool
  {
    do throws(SpoolError) {
      let key = (receipt.directory ?? "").exact
      let root = if let root = roots[key] { root } else { try OutputRoot(receipt.directory, spool: spool) }
      roots[key] = root
      if case .missing = try root.check(receipt, nil) { return false }
      return true
    } catch  where error.errno == .noSuchFileOrDirectory || error.errno == .notDirectory {
      return false
    } catch {
      // A directory was replaced by a link, or is closed to this user, or its disk is away: the payload may exist.
      return true
    }
  }

  // MARK: one file

  /// Whether the file was not written to for `seconds`, nor renamed, if that counts; false if there is no file.
  private func isOlder(_ path: Path, than seconds: Int64, at time: Timestamp? = nil, sinceRename: Bool = true)
    throws(SpoolError) -> Bool
  {
    if seconds <= 0 { return true }
    let now = time ?? now
    guard let status = try spool.system.statusIfPresent(spool.root, path) else { return false }
    // `cp -p` gives a new file an old time of modification, but not of change.
    return status.lastChange(countsRenames: sinceRename, at: now) <= now.seconds - seconds
  }

  /// Removes those whose jobs are gone, many with one look for their jobs.
  private func removeOrphans(_ names: [FileName], in directory: Directory) throws(SpoolError) {
    for start in stride(from: 0, to: names.count, by: JobData.mostAtOnce) {
      var idle: [IdleData] = []
      for name in names[start...].prefix(JobData.mostAtOnce) {
        let data = try unlessStuck(Path(directory, name), in: directory) { () throws(SpoolError) in
          try JobData(spool).lockIdle(directory, name)
        }
        if let data { idle.append(data) }
      }
      // Under the locks, as in ``JobData/removeOrphanedData(of:)``.
      var absent: Set<FileName> = []
      do throws(SpoolError) {
        absent = try JobSearch(spool).absent(of: Set(idle.map(\.job)))
      } catch  where spool.concernsOneFile(error, in: directory) {
        // Each alone shows whose it is.
        for data in idle {
          let found = try unlessStuck(data.path, in: directory) { () throws(SpoolError) -> Set<FileName>? in
            try JobSearch(spool).absent(of: [data.job])
          }
          absent.formUnion(found ?? [])
        }
      }
      for data in idle {
        if absent.contains(data.job) {
          try remove(
            data.path, of: data.status, in: directory, CleanupFinding(.orphan, data.path, bytes: data.status.size))
        }
      }
      withExtendedLifetime(idle) {}
    }
  }

  /// - Parameter file: what has the name; nil for whatever has it.
  func remove(_ path: Path, of file: FileStatus? = nil, in directory: Directory, _ finding: CleanupFinding)
    throws(SpoolError)
  {
    let isRemoved = try unlessStuck(path, in: directory) { () throws(SpoolError) -> Bool? in
      if let file, try spool.system.statusIfPresent(spool.root, path)?.isSameFile(as: file) != true { return false }
      return isDry ? true : try orNil(spool.system.unlink(spool.root, path), on: .noSuchFileOrDirectory) != nil
    }
    if isRemoved == true { report(finding) }
  }

  /// What `body` returns; nil if something about this one file hinders it, which is reported.
  private func unlessStuck<Value>(
    _ path: Path, in directory: Directory, _ body: () throws(SpoolError) -> Value?
  ) throws(SpoolError) -> Value? {
    do throws(SpoolError) { return try body() } catch  where spool.concernsOneFile(error, in: directory) {
      report(CleanupFinding(.stuck, path, obstacle: error))
      return nil
    }
  }

  /// The same for a step that is left out as a whole then.
  private func unlessStuck(_ path: Path, _ step: () throws(SpoolError) -> Void) throws(SpoolError) {
    _ = try unlessStuck(path, in: .tmp) { () throws(SpoolError) -> Bool? in
      try step()
      return true
    }
  }
}

/// What is a leftover only by what the jobs say.
extension Cleanup {
  /// Removes the data of a job that failed because its output is another file, and so cannot be published. Data of
  /// other failed jobs stays: `retry` continues it. Until a person cleans up, that holds for this data as well.
  func removeUnpublished(_ path: Path, of job: FileName) throws(SpoolError) {
    // The look that costs little; the one that counts is under the lock of the data.
    guard try isUnpublishable(job) else { return }
    let bytes = try JobData(spool).removeIdle(path, isDry: isDry) { () throws(SpoolError) in try isUnpublishable(job) }
    if let bytes { report(CleanupFinding(.unpublished, path, bytes: bytes)) }
  }

  private func isUnpublishable(_ job: FileName) throws(SpoolError) -> Bool {
    // Before `cur/` is listed.
    if try spool.status(.failed, job) == nil { return false }
    let places = try JobSearch(spool).places(of: job).filter { $0.directory != .done }
    guard let place = places.first, places.count == 1, place.directory == .failed else { return false }
    let attempts = try orNil(JobSearch(spool).job(.failed, place.name), where: \.isUnreadable)?.journal.attempts
    return attempts?.endsInFailure == true && attempts?.lastFailure?["code"] == FailureCode.outputExists.rawValue
  }

  /// Removes links to output roots that are gone, if `spoolrun get` made them and no job names them. It makes them
  /// again when it needs them. A person's own links stay: the disk may be mounted again.
  func cleanRoots() throws(SpoolError) {
    var gone = try goneRoots()
    if gone.isEmpty { return }
    try JobSearch(spool).forEachJob(in: JobSearch.readingOrder.filter { $0 != .done }) { text in
      if let root = text.request.root { gone.remove(root.text) }
    }
    for name in gone.sorted() {
      let path = Path("\(NamedRoots.directory)/\(name)")
      try remove(path, in: .tmp, CleanupFinding(.root, path))
    }
  }

  private func cleanPieces() throws(SpoolError) {
    var unnamed: Set<FileName> = []
    let names = try spool.system.namesIfPresent(in: spool.root, Path(PieceLists.directory))
    for name in names where try isOlder(PieceLists.path(name), than: staleAge, sinceRename: false) {
      unnamed.insert(name)
    }
    if unnamed.isEmpty { return }
    func keep(_ request: JobRequest) {
      if let key = request.expected.pieces { unnamed.remove(FileName("\(key.list)")) }
    }
    try JobSearch(spool).forEachJob { keep($0.request) }
    // A job that moved back meanwhile, such as one that is tried again, was seen by neither look of the first reading.
    try JobSearch(spool).forEachJob(in: JobSearch.directories.reversed()) { keep($0.request) }
    try JobSearch(spool).eachArchived { keep($0.request) }
    for name in unnamed {
      let path = PieceLists.path(name)
      // A job that names it may have been dropped meanwhile; its list is new then.
      guard try isOlder(path, than: staleAge, sinceRename: false),
        let status = try spool.system.statusIfPresent(spool.root, path)
      else { continue }
      try remove(path, in: .tmp, CleanupFinding(.pieces, path, bytes: status.size))
    }
  }

  private func goneRoots() throws(SpoolError) -> Set<String> {
    var gone: Set<String> = []
    for entry in try spool.system.namesIfPresent(in: spool.root, Path(NamedRoots.directory)) {
      guard let name = String(validating: entry.bytes, as: UTF8.self), try isOwnRoot(name) else { continue }
      do throws(SpoolError) {
        // Through the link.
        _ = try spool.system.status(spool.root, Path("\(NamedRoots.directory)/\(name)/."))
      } catch  where error.errno == .noSuchFileOrDirectory || error.errno == .notDirectory {
        gone.insert(name)
      } catch {
        // It is there, or that cannot be known.
      }
    }
    return gone
  }

  private func isOwnRoot(_ name: String) throws(SpoolError) -> Bool {
    let target = try orNil(NamedRoots(spool).target(of: name), on: .invalidArgument, .noSuchFileOrDirectory)
    return target.map { NamedRoots.name(for: $0) } == name
  }
}
