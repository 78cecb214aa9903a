/// What one fetch, or a group of fetches together, may still receive before it pauses, in bytes. Below 0 it took more
/// than its share and pays that back first, so the rate holds on average for pieces of any size.
final class RateAllowance {
  /// Of the rate that all fetches share; nil without such a limit.
  var shared: Double?
  /// Of the group's own rate; nil without such a limit.
  var own: Double?

  init(shared: Double? = nil, own: Double? = nil) {
    self.shared = shared
    self.own = own
  }

  var isExhausted: Bool { (shared ?? 1) <= 0 || (own ?? 1) <= 0 }

  func take(_ bytes: Int) {
    if let shared { self.shared = shared - Double(bytes) }
    if let own { self.own = own - Double(bytes) }
  }
}

/// Deals out a common rate: an equal share to each, and what a slow one cannot use to those that wait. Pure.
enum RateDealer {
  /// Milliseconds between two deals. Short enough for an even stream, long enough to cost nothing.
  static let interval: Milliseconds = 50
  /// Shares that an idle fetch may save up; the others get the rest.
  private static let savedShares = 2.0

  /// - Parameters:
  ///   - rate: bytes per second for all together.
  ///   - elapsed: milliseconds since the last deal.
  ///   - allowances: the allowance of each, and whether it waits for one.
  static func deal(rate: Double, elapsed: Milliseconds, to allowances: inout [(allowance: Double, isWaiting: Bool)]) {
    guard !allowances.isEmpty else { return }
    let share = rate * Double(elapsed) / 1000 / Double(allowances.count)
    var left = 0.0
    for index in allowances.indices {
      allowances[index].allowance += share
      let most = share * savedShares
      if allowances[index].allowance > most {
        left += allowances[index].allowance - most
        allowances[index].allowance = most
      }
    }
    let waiting = allowances.indices.filter { allowances[$0].isWaiting }
    for index in waiting { allowances[index].allowance += left / Double(waiting.count) }
  }
}
