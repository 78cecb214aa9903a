internal import Glibc
internal import Spool

extension ClaimName {
  /// Whether the claim's worker may be alive. This looks at the heartbeat (the file's time, renewed every 30 s), and at
  /// the process if it would be seen from here. It does not ask for the lock.
  func isAlive(modified: Int64, in spool: Spool, now: Timestamp) -> Bool {
    guard let owner, now.seconds - modified < spool.lease else { return false }
    guard let process, spool.sharesProcesses(with: owner) else { return true }
    // EPERM: the process exists and belongs to another user (kill(2)).
    return kill(process, 0) == 0 || errno == EPERM
  }

  /// ``owner`` for display.
  var shownOwner: String? { owner.map { escaped($0) } }
}
