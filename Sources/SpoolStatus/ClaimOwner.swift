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

  private var process: pid_t? {
    // By bytes, as it was taken apart to begin with: a dot with an accent is no dot to `Character`.
    guard let parts = owner?.utf8.split(separator: 0x2E, omittingEmptySubsequences: false), parts.count == 3,
      let process = pid_t(String(decoding: parts[1], as: UTF8.self)), process > 0
    else { return nil }
    return process
  }
}
