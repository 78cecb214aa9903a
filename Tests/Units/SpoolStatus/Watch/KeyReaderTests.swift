import SpoolStatus
import TestSupport
import Testing

@Suite struct KeyReaderTests {
  private static let sequences: [(String, [Key])] = [
    ("\u{1B}[A\u{1B}[B", [.up, .down]), ("\u{1B}OA\u{1B}OB", [.up, .down]), ("\u{1B}[H\u{1B}OF", [.home, .end]),
    ("\u{1B}[1~\u{1B}[4~\u{1B}[7~\u{1B}[8~", [.home, .end, .home, .end]), ("\u{1B}[5~\u{1B}[6~", [.pageUp, .pageDown]),
    // With Shift and Ctrl (xterm).
    ("\u{1B}[1;5Aj", [.up, .character("j")]), ("\u{1B}[5;2~", [.pageUp]),
    ("\r\n", [.enter, .enter]), ("\u{7F}\u{08}", [.backspace, .backspace]), ("\u{0C}", [.redraw]),
    ("aé日", [.character("a"), .character("é"), .character("日")]),
    // Keys that nothing is done for: Insert, F5, Ctrl-A, and an answer to a question about the cursor.
    ("\u{1B}[2~\u{1B}[15~\u{01}\u{1B}[24;80Rq", [.character("q")]),
    // Escape, and a key soon after it.
    ("\u{1B}q", [.escape, .character("q")]),
  ]

  @Test(arguments: sequences.indices)
  func `keys are read, in one piece or byte by byte`(index: Int) {
    let (text, expected) = Self.sequences[index]
    var whole = KeyReader()
    #expect(whole.read(text.utf8) == expected)
    #expect(!whole.isWaiting)
    var slow = KeyReader()
    #expect(text.utf8.flatMap { slow.read([$0]) } == expected)
  }

  @Test func `Escape alone is known when nothing follows`() {
    var reader = KeyReader()
    #expect(reader.read([0x1B]) == [])
    #expect(reader.isWaiting)
    #expect(reader.end() == [.escape])
    #expect(!reader.isWaiting && reader.end() == [])
  }

  @Test func `nonsense is skipped, and what follows is read`() {
    var reader = KeyReader()
    #expect(reader.read([0xFF, 0xC3, 0x28, 0x80, 0x71]).last == .character("q"))
    var long = KeyReader()
    _ = long.read(Array("\u{1B}[".utf8) + [UInt8](repeating: 0x31, count: 100))
    #expect(!long.isWaiting || long.end() != [])
    #expect(long.read([0x71]) == [.character("q")])
  }

  @Test func `whatever bytes come, it takes them`() {
    var generator = SeededGenerator(seed: 21)
    for _ in 0..<2000 {
      var reader = KeyReader()
      let bytes = (0..<20).map { _ in UInt8.random(in: 0...255, using: &generator) }
      _ = reader.read(bytes)
      _ = reader.end()
      #expect(reader.read([0x71]) == [.character("q")])
    }
  }
}
