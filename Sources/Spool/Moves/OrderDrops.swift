internal import Glibc

/// The jobs that come of standing orders.
extension Drops {
  /// So many jobs are flushed one by one: a syncfs(2) also writes what running transfers have in the page cache.
  private static let fewJobs = 32

  /// Drops those jobs that the spool does not have in any state, and makes them durable. The names are made of what
  /// each entry is known by, so a job of the name is the same, dropped before a crash, or by an earlier order for this
  /// list. One of another list, or for another file if it names no list, is of another order that had the same name.
  ///
  /// A worker that was frozen after it had looked for a job may wake up when its successor has dropped that job, and it
  /// is done. So `confirm` comes after the jobs are written to `tmp/`, and the successor first removes what it finds
  /// there. Then either `confirm` sees the successor, or the successor finds the job, or there is nothing left to move.
  /// - Parameter confirm: throws if the order is not this worker's any more.
  /// - Returns: how many were dropped.
  /// - Throws: ``SpoolError``; what `confirm` throws.
  package func dropMissing(
    _ jobs: [(text: String, name: JobName)], confirm: @escaping @Sendable () throws(SpoolError) -> Void
  ) throws(SpoolError) -> Int {
    try sweepDrops(of: jobs.map(\.name))
    var missing: [(text: String, name: JobName)] = []
    for job in jobs where try !hasJob(job.text, job.name) { missing.append(job) }
    try drop(missing, confirm: confirm)
    return missing.count
  }

  /// Drops jobs in their order, and makes them durable.
  /// - Parameter confirm: see ``dropMissing(_:confirm:)``.
  package func drop(
    _ jobs: [(text: String, name: JobName)], confirm: @escaping @Sendable () throws(SpoolError) -> Void = {}
  ) throws(SpoolError) {
    if jobs.isEmpty { return }
    let group = try GroupDrop(spool, flushesEach: jobs.count <= Self.fewJobs, confirm: confirm)
    for job in jobs { try group.drop(Array(job.text.utf8), as: job.name) }
    try group.finish()
  }

  /// Another user's job of that name is none of the order's, and would keep the entry from being fetched. A claim gives
  /// it another name.
  private func hasJob(_ text: String, _ name: JobName) throws(SpoolError) -> Bool {
    guard let found = try JobSearch(spool).job(named: name) else { return false }
    if let file = try spool.status(found.place.directory, found.place.name), !spool.believesJournal(of: file) {
      return false
    }
    // One that this user may not read, or that keeps moving.
    guard let there = found.text else { return true }
    let wanted = Array(text.utf8).withUnsafeBytes { JobText($0) }
    if there.list != nil, there.list == wanted.list { return true }
    // Queries may be signatures, and differ each time that the list is asked for; or all that tells two lists apart.
    let isOfOtherList = there.list != nil && wanted.list != nil
    func places(_ job: JobText) -> [ExactText] {
      job.request.urls.map { isOfOtherList ? $0.text.exact : URLText($0.text).place.exact }
    }
    return !Set(places(there)).isDisjoint(with: places(wanted))
  }

  /// Removes the jobs of these names that were written to `tmp/` and not dropped.
  private func sweepDrops(of names: [JobName]) throws(SpoolError) {
    if names.isEmpty { return }
    let names = Set(names.map(\.fileName))
    for file in try spool.list(.tmp) {
      guard let name = GroupDrop.target(of: file), names.contains(name), let found = try spool.status(.tmp, file),
        found.isRegular, spool.believesJournal(of: found)
      else { continue }
      try spool.system.unlinkIfPresent(spool.root, Path(.tmp, file))
    }
  }
}
