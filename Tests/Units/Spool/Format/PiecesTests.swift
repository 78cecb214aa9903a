import TestSupport
import Testing

@testable import Spool

/// Lists of pieces, and what a journal keeps of the check of the pieces.
@Suite struct PiecesTests {
  private static let bytes: [UInt8] = {
    var generator = SeededGenerator(seed: 41)
    return (0..<3 * 4096 + 100).map { _ in UInt8.random(in: 0...255, using: &generator) }
  }()

  private static func list(_ bytes: [UInt8] = bytes) throws -> PieceList {
    var maker = PieceList.Maker(length: 4096)
    // In whatever parts it comes.
    for start in stride(from: 0, to: bytes.count, by: 1000) {
      Array(bytes[start..<min(bytes.count, start + 1000)]).withUnsafeBytes { maker.take($0) }
    }
    let list = maker.list()
    return try #require(list)
  }

  private func state(_ bytes: some Collection<UInt8>, of list: PieceList) -> DigestStates {
    var states = DigestStates([], pieces: list)
    Array(bytes).withUnsafeBytes { states.update($0) }
    return states
  }

  private func wrong(_ bytes: some Collection<UInt8>, of list: PieceList) -> [Int]? {
    state(bytes, of: list).pieces?.wrong
  }

  @Test func aListIsReadAsItIsWritten() throws {
    let list = try Self.list()
    let text = String(decoding: list.text, as: UTF8.self)
    #expect(text.hasPrefix("pieces: sha256 4k\n") && text.split(separator: "\n").count == 5 && list.count == 4)
    #expect(PieceList(list.text) == list)
    let (sizes, last): (ClosedRange<UInt64>, Range<UInt64>) = (12_289...16_384, 12_288..<12_388)
    #expect(list.sizes == sizes)
    #expect(list.range(of: 3, in: UInt64(Self.bytes.count)) == last)
    var state = HashState(.sha256)
    Array(Self.bytes[..<4096]).withUnsafeBytes { state.update($0) }
    #expect(text.split(separator: "\n")[1] == "\(Digest(state))")
    // The text of a job names the list by what sha256sum(1) says of it.
    var whole = HashState(.sha256)
    list.text.withUnsafeBytes { whole.update($0) }
    #expect(PieceKey("sha256 4k \(Digest(whole))") == list.key && list.key.text == "sha256 4k \(Digest(whole))")
  }

  @Test(arguments: [
    "", "pieces: sha256 4k\n", "pieces: sha256 4k", "pieces: sha256 4096\nDIGEST\n", "pieces: sha256 1k\nDIGEST\n",
    "pieces: crc32 4k\n00000000\n", "pieces: sha256 4k\nDIGEST", "pieces: sha256 4k\nDIGEST\n\n",
    "pieces: sha256 4k\r\nDIGEST\r\n", "pieces: sha256  4k\nDIGEST\n", "pieces: sha512 4k\nDIGEST\n",
    "pieces: sha256 2G\nDIGEST\n", "# pieces: sha256 4k\nDIGEST\n", "pieces: sha256 4k\nDIGESx\n",
  ])
  func noList(text: String) {
    let digest = String(repeating: "0a", count: 32)
    let bytes = Array(text.replacing("DIGEST", with: digest).replacing("DIGESx", with: digest.dropLast() + "x").utf8)
    #expect(PieceList(bytes) == nil)
  }

  @Test(arguments: [
    "sha256 1M", "sha256 1M 00", "1M sha256 DIGEST", "crc32 1M DIGEST", "sha256 100 DIGEST", "sha256 1M ../x",
  ])
  func noKey(text: String) {
    #expect(PieceKey(text.replacing("DIGEST", with: String(repeating: "0a", count: 32))) == nil)
  }

  @Test func whatIsWrongIsKnown() throws {
    let list = try Self.list()
    #expect(wrong(Self.bytes, of: list) == [])
    #expect(wrong(Self.bytes[..<5000], of: list) == [1], "a piece that is not whole")
    for piece in 0..<4 {
      var bytes = Self.bytes
      bytes[piece * 4096 + 50] ^= 1
      #expect(wrong(bytes, of: list) == [piece])
    }
    #expect(wrong(Self.bytes.map { ~$0 }, of: list) == [0, 1, 2, 3])
    #expect(wrong(Self.bytes + [1], of: list) == [3])
    let size = UInt64(Self.bytes.count)
    let expected = Expectation(pieces: list.key)
    func mismatch(_ bytes: some Collection<UInt8>) -> Mismatch.Property? {
      expected.mismatch(Mark(offset: UInt64(bytes.count), states: state(bytes, of: list)))?.property
    }
    #expect(mismatch(Self.bytes) == nil && expected.provesContent)
    #expect(mismatch(Self.bytes[..<8192]) == .size && mismatch(Self.bytes.map { ~$0 }) == .piece)
    #expect(mismatch(Self.bytes + Array(repeating: 0, count: 4096)) == .size)
    // What was not computed proves nothing.
    #expect(expected.mismatch(Mark(offset: size, states: DigestStates([])))?.property == .piece)
    let other = try Self.list(Self.bytes + [0])
    #expect(expected.mismatch(Mark(offset: size, states: state(Self.bytes, of: other)))?.property == .piece)
  }

  /// Wherever a transfer stops, the journal's line is enough to go on.
  @Test(arguments: [0, 1, 100, 4095, 4096, 4097, 8192, 10_000, 12_288])
  func aJournalLineCarriesOn(at length: Int) throws {
    let list = try Self.list()
    var bytes = Self.bytes
    bytes[4000] ^= 1
    let mark = Mark(offset: UInt64(length), states: state(bytes[..<length], of: list))
    let line = "url: https://h/a\n" + JournalLine.checkpoint(mark).text
    let read = try #require(parsed(line).journal.data.checkpoint)
    #expect(JournalLine.checkpoint(read).text == JournalLine.checkpoint(mark).text)
    #expect(read.narrowed(to: [])?.states.pieces == nil)
    let known = try #require(read.narrowed(to: [], pieces: list))
    var states = known.states
    Array(bytes[length...]).withUnsafeBytes { states.update($0) }
    #expect(states.pieces?.wrong == [0])
    #expect(read.narrowed(to: [], pieces: try Self.list(Self.bytes + [0])) == nil, "another list")
    #expect(read.narrowed(to: [.md5], pieces: list) == nil)
  }

  @Test func fewRowsAndManyPieces() throws {
    let bytes = Array(repeating: UInt8(3), count: 300 * 4096)
    let list = try Self.list(bytes)
    let queue = RunningDigests(DigestStates([], pieces: list))
    Array(repeating: UInt8(4), count: 3 * 4096).withUnsafeBytes { queue.update($0, in: nil) }
    _ = queue.states
    #expect(queue.wrongPieces.inRow == 3 && !queue.wrongPieces.isFull)
    bytes[..<4096].withUnsafeBytes { queue.update($0, in: nil) }
    _ = queue.states
    #expect(queue.wrongPieces.inRow == 0)
    Array(repeating: UInt8(4), count: 290 * 4096).withUnsafeBytes { queue.update($0, in: nil) }
    #expect(queue.states.pieces?.wrong.count == PieceState.most)
    #expect(queue.wrongPieces.isFull)
  }
}
