import Testing

@testable import Transfer

/// Deals a rate out to takers of simulated connections: no clock, no network.
private struct Dealing {
  /// What a taker's connection brings by itself in an interval, in bytes; it comes in pieces of `piece`.
  struct Taker {
    var supply: Double
    var own: Double?
    var piece = 16_384
    var allowance = RateAllowance(shared: 0)
    var isWaiting = false
    var pending = 0.0
    var received = 0
  }

  let rate: Double
  var takers: [Taker] = []

  /// As the engine does: deal, then let each receive what its connection has brought, until its allowance is gone.
  mutating func run(seconds: Double) {
    let interval = Double(RateLimiter.interval) / 1000
    for _ in 0..<Int(seconds / interval) {
      let groups = takers.map { [RateLimiter.Member(allowance: $0.allowance, group: nil, isPaused: $0.isWaiting)] }
      RateLimiter.deal(rate: rate, elapsed: RateLimiter.interval, to: groups, \.shared)
      for index in takers.indices {
        if let own = takers[index].own {
          RateLimiter.deal(rate: own, elapsed: RateLimiter.interval, to: [groups[index]], \.own)
        }
        takers[index].receive(interval)
      }
    }
  }

  /// Bytes a second of each, over a run of its own.
  mutating func rates(seconds: Double) -> [Double] {
    let before = takers.map(\.received)
    run(seconds: seconds)
    return zip(takers, before).map { Double($0.received - $1) / seconds }
  }
}

extension Dealing.Taker {
  fileprivate mutating func receive(_ interval: Double) {
    // The kernel's buffers hold so much and no more; then the server waits.
    pending = min(pending + supply * interval, max(4e6, supply * interval))
    isWaiting = false
    while pending >= Double(piece) {
      if allowance.isExhausted {
        isWaiting = true
        return
      }
      allowance.take(piece)
      pending -= Double(piece)
      received += piece
    }
  }
}

@Suite struct RateLimitTests {
  private func isNear(_ value: Double, _ goal: Double, within share: Double = 0.02) -> Bool {
    abs(value - goal) <= goal * share
  }

  @Test(arguments: [1, 2, 3, 8, 50], [1e5, 1e6, 1e7, 1e9])
  func `all together get the rate, in equal shares`(count: Int, rate: Double) {
    var dealing = Dealing(rate: rate)
    dealing.takers = (0..<count).map { _ in .init(supply: 1e10) }
    // Connections that bring more at a time than an interval's share pay it back.
    dealing.run(seconds: 10)
    // At a low rate, a piece is a large part of what one gets.
    let rates = dealing.rates(seconds: rate < 1e7 ? 100 : 10)
    #expect(isNear(rates.reduce(0, +), rate))
    for each in rates { #expect(isNear(each, rate / Double(count)), "\(rates)") }
  }

  @Test func `what a slow one leaves goes to the others, and no more`() {
    var dealing = Dealing(rate: 1e6)
    dealing.takers = [.init(supply: 1e5), .init(supply: 1e10), .init(supply: 1e10)]
    dealing.run(seconds: 5)
    let rates = dealing.rates(seconds: 50)
    #expect(isNear(rates[0], 1e5) && isNear(rates[1], 4.5e5, within: 0.05) && isNear(rates[2], rates[1]), "\(rates)")
    #expect(rates.reduce(0, +) <= 1.02e6)
  }

  @Test func `a late one gets its share at once, and nobody's savings`() {
    var dealing = Dealing(rate: 3e6)
    dealing.takers = [.init(supply: 1e10), .init(supply: 1e10)]
    dealing.run(seconds: 10)
    dealing.takers.append(.init(supply: 1e10))
    let rates = dealing.rates(seconds: 2)
    for each in rates { #expect(isNear(each, 1e6, within: 0.05), "\(rates)") }
  }

  @Test func `one that was silent has not saved up a burst`() {
    var dealing = Dealing(rate: 1e6)
    dealing.takers = [.init(supply: 0), .init(supply: 1e10)]
    dealing.run(seconds: 100)
    dealing.takers[0].supply = 1e10
    let rates = dealing.rates(seconds: 1)
    #expect(rates.reduce(0, +) <= 1.25e6 && rates[0] <= 0.75e6, "\(rates)")
  }

  @Test func `an own limit holds inside the shared one, and leaves the rest to the others`() {
    var dealing = Dealing(rate: 1e6)
    dealing.takers = [.init(supply: 1e10, own: 1e5), .init(supply: 1e10), .init(supply: 1e10, own: 1e9)]
    for index in [0, 2] { dealing.takers[index].allowance.own = 0 }
    dealing.run(seconds: 5)
    let rates = dealing.rates(seconds: 50)
    #expect(isNear(rates[0], 1e5), "\(rates)")
    #expect(isNear(rates[1], 4.5e5, within: 0.05) && isNear(rates[2], rates[1], within: 0.05), "\(rates)")
    #expect(isNear(rates.reduce(0, +), 1e6, within: 0.05), "\(rates)")
  }
}

/// Limits that change while fetches run, and limits that only some share.
@Suite struct ChangingRateTests {
  /// Fetches that take all that they may.
  private struct Fetches {
    var limiter = RateLimiter()
    var members: [RateLimiter.Member] = []
    var received: [Int] = []
    var now: Milliseconds = 1000

    mutating func add(_ rateClass: Int) {
      let group = UInt64(members.count + 1)
      limiter.limit(group, to: nil, of: rateClass)
      members.append(.init(allowance: limiter.newAllowance(for: group, at: now), group: group, isPaused: true))
      received.append(0)
    }

    /// Bytes a second of each; at most 16 MB without a limit.
    mutating func rates(seconds: Int) -> [Double] {
      received = received.map { _ in 0 }
      for _ in 0..<seconds * 1000 / Int(RateLimiter.interval) {
        now += RateLimiter.interval
        _ = limiter.deal(to: members, at: now)
        for index in members.indices {
          for _ in 0..<50 where !members[index].allowance.isExhausted {
            members[index].allowance.take(16_384)
            received[index] += 16_384
          }
        }
      }
      return received.map { Double($0) / Double(seconds) }
    }
  }

  private func isNear(_ value: Double, _ goal: Double) -> Bool { abs(value - goal) <= goal * 0.1 }

  @Test func `each shares the first rate that covers it`() {
    var fetches = Fetches()
    for rateClass in [0, 0, 2, 2, 1] { fetches.add(rateClass) }
    fetches.limiter.share([
      SharedRate(of: [2], bytesPerSecond: 100_000), SharedRate(of: [0, 2], bytesPerSecond: 800_000),
    ])
    _ = fetches.rates(seconds: 5)
    let rates = fetches.rates(seconds: 20)
    #expect(isNear(rates[0], 400_000) && isNear(rates[1], 400_000), "\(rates)")
    #expect(isNear(rates[2], 50_000) && isNear(rates[3], 50_000), "\(rates)")
    #expect(rates[4] > 10_000_000, "\(rates)")
  }

  @Test func `a new limit holds at once, and none is none`() {
    var fetches = Fetches()
    for _ in 0..<2 { fetches.add(0) }
    #expect(fetches.rates(seconds: 1).allSatisfy { $0 > 10_000_000 })
    fetches.limiter.share([SharedRate(bytesPerSecond: 200_000)])
    // A fetch pays back what it takes beyond its share in one piece.
    #expect(fetches.rates(seconds: 2).reduce(0, +) < 240_000)
    fetches.limiter.limit(1, to: 20_000, of: 0)
    _ = fetches.rates(seconds: 5)
    let rates = fetches.rates(seconds: 20)
    #expect(isNear(rates[0], 20_000) && isNear(rates[1], 180_000), "\(rates)")
    fetches.limiter.share([])
    fetches.limiter.limit(1, to: nil, of: nil)
    #expect(fetches.rates(seconds: 1).allSatisfy { $0 > 10_000_000 })
  }

  /// One that took more than its share and is no more leaves the debt to the others of the same limit.
  @Test func `debts stay with their limit`() {
    var limiter = RateLimiter()
    let limits = [SharedRate(of: [0], bytesPerSecond: 1000), SharedRate(of: [1], bytesPerSecond: 1000)]
    limiter.share(limits)
    for (group, rateClass) in [(1, 0), (2, 0), (3, 1)] as [(UInt64, Int)] {
      limiter.limit(group, to: nil, of: rateClass)
    }
    let taker = limiter.newAllowance(for: 1, at: 1000)
    _ = limiter.deal(to: [.init(allowance: taker, group: 1, isPaused: true)], at: 1000)
    taker.take(1_000_000)
    limiter.noteDebt(of: taker, group: 1, at: 1000)
    limiter.share(limits.reversed())
    let others = [2, 3].map { (group: UInt64) in
      RateLimiter.Member(allowance: limiter.newAllowance(for: group, at: 1000), group: group, isPaused: true)
    }
    _ = limiter.deal(to: others, at: 1100)
    #expect(others[0].allowance.shared == 0 && (others[1].allowance.shared ?? 0) > 0)
  }
}
