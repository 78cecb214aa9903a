/// The rate at which a number of bytes grows, from repeated looks at it.
package struct RateMeter: Sendable {
  private var looks: [(milliseconds: Int64, bytes: UInt64)] = []
  /// Milliseconds over which a rate is averaged: the same wherever a job's rate is shown.
  private static let window: Int64 = 5000

  /// Of what has not been looked at yet.
  package init() {}

  /// Adds a look. One with fewer bytes than the last starts the average again.
  package mutating func add(_ bytes: UInt64, at milliseconds: Int64) {
    if let last = looks.last {
      if bytes < last.bytes { looks = [] }
      if milliseconds <= last.milliseconds { return }
    }
    looks.append((milliseconds, bytes))
    // Keeps one look from before the window, to compare with.
    while looks.count > 2, looks[1].milliseconds <= milliseconds - Self.window { looks.removeFirst() }
  }

  /// Bytes per second; nil before the second look.
  package var rate: Double? {
    guard let first = looks.first, let last = looks.last, last.milliseconds > first.milliseconds else { return nil }
    return Double(last.bytes - first.bytes) * 1000 / Double(last.milliseconds - first.milliseconds)
  }
}
