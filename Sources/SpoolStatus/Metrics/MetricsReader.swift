package import Spool
internal import SystemPackage

/// Reads what a spool's metrics are made of. It changes nothing, like ``SnapshotReader``.
package struct MetricsReader {
  private let spool: Spool
  private let now: Timestamp

  /// How many jobs of each state are looked at for rates and for the next attempt.
  private static let detailed = 500
  /// How many waiting jobs are read: one that was brought back has a journal.
  private static let waitingRead = 10_000

  package init(_ spool: Spool) { (self.spool, now) = (spool, spool.now()) }

  /// - Parameter memory: from the last reading; it is brought up to date.
  /// - Throws: ``SpoolError``, EACCES if this user may not read one of the directories: the numbers would be wrong.
  package func read(_ memory: inout CounterMemory) throws(SpoolError) -> SpoolMetrics {
    let snapshot = try SnapshotReader(spool, limit: Self.detailed, receipts: 0, now: now).read()
    if let directory = snapshot.unreadable.first {
      throw SpoolError(call: .list, path: directory.rawValue, errno: .permissionDenied)
    }
    let before = memory
    var jobs = try readJobs(&memory)
    // One look can miss a job that moves (INTERNALS.md, invariant 10).
    if jobs.areAllRead, memory.misses(with: jobs.totals) {
      memory = before
      jobs = try readJobs(&memory)
    }
    memory.update(jobs.totals, areAllRead: jobs.areAllRead)
    return SpoolMetrics(
      snapshot: snapshot, totals: memory.shown, oldestWaiting: jobs.oldestWaiting,
      lastDone: memory.lastDone.map { min($0, now.seconds) }, free: free(snapshot))
  }

  private struct Jobs {
    var totals = JournalTotals()
    var oldestWaiting: Int64?
    var areAllRead = true
    /// The inodes of jobs that were counted: one that moves meanwhile has the same in the next directory.
    var seen: Set<UInt64> = []
    /// Receipts that were written before are in the memory.
    let border: Int64

    mutating func add(_ file: JobFile, data: UInt64? = nil, isDone: Bool = false) {
      areAllRead = areAllRead && file.wasRead
      if seen.insert(file.status.inode).inserted {
        totals.add(job: file.bytes, data: data, since: border, isDone: isDone)
      }
    }
  }

  /// Reads all jobs but the receipts that the memory has, archived or not. Receipts that have become old go into the
  /// memory.
  private func readJobs(_ memory: inout CounterMemory) throws(SpoolError) -> Jobs {
    // By a clock that was ahead: all is read again, so that nothing counts twice, and nothing is hidden.
    if memory.before > now.seconds { (memory.settled, memory.before) = (JournalTotals(), 0) }
    var jobs = Jobs(border: memory.before)
    func known(_ done: Int64?) -> Int64? { done.flatMap { $0 > now.seconds + 86_400 ? nil : $0 } }
    memory.lastDone = known(memory.lastDone)
    // In the order in which jobs move.
    for directory in [Directory.hold, .new, .urgent] {
      try JobSearch(spool).eachJob(in: directory, besidesOrders: true, reading: Self.waitingRead) {
        (file) throws(SpoolError) in
        // It may have been moved here after the death of its worker. Most have no data.
        var data: UInt64?
        if Self.hasBegun(file) { data = try length(ofData: file.name) }
        jobs.add(file, data: data)
        guard directory != .hold else { return }
        jobs.oldestWaiting = min(jobs.oldestWaiting ?? .max, file.lastChange(at: now))
      }
    }
    for directory in [Directory.cur, .partial, .cur, .failed] {
      try JobSearch(spool).eachJob(in: directory, besidesOrders: true) { (file) throws(SpoolError) in
        let name = directory == .cur ? ClaimName(file.name)?.job.fileName : file.name
        var data: UInt64?
        if let name, directory != .failed { data = try length(ofData: name) }
        jobs.add(file, data: data)
      }
    }
    let (from, until) = (jobs.border, max(jobs.border, now.seconds - CounterMemory.settlingTime))
    func count(_ file: JobFile) {
      memory.lastDone = [memory.lastDone, known(file.status.modified)].compactMap(\.self).max()
      if file.status.modified >= until { return jobs.add(file, isDone: true) }
      if jobs.seen.insert(file.status.inode).inserted { memory.settled.add(job: file.bytes, since: from, isDone: true) }
    }
    try JobSearch(spool).eachJob(in: .done, modifiedSince: from) { count($0) }
    try JobSearch(spool).eachArchived(modifiedSince: from) { count($0) }
    memory.before = until
    return jobs
  }

  private func length(ofData name: FileName) throws(SpoolError) -> UInt64? {
    try spool.status(.partial, name.data).map { UInt64(clamping: $0.size) }
  }

  private static func hasBegun(_ file: JobFile) -> Bool {
    var hasBegun = false
    JournalScan.lines(file.bytes) { line in if line.key == .response { hasBegun = true } }
    return hasBegun
  }

  /// The space in the spool, and in the output root of each worker, or else the spool's own.
  private func free(_ snapshot: SpoolSnapshot) -> [(place: String, bytes: UInt64)] {
    var free: [(place: String, bytes: UInt64)] = []
    if let bytes = spool.freeSpace() { free.append(("spool", bytes)) }
    let named = Set(snapshot.workers.filter(\.isAlive).compactMap { $0.report?.options["directory"]?.exact })
    for location in named.isEmpty ? [nil] : named.sorted().map(\.text).map(Optional.some) {
      // A root that is gone has no free space to tell.
      guard let root = try? OutputRoot(location, spool: spool), let bytes = root.freeSpace() else { continue }
      free.append((named.count > 1 ? "output \(escaped(location ?? ""))" : "output", bytes))
    }
    return free
  }
}
