import TestSupport
import Testing

@testable import Spool

/// What is written can be read again, whatever a server or a job put into it.
@Suite struct FieldsTests {
  private static let hostile = [
    "", " ", "\"", "\\", "\\\"", "\\x41", "a b", "a=b", "=", "key=\"x\"", "a\nb", "\r\n", "\u{0}", "\u{1b}[2J",
    "\u{7f}", "\u{85}", "\u{9b}31m", "\u{202e}", "\u{2028}", "\u{301}", "a\u{301}", "🏳️‍🌈", "\u{10ffff}", "failed: x\n",
    "\tx\t", "W/\"5f-abc\"", "é", "\u{feff}",
  ]

  private func roundTrip(_ values: [String]) throws {
    let fields = values.enumerated().reduce(Fields("2026-01-01T00:00:00Z", "word")) {
      $0.with("k\($1.offset)", $1.element)
    }
    let text = fields.text
    #expect(text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }, "\(text)")
    #expect(!text.unicodeScalars.contains { (0x80...0x9f).contains($0.value) || $0 == "\u{202e}" })
    let read = try #require(Fields(parsing: text), "\(text)")
    #expect(read.words == ["2026-01-01T00:00:00Z", "word"])
    #expect(read.named.map(\.value) == values)
    #expect(read.named.map(\.key) == values.indices.map { "k\($0)" })
    // Through a whole job file as well, where the line is cut out of its neighbours.
    let job = parsed("https://h/a\nfailed: \(text)\nfailed: 2026-01-01T00:00:00Z code=cut\n")
    #expect(job.journal.attempts.failures == 2 && job.defect == nil)
  }

  @Test(arguments: hostile) func hostileValue(_ value: String) throws { try roundTrip([value]) }

  @Test func hostileValuesTogether() throws { try roundTrip(Self.hostile) }

  /// 2,000 sets of random scalars, the awkward ones preferred; the same on each run.
  @Test func randomValues() throws {
    var generator = SeededGenerator(seed: 20_261_121)
    let awkward = Array("\"\\= \n\r\u{0}\u{7f}\u{80}\u{9f}x0:".unicodeScalars)
    for _ in 0..<2000 {
      let values = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
        var text = String.UnicodeScalarView()
        for _ in 0..<Int.random(in: 0...12, using: &generator) {
          if Bool.random(using: &generator) {
            text.append(awkward.randomElement(using: &generator) ?? " ")
          } else if let scalar = Unicode.Scalar(UInt32.random(in: 0...0x10ffff, using: &generator)) {
            text.append(scalar)
          }
        }
        return String(text)
      }
      try roundTrip(values)
    }
  }

  @Test(arguments: [
    "a=\"open", "a=\"x\\", "a=\"\\n\"", "a=\"\\x4\"", "a=\"\\xzz\"", "a=\"\\x+f\"", "a=\"\\x 1\"", "a=\"\\X41\"",
  ])
  func unreadable(_ text: String) {
    #expect(Fields(parsing: text) == nil)
  }

  @Test func reading() throws {
    let fields = try #require(Fields(parsing: "  one  two=2   three=\"3 \\\" \\\\ \\x41\\xc3\\xa9\" =x two=second"))
    #expect(fields.words == ["one"])
    #expect(fields["two"] == "2", "the first of a key counts")
    #expect(fields["three"] == "3 \" \\ Aé")
    #expect(fields[""] == "x" && fields["four"] == nil)
  }

  @Test func absentValuesAreNotWritten() {
    #expect(Fields("w").with("a", nil as String?).with("b", 1).text == "w b=1")
  }

  /// Bytes that are no UTF-8 must not make a reader trip.
  @Test func garbageNeverTraps() {
    var generator = SeededGenerator(seed: 7)
    for _ in 0..<2000 {
      let bytes = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
        UInt8.random(in: 0...255, using: &generator)
      }
      _ = Fields(parsing: String(decoding: bytes, as: UTF8.self))
      _ = parsed(bytes + [0x0A])
      _ = parsed(Array("https://h/a\nfailed: ".utf8) + bytes + [0x0A])
    }
  }
}
