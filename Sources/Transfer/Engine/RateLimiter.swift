/// Keeps the rate limits: those that classes of fetches share, and that of each group of fetches. They may change while
/// fetches run. Knows allowances, not fetches; times come from outside.
struct RateLimiter {
  struct Member {
    let allowance: RateAllowance
    let group: FetchRequest.ID?
    let isPaused: Bool
  }

  /// A shared rate, and what fetches owe it.
  private struct Pool {
    let rate: SharedRate
    /// Bytes, 0 or less, that fetches took beyond their share and did not pay back before they ended.
    var debt = 0.0

    /// - Returns: the rate that is left to deal once the debt is paid with what came since `began`.
    mutating func payDebt(from began: Milliseconds, to now: Milliseconds, within elapsed: Milliseconds) -> Double {
      let rate = Double(self.rate.bytesPerSecond)
      let left = debt + rate * Double(now - began) / 1000
      debt = min(0, left)
      return min(rate, max(0, left) * 1000 / Double(elapsed))
    }
  }

  /// One deal covers this time at most: a pause without fetches saves nothing up.
  private static let longestDeal = Self.interval * 4

  /// A fetch takes its share of the first one that covers its class.
  private var pools: [Pool] = []
  /// The limits of groups: bytes per second, and the class that decides which rate they share.
  private var groups: [FetchRequest.ID: (rate: UInt64?, rateClass: Int)] = [:]
  private var lastDeal: Milliseconds = 0
  /// For each group that took more than its own rate and has no running fetch: when all is paid back.
  private var paidUp: [FetchRequest.ID: Milliseconds] = [:]

  var isLimited: Bool { !pools.isEmpty || groups.values.contains { $0.rate != nil } }
  var nextDeal: Milliseconds { lastDeal + Self.interval }

  // MARK: the limits

  /// Sets all shared rates. What fetches of the same classes owe stays.
  mutating func share(_ rates: [SharedRate]) {
    pools = rates.map { rate in Pool(rate: rate, debt: pools.first { $0.rate.classes == rate.classes }?.debt ?? 0) }
  }

  var sharedRates: [SharedRate] { pools.map(\.rate) }

  /// As ``TransferEngine/limit(group:to:of:)``.
  mutating func limit(_ group: FetchRequest.ID, to rate: UInt64?, of rateClass: Int?) {
    groups[group] = rateClass.map { (rate, $0) }
  }

  func isKnown(_ group: FetchRequest.ID) -> Bool { groups[group] != nil }
  func rate(of group: FetchRequest.ID?) -> UInt64? { group.flatMap { groups[$0]?.rate } }
  func rateClass(of group: FetchRequest.ID?) -> Int { group.flatMap { groups[$0]?.rateClass } ?? 0 }

  private func pool(of group: FetchRequest.ID?) -> Int? {
    let rateClass = rateClass(of: group)
    return pools.firstIndex { $0.rate.covers(rateClass) }
  }

  /// Gives and takes allowances as the limits are now. One without a limit never waits.
  func adjust(_ allowance: RateAllowance, of group: FetchRequest.ID?) {
    allowance.own = rate(of: group).map { _ in allowance.own ?? 0 }
    allowance.shared = pool(of: group).map { _ in allowance.shared ?? 0 }
  }

  // MARK: begin and end of fetches

  /// The allowance of a new group. It is empty until the first deal, which comes within an interval, and below 0 if the
  /// group took too much before.
  mutating func newAllowance(for group: FetchRequest.ID?, at now: Milliseconds) -> RateAllowance {
    let allowance = RateAllowance()
    adjust(allowance, of: group)
    if let group, let rate = rate(of: group), let paidUp = paidUp.removeValue(forKey: group) {
      // The first deal pays for the time since the last one.
      let unpaid = paidUp - max(lastDeal, now - Self.longestDeal)
      allowance.own = -Double(max(0, unpaid)) * Double(rate) / 1000
    }
    return allowance
  }

  mutating func noteDebt(of allowance: RateAllowance, group: FetchRequest.ID?, at now: Milliseconds) {
    if let pool = pool(of: group) { pools[pool].debt += min(0, allowance.shared ?? 0) }
    guard let group, let rate = rate(of: group), let own = allowance.own, own < 0 else { return }
    paidUp = paidUp.filter { $0.value > now }
    // Nothing was paid since the last deal.
    paidUp[group] = lastDeal + Milliseconds(-own * 1000 / Double(rate))
  }

  // MARK: dealing

  /// - Returns: false if the last deal is too recent for another one.
  mutating func deal(to members: [Member], at now: Milliseconds) -> Bool {
    guard now - lastDeal >= Self.interval else { return false }
    let (began, elapsed) = (lastDeal, min(now - lastDeal, Self.longestDeal))
    lastDeal = now
    let groups = Self.groups(of: members)
    for group in groups { adjust(group[0].allowance, of: group[0].group) }
    for index in pools.indices {
      let sharers = groups.filter { pool(of: $0[0].group) == index }
      let dealt = pools[index].payDebt(from: began, to: now, within: elapsed)
      Self.deal(rate: dealt, elapsed: elapsed, to: sharers, \.shared)
    }
    for group in groups {
      guard let rate = rate(of: group[0].group) else { continue }
      Self.deal(rate: Double(rate), elapsed: elapsed, to: [group], \.own)
    }
    return true
  }

  /// What the limits let through of one fetch of each group, in bytes per second; nil without a limit.
  func shares(of members: [Member]) -> [ObjectIdentifier: Double?] {
    let groups = Self.groups(of: members)
    let sharers = Dictionary(grouping: groups) { pool(of: $0[0].group) }.mapValues(\.count)
    return Dictionary(
      uniqueKeysWithValues: groups.map { group in
        let pool = pool(of: group[0].group)
        let rates = [
          rate(of: group[0].group).map { Double($0) },
          pool.map { Double(pools[$0].rate.bytesPerSecond) / Double(sharers[$0] ?? 1) },
        ]
        let share = rates.compactMap { $0 }.min().map { $0 / Double(group.count) }
        return (ObjectIdentifier(group[0].allowance), share)
      })
  }

  private static func groups(of members: [Member]) -> [[Member]] {
    Array(Dictionary(grouping: members) { ObjectIdentifier($0.allowance) }.values)
  }
}

/// What one fetch, or a group of fetches together, may still receive before it pauses, in bytes. Below 0 it took more
/// than its share and pays that back first, so the rate holds on average for pieces of any size.
final class RateAllowance {
  /// Of the rate that all fetches share; nil without such a limit.
  var shared: Double?
  /// Of the group's own rate; nil without such a limit.
  var own: Double?

  init(shared: Double? = nil, own: Double? = nil) { (self.shared, self.own) = (shared, own) }

  var isExhausted: Bool { (shared ?? 1) <= 0 || (own ?? 1) <= 0 }

  func take(_ bytes: Int) {
    shared? -= Double(bytes)
    own? -= Double(bytes)
  }
}

extension RateLimiter {
  /// Milliseconds between two deals. Short enough for an even stream, long enough to cost nothing.
  static let interval: Milliseconds = 50
  /// Shares that an idle fetch may save up; the others get the rest.
  private static let savedShares = 2.0

  /// Deals out a common rate: an equal share to each group, and what a slow one cannot use to those that wait.
  static func deal(
    rate: Double, elapsed: Milliseconds, to groups: [[Member]], _ kind: ReferenceWritableKeyPath<RateAllowance, Double?>
  ) {
    let share = rate * Double(elapsed) / 1000 / Double(groups.count)
    let most = share * savedShares
    var left = 0.0
    for group in groups {
      let allowance = (group[0].allowance[keyPath: kind] ?? 0) + share
      left += max(0, allowance - most)
      group[0].allowance[keyPath: kind] = min(allowance, most)
    }
    let waiting = groups.filter { $0.contains(where: \.isPaused) }
    for group in waiting { group[0].allowance[keyPath: kind]? += left / Double(waiting.count) }
  }
}

package struct SharedRate: Sendable, Equatable {
  /// The classes of fetches that share it (``TransferEngine/limit(group:to:of:)``); nil for all. A fetch that nobody
  /// put into a class has class 0.
  package let classes: Set<Int>?
  package let bytesPerSecond: UInt64

  package init(of classes: Set<Int>? = nil, bytesPerSecond: UInt64) {
    (self.classes, self.bytesPerSecond) = (classes, bytesPerSecond)
  }

  package func covers(_ rateClass: Int) -> Bool { classes?.contains(rateClass) ?? true }
}
