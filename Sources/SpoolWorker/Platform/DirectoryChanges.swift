internal import Spool

/// Whether names in the directories of a spool have changed between two looks at their times, which take a call each:
/// for changes by other hosts, which inotify does not report.
///
/// Changes by this worker count as well. They cannot be told from others, and a pass over names that are known is
/// cheap.
struct DirectoryChanges {
  private var changes: [Directory: DirectoryChange] = [:]

  /// Where jobs and standing orders appear that may run. A touched file changes no directory: `spoolrun retry` touches
  /// the directory as well (``Steering/perform(_:_:in:)``), and what a person touches is found by a pass.
  static let directories: [Directory] = [.new, .urgent, .partial, .standing]

  /// See ``DirectoryChange/note(_:at:)``.
  mutating func note(_ stamp: FileStatus.Stamp?, of directory: Directory, at now: Int64) -> Bool {
    changes[directory, default: DirectoryChange()].note(stamp, at: now)
  }
}

/// The same of one directory.
struct DirectoryChange {
  /// At the last look; nil before the first one, which is a change.
  private var stamp: FileStatus.Stamp??
  /// When ``stamp`` was first seen, in milliseconds.
  private var since: Int64 = 0
  /// Whether any further change would have given it another stamp.
  private var isSettled = false

  /// Milliseconds in which two changes may get the same time: network file systems count at least in seconds.
  private static let tick: Int64 = 1000

  /// - Parameters:
  ///   - stamp: nil where there is no such directory.
  ///   - now: in milliseconds, before the names are read again.
  /// - Returns: whether they have to be.
  mutating func note(_ stamp: FileStatus.Stamp?, at now: Int64) -> Bool {
    guard self.stamp == .some(stamp) else {
      (self.stamp, since, isSettled) = (stamp, now, false)
      return true
    }
    // What was changed after the last reading, in the same tick, did not change the stamp.
    let wasSettled = isSettled
    isSettled = now - since >= Self.tick
    return !wasSettled
  }
}
