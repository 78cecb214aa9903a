internal import Spool

/// When the whole spool is read again, whatever inotify reports.
///
/// Where inotify cannot see what other hosts do, the worker looks between these passes whether a directory has changed
/// (``DirectoryChanges``), and reads the spool if one has.
///
/// Times are milliseconds of the loop's clock.
struct Rescan {
  /// Between two passes if nothing is known to have changed.
  private let interval: Int64
  let isBlind: Bool
  private var nextPass: Int64 = 0
  private var nextLook: Int64

  /// Between two passes where inotify sees all.
  static let standardInterval: Int64 = 60_000
  /// Between two looks. A job that another host drops has to start within 2 s.
  static let lookInterval: Int64 = 1500
  static let standard = Rescan(isBlind: false, interval: nil)

  /// - Parameters:
  ///   - isBlind: whether inotify does not report all changes.
  ///   - interval: nil for the standard.
  init(isBlind: Bool, interval: Int64?) {
    self.isBlind = isBlind
    self.interval = interval ?? (isBlind ? 10_000 : Self.standardInterval)
    nextLook = isBlind ? 0 : .max
  }

  func isPassDue(at now: Int64) -> Bool { now >= nextPass }
  func isLookDue(at now: Int64) -> Bool { now >= nextLook }

  /// Until the next pass or look.
  func untilNext(at now: Int64) -> Int64 { max(0, min(nextPass, nextLook) - now) }

  /// A pass is requested now.
  /// - Parameter took: how long the reading of the last one took. Where passes may follow closely, they take at most a
  ///   tenth of the time.
  mutating func passes(at now: Int64, took: Int64) {
    guard isBlind else {
      nextPass = now + interval
      return
    }
    let pause = min(10 * took, Self.standardInterval)
    nextPass = now + max(interval, pause)
    nextLook = now + max(Self.lookInterval, pause)
  }

  /// The directories are looked at now.
  mutating func looks(at now: Int64) { nextLook = now + Self.lookInterval }
}

extension WorkerOptions {
  /// For a spool on such a file system.
  func rescan(on kind: FileSystemKind) -> Rescan { Rescan(isBlind: !kind.isLocal, interval: rescan) }
}
