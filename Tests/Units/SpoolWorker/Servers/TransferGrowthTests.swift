import Testing

@testable import SpoolWorker

@Suite struct TransferGrowthTests {
  /// Plays so many seconds with a server that sends so many bytes a second to a number of transfers.
  private func play(
    _ growth: inout TransferGrowth, seconds: Int64, from start: Int64 = 0, limit: Int = 16, waiting: Int = 1000,
    _ rate: (Int) -> Int
  ) {
    for now in stride(from: start, to: start + seconds * 1000, by: 200) {
      let transfers = min(growth.most, limit, waiting)
      growth.receive(UInt64(rate(transfers) / 5))
      growth.look(transfers: transfers, limit: limit, at: now)
    }
  }

  @Test func growsWhileThatBringsMore() {
    var growth = TransferGrowth()
    #expect(growth.most == 4)
    play(&growth, seconds: 3) { 100_000 * $0 }
    #expect(growth.most == 16)
    play(&growth, seconds: 200, from: 3000) { 100_000 * $0 }
    #expect(growth.most == 16)
  }

  @Test(arguments: [(400_000, 4), (800_000, 8)]) func staysWhereThatIsAll(whole: Int, most: Int) {
    var growth = TransferGrowth()
    play(&growth, seconds: 5) { min(whole, 100_000 * $0) }
    #expect(growth.most == most)
    // It is tried again now and then, not all the time.
    var tried = 0
    for second in 5..<125 {
      play(&growth, seconds: 1, from: Int64(second) * 1000) { min(whole, 100_000 * $0) }
      if growth.most > most { tried += 1 }
    }
    #expect(growth.most == most && tried <= 6, "\(tried)")
  }

  @Test(arguments: [(6, 6, 600_000), (6, 4, 400_000), (2, 4, 600_000)])
  func neverBeyondTheLimit(limit: Int, most: Int, whole: Int) {
    var growth = TransferGrowth()
    play(&growth, seconds: 10, limit: limit) { min(whole, 100_000 * $0) }
    #expect(growth.most == most)
  }

  /// Few jobs, or a server that is silent, say nothing.
  @Test func noReasonToGrow() {
    var growth = TransferGrowth()
    play(&growth, seconds: 10, waiting: 3) { 100_000 * $0 }
    #expect(growth.most == 4)
    play(&growth, seconds: 10, from: 10_000) { _ in 0 }
    #expect(growth.most == 4)
  }

  /// Between two small files one transfer fewer runs, and that may be when it is looked at.
  @Test func manySmallFiles() {
    var growth = TransferGrowth()
    for now in stride(from: Int64(0), to: 3000, by: 200) {
      growth.start(growth.most)
      growth.receive(UInt64(growth.most * 1000))
      growth.look(transfers: growth.most - 1, limit: 16, at: now)
    }
    #expect(growth.most == 16)
  }
}
