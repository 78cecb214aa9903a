import Testing

@testable import Transfer

/// How fast a server was, from tables of times: no clock, no network.
@Suite struct PaceTests {
  private enum Event {
    /// At these milliseconds: the server's turn begins, or ends; so many bytes have come.
    case run(Milliseconds), rest(Milliseconds), bytes(Int, Milliseconds)
    /// What the rate is then, in bytes per second; nil where nothing can be said yet.
    case rate(Milliseconds, Double?)
  }

  private func play(_ events: [Event], over seconds: Int) {
    var pace = Pace(over: seconds)
    for event in events {
      switch event {
      case .run(let time): pace.run(at: time)
      case .rest(let time): pace.rest(at: time)
      case .bytes(let count, _): pace.take(count)
      case .rate(let time, let expected): #expect(pace.rate(at: time) == expected, "at \(time)")
      }
    }
  }

  @Test func `says nothing before a stretch has passed`() {
    play([.run(5000), .bytes(100, 5000), .rate(5000, nil), .rate(14_999, nil), .rate(15_000, 10)], over: 10)
  }

  @Test func `is about the latest stretch, not about what came before`() {
    play(
      [
        .run(0), .bytes(1_000_000, 100), .rate(1000, nil), .rate(2000, nil), .rate(5000, nil), .rate(10_000, 100_000),
        .rate(11_000, 0), .bytes(50, 11_500), .rate(12_000, 5), .rate(15_000, 5), .rate(25_000, 0),
      ], over: 10)
  }

  @Test func `time in which the server can do nothing is none`() {
    play(
      [
        .run(0), .bytes(10, 500), .rest(1000), .rate(500_000, nil), .run(500_000), .bytes(10, 500_500),
        .rate(508_999, nil), .rate(509_000, 2), .rest(509_000), .rate(900_000, 2),
      ], over: 10)
  }

  @Test func `goes on from request to request`() {
    var events: [Event] = []
    for request in 0..<10 as Range<Milliseconds> {
      let begin = request * 60_000
      events += [.run(begin), .rate(begin, nil), .bytes(700, begin + 900), .rest(begin + 999)]
    }
    play(events + [.run(900_000), .rate(900_000, nil), .rate(900_010, 700)], over: 10)
  }

  @Test func `a second run changes nothing`() {
    play([.run(0), .run(6000), .bytes(10, 7000), .rate(10_000, 1)], over: 10)
  }

  /// A drip for a week holds no more than a stretch's samples.
  @Test func `needs little memory`() {
    var pace = Pace(over: 300)
    pace.run(at: 0)
    for second in 1...600_000 as ClosedRange<Milliseconds> {
      pace.take(1)
      let rate = pace.rate(at: second * 1000)
      #expect(second < 300 ? rate == nil : rate == 1)
    }
    #expect(Mirror(reflecting: pace).children.contains { ($0.value as? [Any])?.count ?? 0 > 30 } == false)
  }

  @Test(
    arguments: [
      (1024, nil, 1024), (1024, 1_000_000, 1024), (1024, 1024, 512), (1024, 128, 64), (0, 10, 0),
    ] as [(UInt64, Double?, Double)])
  func `the limits' share bounds what is asked of a server`(floor: UInt64, share: Double?, least: Double) {
    #expect(RateFloor(bytesPerSecond: floor, seconds: 300).least(share: share) == least)
  }
}
