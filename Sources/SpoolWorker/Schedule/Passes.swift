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

  /// Whether there are names left to read.
  var areRunning: Bool { !running.isEmpty }
  /// The same for `urgent/`, which is read by itself and first.
  var isUrgentRunning: Bool { running.contains(.urgent) }
  /// The same for the other directories.
  var areOthersRunning: Bool { running.contains { $0 != .urgent } }
  /// Whether all requested passes have ended.
  var areSettled: Bool { running.isEmpty && requested.isEmpty }

  /// Requests a pass over each directory that starts after this call.
  mutating func request() { requested = Set(Self.directories) }

  /// The same for `urgent/` alone.
  mutating func requestUrgent() { requested.insert(.urgent) }

  /// Requested passes that may begin. A running pass ends first; if it were restarted, a long one would never end.
  var ready: [Directory] { Self.directories.filter { requested.contains($0) && !running.contains($0) } }

  mutating func began(_ directory: Directory) {
    running.append(directory)
    requested.remove(directory)
  }

  mutating func ended(_ directory: Directory) { running.removeAll { $0 == directory } }

  /// The directory other than `urgent/` whose next name is to be read: claims first, then the others in turn.
  mutating func next() -> Directory? {
    if running.contains(.cur) { return .cur }
    let others = running.filter { $0 != .urgent }
    if others.isEmpty { return nil }
    turn = (turn + 1) % others.count
    return others[turn]
  }
}
