internal import Spool

/// The passes over the directories that hold jobs to run: which are wanted, and which are under way.
///
/// A pass that began after a change sees it, unless things moved meanwhile. So who has to know that nothing is left
/// requests passes, and waits for the end of all.
struct Passes: Equatable {
  /// Dead workers' claims are seen first, so that one that only wants its last move gets it.
  private static let directories: [Directory] = [.cur, .partial, .new]

  private var underWay: [Directory] = []
  private var requested: Set<Directory> = []
  private var turn = 0

  /// There are names left to read.
  var areUnderWay: Bool { !underWay.isEmpty }
  /// All passes that were requested have come to their end.
  var areSettled: Bool { underWay.isEmpty && requested.isEmpty }

  /// Wants a pass over each directory, for what is there from now on.
  mutating func request() { requested = Set(Self.directories) }

  /// Passes that were requested and may begin. One that is under way comes to its end first, or a long one never would.
  var ready: [Directory] { Self.directories.filter { requested.contains($0) && !underWay.contains($0) } }

  mutating func began(_ directory: Directory) {
    underWay.append(directory)
    requested.remove(directory)
  }

  mutating func ended(_ directory: Directory) { underWay.removeAll { $0 == directory } }

  /// The directory whose next name is to be read: claims first, then the others in turn.
  mutating func next() -> Directory? {
    if underWay.isEmpty { return nil }
    if underWay.contains(.cur) { return .cur }
    turn = (turn + 1) % underWay.count
    return underWay[turn]
  }
}
