internal import Spool

/// The passes over the directories that contain jobs to run: which are requested, and which are running.
///
/// A pass sees all changes before its start, unless files are moved during the pass. To know that nothing is left,
/// request passes and wait until all have ended.
struct Passes: Equatable {
  /// Claims of dead workers come before the others, because some need only their last move.
  private static let directories: [Directory] = [.urgent, .cur, .partial, .new, .standing]

  private var running: [Directory] = []
  private var requested: Set<Directory> = []
  private var turn = 0

  var areRunning: Bool { !running.isEmpty }
  /// The same for `urgent/`, which is read by itself and first.
  var isUrgentRunning: Bool { running.contains(.urgent) }
  var areOthersRunning: Bool { running.contains { $0 != .urgent } }
  var areSettled: Bool { running.isEmpty && requested.isEmpty }

  /// Requests a pass over each directory that starts after this call.
  mutating func request() { requested = Set(Self.directories) }

  mutating func request(_ directories: Set<Directory>) { requested.formUnion(directories) }

  /// Requested passes that may begin. A running pass ends first; if it were restarted, a long one would never end.
  var ready: [Directory] { Self.directories.filter { requested.contains($0) && !running.contains($0) } }

  mutating func began(_ directory: Directory) {
    running.append(directory)
    requested.remove(directory)
  }

  mutating func ended(_ directory: Directory) { running.removeAll { $0 == directory } }

  /// The directory whose next name is to be read: `urgent/`, or of the others claims first, then the rest in turn.
  mutating func next(urgent: Bool = false) -> Directory? {
    if urgent { return isUrgentRunning ? .urgent : nil }
    if running.contains(.cur) { return .cur }
    let others = running.filter { $0 != .urgent }
    if others.isEmpty { return nil }
    turn = (turn + 1) % others.count
    return others[turn]
  }
}

/// When the whole spool is read again, whatever inotify reports.
///
/// Where inotify cannot see what other hosts do, the worker looks between these passes whether a directory has changed
/// (``DirectoryChange``), and reads the spool if one has.
///
/// Times are milliseconds of the loop's clock.
struct Rescan {
  /// Between two passes if nothing is known to have changed.
  private let interval: Int64
  let isBlind: Bool
  private var nextPass: Int64 = 0
  private var nextLook: Int64

  /// Between two passes over the whole spool where inotify sees all.
  static let standardInterval: Int64 = 60_000
  /// Between two looks. A job that another host drops has to start within 2 s.
  static let lookInterval: Int64 = 1500

  /// - Parameter isBlind: whether inotify does not report all changes.
  /// - Parameter interval: nil for the standard.
  init(isBlind: Bool, interval: Int64?) {
    self.isBlind = isBlind
    self.interval = interval ?? (isBlind ? 10_000 : Self.standardInterval)
    nextLook = isBlind ? 0 : .max
  }

  func isPassDue(at now: Int64) -> Bool { now >= nextPass }
  func isLookDue(at now: Int64) -> Bool { now >= nextLook }

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

  mutating func looks(at now: Int64) { nextLook = now + Self.lookInterval }
}
