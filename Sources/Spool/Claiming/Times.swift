/// What the times of files mean. The clock that set them may be wrong: a dropper's, another host's, or this host's
/// earlier.
extension Spool {
  /// Seconds for which a file must not have changed where leases cannot show writers. A file without its last newline
  /// is left alone as long.
  package static let settlingTime: Int64 = 10
  /// The longest wait for an attempt, in seconds: the longest Retry-After that is obeyed, and an hour for clocks that
  /// differ.
  static let longestWait: Int64 = 86_400 + 3600

  /// Whether a job in `partial/` with this time of modification may be tried. A time further ahead than any wait was
  /// set by a clock that was wrong.
  package static func isDue(_ modified: Int64, at now: Int64) -> Bool {
    modified <= now || modified > now + longestWait
  }

  /// Whether a file in `directory` with this time of modification may be claimed: only jobs in `partial` and orders in
  /// `standing` wait for a time.
  package func isDue(_ name: FileName, modified: Int64, in directory: Directory, at now: Int64) throws(SpoolError)
    -> Bool
  {
    switch directory {
    case .partial: return Self.isDue(modified, at: now)
    case .standing:
      if modified <= now + Self.longestWait { return modified <= now }
      // Only one that is checked rarely waits for so long.
      let text = try contents(Path(.standing, name), limit: JobText.maximumRequest) ?? []
      let every = text.withUnsafeBytes { JobText($0) }.request.standing.every ?? 0
      return modified > now + Int64(every) + Self.longestWait
    case .new, .urgent, .cur, .hold, .done, .failed, .tmp, .workers, .files: return true
    }
  }

  /// Whether a file with several names may have got or lost one just now (link(2) sets the time of the last change).
  /// Then whoever moves it is about to remove its former name, so nobody else may remove the other one.
  static func mayBeMoving(_ status: FileStatus, at now: Timestamp) -> Bool {
    status.changed > now.seconds - settlingTime && status.changed <= now.seconds + settlingTime
  }

  /// Whether a file was changed just now: its times are at most ``settlingTime`` ago or ahead. A time further ahead was
  /// copied (`cp -p`), or set by a clock that is wrong.
  static func isYoung(_ status: FileStatus, at now: Timestamp) -> Bool { youth(of: status, at: now) != nil }

  /// When a file that was changed just now was changed last, in seconds since the epoch; nil if it is not young.
  private static func youth(of status: FileStatus, at now: Timestamp) -> Int64? {
    [status.modified, status.changed].filter {
      $0 > now.seconds - settlingTime && $0 <= now.seconds + settlingTime
    }.max()
  }

  /// When a file that may still be written has not changed for ``settlingTime``, in seconds since the epoch. One that
  /// is old already, and in use, is looked at again after as long.
  static func endOfRest(of status: FileStatus, at now: Timestamp) -> Int64 {
    (youth(of: status, at: now) ?? now.seconds) + settlingTime
  }

  /// When a file was last changed, in seconds since the epoch. A time more than a day ahead cannot be true and does not
  /// count; now where none is left.
  /// - Parameter countsRenames: whether the time of the last change of its name or mode counts as well as that of its
  ///   content.
  static func lastChange(_ status: FileStatus, countsRenames: Bool, at now: Timestamp) -> Int64 {
    let latest = now.seconds + 86_400
    if status.modified > latest { return status.changed > latest ? now.seconds : status.changed }
    return countsRenames && status.changed <= latest ? max(status.modified, status.changed) : status.modified
  }
}
