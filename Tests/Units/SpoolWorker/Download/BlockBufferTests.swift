import TestSupport
import Testing

@testable import Spool
@testable import SpoolWorker

/// Pieces gathered into aligned blocks.
@Suite struct BlockBufferTests {
  private struct NoRoom: Error {}

  /// Takes pieces in as a transfer does, from `start` on, and gives back the ends of the writes and all that was
  /// written.
  private func run(_ pieces: [[UInt8]], from start: UInt64 = 0, isWhole: Bool = true) -> (
    ends: [UInt64], bytes: [UInt8]
  ) {
    let buffer = BlockBuffer()
    var ends: [UInt64] = []
    var written: [UInt8] = []
    let write = { (block: UnsafeRawBufferPointer, _: Block?) in
      written += block
      ends.append(start + UInt64(written.count))
    }
    for (index, piece) in pieces.enumerated() {
      piece.withUnsafeBytes {
        buffer.take(
          $0, at: start + UInt64(written.count), isEnd: isWhole && index == pieces.count - 1, write: write)
      }
    }
    buffer.flush(write)
    return (ends, written)
  }

  /// Whatever the pieces, all bytes are written, in order, and no write but the last ends within a block.
  @Test(arguments: 0..<50)
  func allIsWrittenInOrder(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    let start = UInt64.random(in: 0...UInt64(3 * BlockBuffer.size), using: &random)
    let pieces = (0..<40).map { _ in
      [UInt8](
        repeating: UInt8.random(in: 0...255, using: &random),
        count: Int.random(in: 1...(seed % 5 == 0 ? 900_000 : 20_000), using: &random))
    }
    let (ends, bytes) = run(pieces, from: start, isWhole: Bool.random(using: &random))
    #expect(bytes == pieces.flatMap { $0 })
    #expect(ends.dropLast().allSatisfy { $0 % UInt64(BlockBuffer.size) == 0 })
  }

  @Test func aSmallBodyIsWrittenAtOnce() {
    #expect(run([[1, 2, 3]]).ends == [3])
    let buffer = BlockBuffer()
    [UInt8](repeating: 7, count: 10).withUnsafeBytes { buffer.take($0, at: 0, isEnd: true) { _, _ in } }
    #expect(buffer.count == 0)
  }

  /// Whoever holds what was written reads it later; new bytes go elsewhere meanwhile.
  @Test func whatIsHeldIsNotOverwritten() {
    let buffer = BlockBuffer()
    var blocks: [(bytes: UnsafeRawBufferPointer, block: Block?)] = []
    for value in UInt8(1)...20 {
      [UInt8](repeating: value, count: 1000).withUnsafeBytes { buffer.take($0, at: 0, isEnd: false) { _, _ in } }
      buffer.flush { blocks.append(($0, $1)) }
      if value == 10 { buffer.giveBack() }
    }
    for (index, (bytes, block)) in blocks.enumerated() {
      #expect(block != nil && bytes.allSatisfy { $0 == UInt8(index + 1) })
    }
    // And the memory of what nobody holds is used again.
    let last = blocks.last?.bytes.baseAddress
    blocks = []
    [1].withUnsafeBytes { buffer.take($0, at: 0, isEnd: false) { _, _ in } }
    buffer.flush { bytes, _ in #expect(bytes.baseAddress == last) }
  }

  /// Nothing may come behind a gap: what could not be written is gone.
  @Test func aFailedWriteDropsWhatWaits() {
    let buffer = BlockBuffer()
    let bytes = [UInt8](repeating: 7, count: BlockBuffer.size - 1)
    bytes.withUnsafeBytes { buffer.take($0, at: 0, isEnd: false) { _, _ in } }
    #expect(buffer.count == bytes.count)
    #expect(throws: NoRoom.self) {
      try bytes.withUnsafeBytes { try buffer.take($0, at: 0, isEnd: false) { (_, _) throws(NoRoom) in throw NoRoom() } }
    }
    #expect(buffer.count == 0)
  }
}
