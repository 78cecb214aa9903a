/// The rate at which something grows, from looks at it.
package struct RateMeter: Sendable {
  private var looks: [(milliseconds: Int64, bytes: UInt64)] = []
  private let window: Int64

  /// - Parameter window: milliseconds that the rate is averaged over.
  package init(window: Int64) { self.window = window }

  /// Takes a look in; one with fewer bytes than before starts anew.
  package mutating func add(_ bytes: UInt64, at milliseconds: Int64) {
    if let last = looks.last {
      if bytes < last.bytes { looks = [] }
      if milliseconds <= last.milliseconds { return }
    }
    looks.append((milliseconds, bytes))
    // One look from before the window stays, so that there is something to compare with.
    while looks.count > 2, looks[1].milliseconds <= milliseconds - window { looks.removeFirst() }
  }

  /// Bytes per second; nil before the second look.
  package var rate: Double? {
    guard let first = looks.first, let last = looks.last, last.milliseconds > first.milliseconds else { return nil }
    return Double(last.bytes - first.bytes) * 1000 / Double(last.milliseconds - first.milliseconds)
  }
}
