internal import Glibc
internal import Spool

extension ClaimName {
  /// Whether the worker that has the claim may be alive, as far as that shows without asking for its lock: it renews the claim's time every 30 s.
  func isAlive(modified: Int64, host ownHost: String, now: Timestamp) -> Bool {
    guard let host, now.seconds - modified < Spool.lease else { return false }
    guard host == ownHost, let process else { return true }
    // EPERM: it is there, and another user's (kill(2)).
    return kill(process, 0) == 0 || errno == EPERM
  }

  /// ``owner`` for display.
  var shownOwner: String? { owner.map { escaped($0) } }
}
