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
      for _ in 0..<transfers where rate(transfers) > 0 { growth.receive(UInt64(rate(transfers) / 5 / transfers)) }
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
    for second in 5..<115 {
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
      for _ in 0..<growth.most { growth.receive(1000) }
      growth.look(transfers: growth.most - 1, limit: 16, at: now)
    }
    #expect(growth.most == 16)
  }

  /// A new connection takes three times as long to its first byte as a kept one, and a file is one packet.
  @Test(arguments: [50, 200, 1000] as [Int64]) func smallFilesFromFarAway(roundTrip: Int64) {
    var growth = TransferGrowth()
    var ends: [Int64] = []
    for now in 0..<20 * roundTrip + 2000 {
      while ends.count < growth.most { ends.append(now + 3 * roundTrip) }
      for index in ends.indices where ends[index] == now {
        growth.receive(100_000)
        ends[index] = now + roundTrip
      }
      if now % 200 == 0 { growth.look(transfers: ends.count, limit: 16, at: now) }
    }
    #expect(growth.most == 16)
  }

  /// A few rounds of small files are enough where more of them bring much more. Each takes 75 ms, or four times 75 ms
  /// are all that the server has.
  @Test(arguments: [(false, 16), (true, 4)]) func muchMoreShowsEarly(isLimited: Bool, most: Int) {
    var growth = TransferGrowth()
    var ends: [Int64] = []
    for now in Int64(0)..<2000 {
      let time = isLimited ? 75 * Int64(growth.most) / 4 : 75
      while ends.count < growth.most { ends.append(now + time) }
      growth.start(ends.count)
      for index in ends.indices where ends[index] <= now {
        growth.receive(100_000)
        growth.judge(limit: 16, at: now)
        ends[index] = now + time
      }
      if now % 200 == 0 { growth.look(transfers: ends.count, limit: 16, at: now) }
      if now == 600 { #expect(isLimited || growth.most == 16) }
    }
    #expect(growth.most == most)
  }
}
