/// Keeps the rate limits: the common one, and that of each group of fetches. Knows allowances, not fetches; times come
/// from outside.
struct RateLimiter {
  /// Fetches of one group share one allowance.
  typealias Group = UInt64

  /// One running fetch.
  struct Member {
    let allowance: RateAllowance
    /// Bytes per second for its group; nil if the group has no limit.
    let rate: UInt64?
    let isPaused: Bool
  }

  /// One deal covers this time at most: a pause without fetches saves nothing up.
  private static let longestDeal = RateDealer.interval * 4

  /// Bytes per second of all fetches together; nil without a limit.
  private let common: UInt64?
  private var lastDeal: Milliseconds = 0
  /// Bytes of the common rate, 0 or less, that fetches took beyond their share and did not pay back before they ended.
  private var debt = 0.0
  /// For each group that took more than its own rate and has no running fetch: when all is paid back.
  private var paidUp: [Group: Milliseconds] = [:]

  init(common: UInt64?) { self.common = common }

  var isLimited: Bool { common != nil }
  var nextDeal: Milliseconds { lastDeal + RateDealer.interval }

  /// The allowance of a new group. It is empty until the first deal, which comes within an interval, and below 0 if the
  /// group took too much before.
  mutating func newAllowance(rate: UInt64?, group: Group?, at now: Milliseconds) -> RateAllowance {
    var own = rate.map { _ in 0.0 }
    if let rate, let group, let paidUp = paidUp.removeValue(forKey: group) {
      // The first deal pays for the time since the last one.
      let unpaid = paidUp - max(lastDeal, now - Self.longestDeal)
      own = -Double(max(0, unpaid)) * Double(rate) / 1000
    }
    return RateAllowance(shared: common.map { _ in 0 }, own: own)
  }

  /// Remembers what the last fetch of a group owes when it ends.
  mutating func noteDebt(of allowance: RateAllowance, rate: UInt64?, group: Group?, at now: Milliseconds) {
    debt += min(0, allowance.shared ?? 0)
    guard let rate, let own = allowance.own, own < 0, let group else { return }
    paidUp = paidUp.filter { $0.value > now }
    // Nothing was paid since the last deal.
    paidUp[group] = lastDeal + Milliseconds(-own * 1000 / Double(rate))
  }

  /// Renews what each group may receive.
  /// - Returns: false if the last deal is too recent for another one.
  mutating func deal(to members: [Member], at now: Milliseconds) -> Bool {
    guard now - lastDeal >= RateDealer.interval else { return false }
    let (began, elapsed) = (lastDeal, min(now - lastDeal, Self.longestDeal))
    lastDeal = now
    let groups = Self.groups(of: members).map { members in
      (allowance: members[0].allowance, rate: members[0].rate, isWaiting: members.contains(where: \.isPaused))
    }
    if let common {
      let dealt = payDebt(rate: Double(common), since: began, within: elapsed)
      var allowances = groups.map { (allowance: $0.allowance.shared ?? 0, isWaiting: $0.isWaiting) }
      RateDealer.deal(rate: dealt, elapsed: elapsed, to: &allowances)
      for (group, share) in zip(groups, allowances) { group.allowance.shared = share.allowance }
    }
    for group in groups {
      guard let rate = group.rate else { continue }
      var single = [(allowance: group.allowance.own ?? 0, isWaiting: group.isWaiting)]
      RateDealer.deal(rate: Double(rate), elapsed: elapsed, to: &single)
      group.allowance.own = single[0].allowance
    }
    return true
  }

  /// - Returns: the rate that is left to deal once the ``debt`` is paid with what came since `began`.
  private mutating func payDebt(rate: Double, since began: Milliseconds, within elapsed: Milliseconds) -> Double {
    let left = debt + rate * Double(lastDeal - began) / 1000
    debt = min(0, left)
    return min(rate, max(0, left) * 1000 / Double(elapsed))
  }

  /// What the limits let through of one fetch of each group, in bytes per second; nil without a limit.
  func shares(of members: [Member]) -> [ObjectIdentifier: Double?] {
    let groups = Self.groups(of: members)
    return Dictionary(
      uniqueKeysWithValues: groups.map { group in
        let rates = [group[0].rate.map { Double($0) }, common.map { Double($0) / Double(groups.count) }]
        let share = rates.compactMap { $0 }.min().map { $0 / Double(group.count) }
        return (ObjectIdentifier(group[0].allowance), share)
      })
  }

  /// Members that share an allowance.
  private static func groups(of members: [Member]) -> [[Member]] {
    Array(Dictionary(grouping: members) { ObjectIdentifier($0.allowance) }.values)
  }
}
