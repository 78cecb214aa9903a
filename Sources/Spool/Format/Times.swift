/// What the times of files say, by clocks that may be wrong: a dropper's, another host's, this one's a while ago.
extension Spool {
  /// Seconds for which a file must not have changed where leases cannot tell of writers, and a file without its last newline is left alone.
  package static let settlingTime: Int64 = 10
  /// Seconds without a heartbeat after which another host's claim is a dead worker's: ten heartbeats.
  package static let lease: Int64 = 300
  /// Seconds that no wait for an attempt exceeds: the longest Retry-After that is heeded, and an hour for clocks that differ.
  static let longestWait: Int64 = 86_400 + 3600

  /// Whether a job in `partial/` with this time of modification may be tried. What is further ahead than any wait was set by a clock that was wrong.
  package static func isDue(_ modified: Int64, at now: Int64) -> Bool {
    modified <= now || modified > now + longestWait
  }

  /// Whether a file was changed just now: at most ``settlingTime`` ago, or ahead. A time further ahead was kept from elsewhere (`cp -p`), or set by a clock
  /// that is wrong.
  static func isYoung(_ status: FileStatus, at now: Timestamp) -> Bool {
    [status.modified, status.changed].contains { $0 > now.seconds - settlingTime && $0 <= now.seconds + settlingTime }
  }

  /// When a file was last changed, as far as its times can be true, which one a day ahead cannot; now where neither can.
  /// - Parameter countsRenames: whether the time of the last change of its name or mode counts as well as that of its content.
  static func lastChange(_ status: FileStatus, countsRenames: Bool, at now: Timestamp) -> Int64 {
    let latest = now.seconds + 86_400
    if status.modified > latest { return status.changed > latest ? now.seconds : status.changed }
    return countsRenames && status.changed <= latest ? max(status.modified, status.changed) : status.modified
  }
}
