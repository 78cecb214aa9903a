import Testing

@testable import Spool

/// `limit-rate:` by priority and time of day.
@Suite struct RateRulesTests {
  private func rules(_ text: String) throws -> RateRules { try RateRules.read(text) }

  @Test(
    arguments: [
      ("2M", .low, 0, 2 << 20), ("none", .high, 0, nil), ("2M 08:00-23:00, none", .normal, 479, nil),
      ("2M 08:00-23:00, none", .normal, 480, 2 << 20), ("2M 08:00-23:00, none", .normal, 1379, 2 << 20),
      ("2M 08:00-23:00, none", .normal, 1380, nil), ("23:00-7:30 none,2M", .normal, 1380, nil),
      ("23:00-7:30 none,2M", .normal, 449, nil), ("23:00-7:30 none,2M", .normal, 450, 2 << 20),
      ("low 500k, 2M 08:00-23:00", .low, 0, 500 << 10), ("low 500k, 2M 08:00-23:00", .high, 0, nil),
      ("low 500k, 2M 08:00-23:00", .high, 700, 2 << 20),
      ("08:00-12:00 low 1k , 2k low,  high none , 4k", .low, 500, 1024),
      ("08:00-12:00 low 1k , 2k low,  high none , 4k", .low, 720, 2048),
      ("08:00-12:00 low 1k , 2k low,  high none , 4k", .high, 720, nil),
      ("08:00-12:00 low 1k , 2k low,  high none , 4k", .normal, 720, 4096), ("0:00-24:00 1k, 2k", .normal, 1439, 1024),
      ("20:00-24:00 1k, 2k", .normal, 1439, 1024), ("20:00-24:00 1k, 2k", .normal, 0, 2048),
      ("12:00-12:00 1k", .normal, 100, 1024),
    ] as [(String, Priority, Int, UInt64?)])
  func theFirstClauseThatAppliesCounts(text: String, priority: Priority, minute: Int, rate: UInt64?) throws {
    #expect(try rules(text).bytesPerSecond(for: priority, at: minute) == rate)
  }

  @Test(arguments: [
    "", ",", "2M,", "08:00-23:00", "low", "2M 3M", "none 2M", "2M low high", "2M 08:00-12:00 13:00-14:00", "2M 8-23",
    "2M 08:00", "2M 25:00-26:00", "2M 08:60-09:00", "2M 24:00-08:00", "2M -08:00", "2M 08:0-09:00", "2M 008:00-09:00",
    "2M urgent", "1023", "2M; none", "2M 08:00 - 23:00",
  ])
  func whatIsNoList(text: String) {
    let defect = #expect(throws: Defect.self) { try rules(text) }
    #expect(defect?.reason.hasPrefix("must be bytes per second") == true)
  }

  @Test(arguments: ["2M", "none", "500k low 08:00-23:00, 2M 23:00-07:05, none high", "1k 20:00-24:00"])
  func theTextIsReadAgain(text: String) throws {
    #expect(try rules(text).text == text)
    #expect(try rules(rules(text).text) == rules(text))
  }
}
