/// How the limits of rate are kept.
extension TransferEngine {
  var isRateLimited: Bool {
    options.bytesPerSecond != nil || running.values.contains { $0.exchange.request.bytesPerSecond != nil }
  }

  func allowance(ofGroup group: FetchRequest.ID?) -> RateAllowance? {
    guard let group else { return nil }
    return running.values.first { $0.exchange.request.group == group }?.exchange.allowance
  }

  /// Nothing before the first deal, which comes within an interval, and less than nothing for a group that took too much before.
  func newAllowance(for request: FetchRequest, now: Milliseconds) -> RateAllowance {
    var own = request.bytesPerSecond.map { _ in 0.0 }
    if let rate = request.bytesPerSecond, let group = request.group, let paidUp = paidUp.removeValue(forKey: group) {
      // The first deal is about the time from then on.
      let unpaid = paidUp - max(lastDeal, now - Self.longestDeal)
      own = -Double(max(0, unpaid)) * Double(rate) / 1000
    }
    return RateAllowance(shared: options.bytesPerSecond.map { _ in 0 }, own: own)
  }

  func noteDebt(of exchange: Exchange, now: Milliseconds) {
    debt += min(0, exchange.allowance.shared ?? 0)
    guard let rate = exchange.request.bytesPerSecond, let own = exchange.allowance.own, own < 0,
      let group = exchange.request.group
    else { return }
    paidUp = paidUp.filter { $0.value > now }
    // Since the last deal nothing has been paid.
    paidUp[group] = lastDeal + Milliseconds(-own * 1000 / Double(rate))
  }

  /// Renews what each fetch or group may receive, and lets those go on that have something again.
  func dealRates() {
    guard !running.isEmpty, isRateLimited else { return }
    let now = monotonicMilliseconds()
    guard now - lastDeal >= RateDealer.interval else { return }
    // After a pause without fetches nothing has been saved up.
    let (began, elapsed) = (lastDeal, min(now - lastDeal, Self.longestDeal))
    lastDeal = now
    let exchanges = running.values.map(\.exchange)
    let groups = Dictionary(grouping: exchanges) { ObjectIdentifier($0.allowance) }.values.map { members in
      (
        allowance: members[0].allowance, rate: members[0].request.bytesPerSecond,
        isWaiting: members.contains(where: \.isPaused)
      )
    }
    if let rate = options.bytesPerSecond {
      let dealt = payDebt(rate: Double(rate), since: began, within: elapsed)
      var allowances = groups.map { (allowance: $0.allowance.shared ?? 0, isWaiting: $0.isWaiting) }
      RateDealer.deal(rate: dealt, elapsed: elapsed, to: &allowances)
      for (group, share) in zip(groups, allowances) { group.allowance.shared = share.allowance }
    }
    for group in groups {
      if let rate = group.rate {
        var single = [(allowance: group.allowance.own ?? 0, isWaiting: group.isWaiting)]
        RateDealer.deal(rate: Double(rate), elapsed: elapsed, to: &single)
        group.allowance.own = single[0].allowance
      }
    }
    isPerforming = true
    // The one that waits longest first: the first to go on may take all that a group was dealt, and it would be the same each time.
    let paused = exchanges.filter(\.isPaused).sorted { ($0.pausedSince ?? 0) < ($1.pausedSince ?? 0) }
    for exchange in paused where !exchange.allowance.isExhausted { exchange.resume() }
    isPerforming = false
    finishCancelled()
  }

  /// - Returns: the rate that is left to deal when the ``debt`` has been paid of all that came since `began`.
  private func payDebt(rate: Double, since began: Milliseconds, within elapsed: Milliseconds) -> Double {
    let left = debt + rate * Double(lastDeal - began) / 1000
    debt = min(0, left)
    return min(rate, max(0, left) * 1000 / Double(elapsed))
  }

  /// What the limits let through of each fetch, in bytes per second; nil without a limit.
  func shares() -> [(exchange: Exchange, share: Double?)] {
    let groups = Dictionary(grouping: running.values.map(\.exchange)) { ObjectIdentifier($0.allowance) }
    return groups.values.flatMap { members in
      let rates = [
        members[0].request.bytesPerSecond.map { Double($0) },
        options.bytesPerSecond.map { Double($0) / Double(groups.count) },
      ]
      let share = rates.compactMap { $0 }.min().map { $0 / Double(members.count) }
      return members.map { ($0, share) }
    }
  }
}
