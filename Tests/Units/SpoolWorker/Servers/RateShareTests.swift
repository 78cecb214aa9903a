import Testing

@testable import Spool
@testable import SpoolWorker
@testable import Transfer

@Suite struct RateShareTests {
  private func others(_ transfers: [Int], _ rates: [UInt64?] = [nil, nil, nil]) -> SharedSlots.Others {
    var others = SharedSlots.Others()
    (others.transfers, others.rates) = (transfers, rates)
    return others
  }

  @Test func alone() {
    let own = [SharedRate(bytesPerSecond: 900)]
    #expect(RateShare.rates(own, running: [0, 2, 1], others([0, 0, 0])) == own)
    #expect(RateShare.rates([], running: [0, 2, 1], others([0, 0, 0])) == [])
  }

  @Test func aShareByTransfers() {
    let own = [SharedRate(bytesPerSecond: 900)]
    #expect(
      RateShare.rates(own, running: [0, 1, 0], others([0, 2, 0], [900, 900, 900])) == [SharedRate(bytesPerSecond: 300)])
    // About to begin one.
    #expect(RateShare.rates(own, running: [0, 0, 0], others([0, 2, 0])) == [SharedRate(bytesPerSecond: 300)])
  }

  @Test func theLowestRateCounts() {
    let own = [SharedRate(bytesPerSecond: 900)]
    #expect(
      RateShare.rates(own, running: [0, 1, 0], others([0, 1, 0], [nil, 100, nil])) == [SharedRate(bytesPerSecond: 50)])
    #expect(
      RateShare.rates([], running: [0, 1, 0], others([0, 1, 0], [100, 100, nil])) == [
        SharedRate(of: [0, 1], bytesPerSecond: 50)
      ])
  }

  /// Jobs of low priority have a rate of their own.
  @Test func classes() {
    let own = [SharedRate(of: [2], bytesPerSecond: 10), SharedRate(of: [0, 1], bytesPerSecond: 900)]
    #expect(
      RateShare.rates(own, running: [0, 1, 1], others([1, 1, 4], [nil, nil, nil])) == [
        SharedRate(of: [2], bytesPerSecond: 2), SharedRate(of: [0, 1], bytesPerSecond: 300),
      ])
  }
}
