import Spool
import SpoolStatus
import SpoolWorker
import Testing

@Suite struct PayloadFiguresTests {
  private func text(_ size: UInt64, fetched: UInt64?, milliseconds: Int64? = nil, seconds: Int64? = nil) -> String {
    let receipt = Fields().with("bytes-fetched", fetched).with("milliseconds", milliseconds).with("seconds", seconds)
    return PayloadFigures(size: size, receipt: receipt.with("rate", 1)).text
  }

  @Test func `the rate is what size and time give`() {
    #expect(text(9 << 20, fetched: 9 << 20, milliseconds: 2250, seconds: 2) == "9.00M in 2.25s, 4.00M/s")
    #expect(text(48 << 20, fetched: 48 << 20, milliseconds: 12_340) == "48.0M in 12.3s, 3.89M/s")
    #expect(text(48 << 20, fetched: 48 << 20, milliseconds: 96_400) == "48.0M in 1m36s, 510K/s")
    // Fetched twice, from 0.
    #expect(text(1 << 20, fetched: 2 << 20, milliseconds: 500) == "1.00M in 0.50s, 2.00M/s")
  }

  @Test func `what was there before has no rate`() {
    #expect(text(48 << 20, fetched: 1 << 20, milliseconds: 500) == "48.0M, 1.00M of it in 0.50s, 2.00M/s")
    #expect(text(5, fetched: 0, milliseconds: 500) == "5B")
    #expect(text(5, fetched: nil, seconds: 9) == "5B")
  }

  /// A receipt of an older version has them as well.
  @Test func `whole seconds are those of several attempts, with the waits between them, and give no rate`() {
    #expect(text(48 << 20, fetched: 48 << 20, milliseconds: 208_000) == "48.0M in 3m28s")
    #expect(text(48 << 20, fetched: 48 << 20, seconds: 12) == "48.0M in 12s")
    #expect(text(5, fetched: 5, seconds: 0) == "5B in 0s")
    #expect(text(5, fetched: UInt64(Int64.max), seconds: .max).hasPrefix("5B in "))
  }

  @Test func `the log and the receipt tell the same of one job`() throws {
    let fields = Fields().with("bytes-fetched", 9 << 20).with("seconds", 2).with("milliseconds", 2250)
    let event = Event("done", .info, job: FileName("a"), fields.with("size", 9 << 20).with("rate", 99 << 20))
    let receipt = Array("http://h/x\nverified: x size=\(9 << 20)\ndone: 2026-11-21T03:02:49Z \(fields.text)\n".utf8)
    let status = try #require(receipt.withUnsafeBytes { DoneStatus(FileName("a"), $0) })
    let sentence = EventSentence(event, of: "s", now: nil, Look(isColored: false))
    #expect(sentence.figures == status.figures.map { " (\($0.text))" } && !sentence.figures.isEmpty)
  }
}
