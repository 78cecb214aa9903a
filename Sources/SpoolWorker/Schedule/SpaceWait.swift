internal import Spool

/// Jobs found since the last pass that do not fit on the disk.
struct SpaceWait {
  /// After so many in vain there is a pause: looking at each of a long backlog would keep the loop from its transfers.
  static let most = 1000
  /// In milliseconds.
  static let pause: Int64 = 1000

  /// What the first of them to fit needs, in bytes; nil where there are none.
  private(set) var least: UInt64?
  private var told: Set<FileName> = []
  private var inVain = 0
  private var pausesUntil: Int64 = 0

  var isEmpty: Bool { least == nil }

  /// Whether more candidates may be looked at, at this time in milliseconds.
  func mayGoOn(at time: Int64) -> Bool { time >= pausesUntil }

  /// Whether some were looked at a moment ago: in the pause, and a turn after it.
  func isGoingOn(at time: Int64) -> Bool { time < pausesUntil + Self.pause }

  /// - Returns: whether that is news since there last was space.
  mutating func add(_ name: FileName, needing bytes: UInt64, at time: Int64) -> Bool {
    least = min(least ?? bytes, bytes)
    inVain += 1
    if inVain >= Self.most { (inVain, pausesUntil) = (0, time + Self.pause) }
    // Told of anew then: other users can put any number there, one after another.
    if told.count >= 10 * Self.most { told = [] }
    return told.insert(name).inserted
  }

  /// A pass finds them again.
  mutating func removeAll() { least = nil }

  mutating func spaceCame() { told = [] }
}
