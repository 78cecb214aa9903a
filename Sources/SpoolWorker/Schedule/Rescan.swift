internal import Spool

/// When the whole spool is read again, whatever inotify reports.
///
/// Where inotify cannot see what other hosts do, the passes follow each other closely while there is work, and back off
/// while there is none.
struct Rescan {
  /// Milliseconds between two passes while there is work.
  private let shortest: Int64
  /// The same after a while without work.
  private let longest: Int64
  private var interval: Int64
  /// A job, or this worker, has started since the last pass was requested.
  private var hasWorked = true

  /// Milliseconds between two passes where inotify sees all.
  static let standardInterval: Int64 = 60_000
  static let standard = Rescan(isBlind: false, longest: nil)

  /// - Parameters:
  ///   - isBlind: whether inotify does not report all changes.
  ///   - longest: in milliseconds; nil for the standard.
  init(isBlind: Bool, longest: Int64?) {
    self.longest = longest ?? (isBlind ? 10_000 : Self.standardInterval)
    shortest = isBlind ? min(2000, self.longest) : self.longest
    interval = shortest
  }

  mutating func noteStart() { hasWorked = true }

  /// A pass is requested now.
  /// - Parameters:
  ///   - isIdle: whether no job runs.
  ///   - took: how many milliseconds the reading of the last one took. Passes take at most a tenth of the time, unless
  ///     they are far apart anyway.
  /// - Returns: milliseconds until the next one.
  mutating func next(isIdle: Bool, took: Int64) -> Int64 {
    interval = isIdle && !hasWorked ? min(longest, interval * 2) : shortest
    hasWorked = false
    return shortest == longest ? longest : max(interval, min(10 * took, Self.standardInterval))
  }
}

extension WorkerOptions {
  /// For a spool on such a file system.
  func rescan(on kind: FileSystemKind) -> Rescan { Rescan(isBlind: !kind.isLocal, longest: rescan) }
}
