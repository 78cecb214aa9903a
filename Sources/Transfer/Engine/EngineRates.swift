/// The rate limits of an engine, which may change while fetches run.
extension TransferEngine {
  /// Sets the rates that fetches share. A fetch takes its share of the first one that covers its class, or has no such
  /// limit.
  package func share(_ rates: [SharedRate]) {
    guard rates != limiter.sharedRates else { return }
    limiter.share(rates)
    adjustAllowances()
  }

  /// Sets the limits of a group of fetches, also of those that run.
  /// - Parameters:
  ///   - rate: of the group, in bytes per second; nil for the rate of its requests.
  ///   - rateClass: decides which of the shared rates it takes its share of; nil for a group that is no more.
  package func limit(group: FetchRequest.ID, to rate: UInt64?, of rateClass: Int?) {
    let isSame = rate == limiter.rate(of: group) && rateClass == limiter.rateClass(of: group)
    if isSame, limiter.isKnown(group) { return }
    limiter.limit(group, to: rate, of: rateClass)
    adjustAllowances()
  }

  /// A transfer that waits for a limit which is no more goes on with the next poll.
  private func adjustAllowances() {
    for entry in running.values { limiter.adjust(rateMember(entry.exchange)) }
  }

  var isRateLimited: Bool {
    limiter.isLimited || running.values.contains { $0.exchange.request.bytesPerSecond != nil }
  }

  func rateMember(_ exchange: Exchange) -> RateLimiter.Member {
    RateLimiter.Member(
      allowance: exchange.allowance, rate: rate(of: exchange.request),
      rateClass: limiter.rateClass(of: exchange.request.group),
      isPaused: exchange.isPaused)
  }

  private func rate(of request: FetchRequest) -> UInt64? { limiter.rate(of: request.group) ?? request.bytesPerSecond }

  /// The allowance of the request's group.
  func allowance(of request: FetchRequest, at now: Milliseconds) -> RateAllowance {
    let others = running.values.map(\.exchange)
    if let group = request.group, let other = others.first(where: { $0.request.group == group }) {
      return other.allowance
    }
    return limiter.newAllowance(
      rate: rate(of: request), rateClass: limiter.rateClass(of: request.group), group: request.group, at: now)
  }

  /// Notes what the last fetch of a group owes.
  func noteDebt(of exchange: Exchange, at now: Milliseconds) {
    guard !running.values.contains(where: { $0.exchange.allowance === exchange.allowance }) else { return }
    limiter.noteDebt(of: rateMember(exchange), group: exchange.request.group, at: now)
  }

  /// Renews what each group may receive, and resumes those that have something again.
  func dealRates() {
    guard !running.isEmpty, isRateLimited else { return }
    let exchanges = running.values.map(\.exchange)
    guard limiter.deal(to: exchanges.map { rateMember($0) }, at: monotonicMilliseconds()) else { return }
    isPerforming = true
    // The one that waits longest first: the first may take all that its group was dealt, and would be the same each
    // time.
    let paused = exchanges.filter(\.isPaused).sorted { ($0.pausedSince ?? 0) < ($1.pausedSince ?? 0) }
    for exchange in paused where !exchange.mustWait { exchange.resume() }
    isPerforming = false
    finishCancelled()
  }
}

extension Exchange {
  var allowance: RateAllowance { shared.allowance }
}
