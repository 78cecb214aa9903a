import TestSupport
import Testing

@testable import Spool

@Suite struct TimestampTests {
  @Test(arguments: [
    ("1970-01-01T00:00:00Z", 0), ("2026-11-21T03:00:00Z", 1_795_230_000), ("2024-02-29T23:59:59Z", 1_709_251_199),
    ("2000-02-29", 951_782_400), ("1969-12-31T23:59:59Z", -1), ("9999-12-31T23:59:59Z", 253_402_300_799),
    ("2026-12-01", 1_796_083_200),
  ])
  func moments(text: String, seconds: Int64) {
    #expect(Timestamp(text)?.seconds == seconds)
    #expect(Timestamp(seconds: seconds).description.hasPrefix(text))
  }

  @Test(arguments: [
    "", "2026", "2026-02-29", "2100-02-29T00:00:00Z", "2026-13-01", "2026-00-10", "2026-01-00", "2026-01-32",
    "2026-04-31", "2026-01-01T24:00:00Z", "2026-01-01T23:60:00Z", "2026-01-01T23:59:60Z", "2026-01-01t00:00:00Z",
    "2026-01-01T00:00:00z", "2026-01-01T00:00:00", "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00.5Z",
    "2026-01-01 00:00:00Z", "26-01-01", "2026/01/01", "2026-1-1", " 2026-01-01", "2026-01-01 ", "-026-01-01",
    "+026-01-01", "20２6-01-01", "tomorrow",
  ])
  func noMoments(_ text: String) { #expect(Timestamp(text) == nil) }

  @Test func roundTrip() {
    var generator = SeededGenerator(seed: 11)
    for _ in 0..<5000 {
      let moment = Timestamp(seconds: Int64.random(in: -62_135_596_800...253_402_300_799, using: &generator))
      #expect(Timestamp(moment.description) == moment)
    }
  }

  @Test func order() {
    #expect(Timestamp(seconds: 1) < Timestamp(seconds: 2))
    #expect(Timestamp(seconds: 1) + 59 == Timestamp(seconds: 60))
    #expect(Timestamp.now() > Timestamp(seconds: 1_700_000_000))
  }
}
