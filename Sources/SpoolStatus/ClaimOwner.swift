internal import Glibc
package import Spool

extension ClaimName {
  /// Whether the claim's worker may be alive.
  /// - Parameter now: by the file system's clock.
  func isAlive(modified: Int64, in spool: Spool, now: Timestamp) -> Bool {
    owner.map { spool.isAlive($0, beat: modified, now: now) } ?? false
  }

  /// ``owner`` for display.
  var shownOwner: String? { owner.map { escaped($0.text) } }
}

extension Spool {
  /// Why living workers start nothing, by what they say of themselves.
  /// - Throws: ``SpoolError``.
  package func waits() throws(SpoolError) -> [WorkerReport.Wait] {
    let now = now()
    return try WorkerFiles(self).all().filter { isAlive($0.owner, beat: $0.beat, now: now) }.flatMap {
      $0.report?.waits ?? []
    }
  }

  /// Whether the worker `owner` may be alive. This looks at its heartbeat (the file's time, renewed every 30 s), and at
  /// the process if it would be seen from here. It does not ask for the lock.
  /// - Parameter beat: in seconds since the epoch.
  func isAlive(_ owner: WorkerName, beat: Int64, now: Timestamp) -> Bool {
    guard !isLeaseOver(since: beat, now: now) else { return false }
    guard let process = owner.process, sharesProcesses(with: owner) else { return true }
    // EPERM: the process exists and belongs to another user (kill(2)).
    return kill(process, 0) == 0 || errno == EPERM
  }
}
