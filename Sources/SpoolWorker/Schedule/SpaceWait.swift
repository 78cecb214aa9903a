internal import Spool

/// Jobs found since the last pass that do not fit on the disk.
struct SpaceWait {
  /// After this many jobs there is a pause, because checking all jobs of a long backlog would block the transfers.
  static let most = 1000
  /// In milliseconds.
  static let pause: Int64 = 1000

  /// The smallest number of bytes that one of them needs; nil if there are none.
  private(set) var least: UInt64?
  private var told: Set<FileName> = []
  private var inVain = 0
  private var pausesUntil: Int64 = 0

  var isEmpty: Bool { least == nil }

  /// Whether more candidates may be checked at this time, in milliseconds.
  func mayGoOn(at time: Int64) -> Bool { time >= pausesUntil }

  /// Whether candidates were checked recently: during the pause and for as long after it.
  func isGoingOn(at time: Int64) -> Bool { time < pausesUntil + Self.pause }

  /// - Returns: whether it is new since there last was space.
  mutating func add(_ name: FileName, needing bytes: UInt64, at time: Int64) -> Bool {
    least = min(least ?? bytes, bytes)
    inVain += 1
    if inVain >= Self.most { (inVain, pausesUntil) = (0, time + Self.pause) }
    // Then all are reported again. This bounds the memory, because other users can create any number of jobs.
    if told.count >= 10 * Self.most { told = [] }
    return told.insert(name).inserted
  }

  /// Forgets them, because the next pass finds them again.
  mutating func removeAll() { least = nil }

  mutating func spaceCame() { told = [] }
}
