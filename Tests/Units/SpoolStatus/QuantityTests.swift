import SpoolStatus
import Testing

@Suite struct QuantityTests {
  private static let bytes: [(UInt64, String)] = [
    (0, "0B"), (1023, "1023B"), (1024, "1.00K"), (1536, "1.50K"), (10_239, "10.0K"), (102_400, "100K"),
    (1_047_552, "1023K"), (1_048_575, "1.00M"), (1 << 20, "1.00M"), (12_884_901, "12.3M"), (1 << 30, "1.00G"),
    (1 << 40, "1.00T"), (UInt64.max, "16.0E"),
  ]

  @Test(arguments: bytes)
  func `bytes have three digits and a prefix`(bytes: UInt64, text: String) {
    #expect(shortBytes(bytes) == text)
    #expect(shortBytes(bytes).count <= 5)
  }

  private static let times: [(Int64, String)] = [
    (-5, "0s"), (0, "0s"), (59, "59s"), (60, "1m00s"), (200, "3m20s"), (3599, "59m59s"), (3600, "1h00m"),
    (86_399, "23h59m"),
    (86_400, "1d00h"), (99 * 86_400 + 86_399, "99d23h"), (100 * 86_400, "100d"), (Int64.max, "years"),
  ]

  @Test(arguments: times)
  func `times have two units`(seconds: Int64, text: String) {
    #expect(shortDuration(seconds) == text)
    #expect(shortDuration(seconds).count <= 6)
  }

  @Test func `all of it is 100, and nothing else is`() {
    #expect(percentage(0, of: 3) == 0)
    #expect(percentage(999_999, of: 1_000_000) == 99)
    #expect(percentage(3, of: 3) == 100)
    #expect(percentage(0, of: 0) == 100)
    #expect(percentage(.max - 1, of: .max) == 99)
  }

  @Test func `time left needs a total and a rate`() {
    #expect(secondsLeft(10, of: 110, rate: 10) == 10)
    #expect(secondsLeft(10, of: nil, rate: 10) == nil)
    #expect(secondsLeft(10, of: 110, rate: 0) == nil)
    #expect(secondsLeft(10, of: 110, rate: nil) == nil)
    #expect(secondsLeft(110, of: 110, rate: nil) == 0)
    #expect(secondsLeft(0, of: .max, rate: 1e-300) == 1_000_000_000_000)
  }

  @Test func `a rate is what came within the window`() {
    var meter = RateMeter()
    #expect(meter.rate == nil)
    meter.add(1000, at: 0)
    #expect(meter.rate == nil)
    meter.add(2000, at: 1000)
    #expect(meter.rate == 1000)
    for second in 2...20 { meter.add(2000, at: Int64(second) * 1000) }
    #expect(meter.rate == 0)
    // Started over: the loss is no rate.
    meter.add(10, at: 21_000)
    #expect(meter.rate == nil)
    meter.add(510, at: 22_000)
    #expect(meter.rate == 500)
  }
}
