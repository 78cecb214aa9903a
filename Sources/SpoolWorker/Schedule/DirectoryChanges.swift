internal import Spool

/// Whether names in the directories of a spool have changed between two looks at their times, which take a call each:
/// for changes by other hosts, which inotify does not report.
///
/// Changes by this worker count as well. They cannot be told from others, and a pass over names that are known is
/// cheap.
struct DirectoryChanges {
  /// A directory at the last look.
  private struct Seen {
    let stamp: FileStatus.Stamp?
    /// When ``stamp`` was first seen, in milliseconds.
    let since: Int64
    /// Whether any further change would have given it another stamp.
    var isSettled: Bool
  }

  private var seen: [Directory: Seen] = [:]

  /// Where jobs and standing orders appear that may run. A touched file changes no directory: `spoolrun retry` touches
  /// the directory as well (``Spool/perform(_:_:in:)``), and what a person touches is found by a pass.
  static let directories: [Directory] = [.new, .urgent, .partial, .standing]
  /// Milliseconds in which two changes may get the same time: network file systems count at least in seconds.
  private static let tick: Int64 = 1000

  /// - Parameters:
  ///   - stamp: nil where there is no such directory.
  ///   - now: in milliseconds, before the names are read again.
  /// - Returns: whether they have to be.
  mutating func note(_ stamp: FileStatus.Stamp?, of directory: Directory, at now: Int64) -> Bool {
    guard let last = seen[directory], last.stamp == stamp else {
      seen[directory] = Seen(stamp: stamp, since: now, isSettled: false)
      return true
    }
    // What was changed after the last reading, in the same tick, did not change the stamp.
    seen[directory]?.isSettled = now - last.since >= Self.tick
    return !last.isSettled
  }
}
