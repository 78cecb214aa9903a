import CZlib
import TestSupport
import Testing

@testable import Spool

/// CRC-32 as other tools print it.
@Suite struct ChecksumTests {
  private func checksum(_ bytes: [UInt8]) -> Checksum {
    var sum = Checksum()
    bytes.withUnsafeBytes { sum.update($0) }
    return sum
  }

  @Test(
    .enabled("needs rhash and cksfv") { try await Need.areMet(.program("rhash"), .program("cksfv")) },
    arguments: [0, 1, 9, 4095, 4096, 4097, 1_000_003])
  func agreesWithRhashAndCksfv(length: Int) async throws {
    var generator = SeededGenerator(seed: UInt64(length))
    let bytes =
      length == 9 ? Array("123456789".utf8) : (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
    let directory = try TemporaryDirectory()
    try writeFile("\(directory.path)/data", bytes)
    let ours = checksum(bytes).description
    if length == 9 { #expect(ours == "CBF43926", "the check value of this CRC in every catalogue") }

    let rhash = try await runTool(["/usr/bin/rhash", "--crc32", "\(directory.path)/data"]).output
    #expect(rhash.split(separator: "\n").last { !$0.hasPrefix(";") }?.hasSuffix(" \(ours)") == true)
    let cksfv = try await runTool(["/usr/bin/cksfv", "-b", "\(directory.path)/data"]).output
    let line = try #require(cksfv.split(separator: "\n").last { !$0.hasPrefix(";") })
    #expect(line == "data \(ours)")
    #expect(Checksum(line.suffix(8))?.description == ours, "it can be pasted into a job")
  }

  /// Long pieces are computed by another library than short ones, where the machine has it.
  @Test func longAndShortPiecesAgreeWithZlib() {
    var generator = SeededGenerator(seed: 32)
    let bytes = (0..<2_000_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
    var sum = Checksum()
    var rest = bytes[...]
    while !rest.isEmpty {
      let piece = rest.prefix(Int.random(in: 1...(Bool.random(using: &generator) ? 5_000 : 300_000), using: &generator))
      piece.withUnsafeBytes { sum.update($0) }
      rest.removeFirst(piece.count)
      let sofar = bytes.count - rest.count
      #expect(UInt(sum.value) == bytes.withUnsafeBufferPointer { crc32_z(0, $0.baseAddress, sofar) })
    }
  }

  @Test func spelling() {
    #expect(Checksum(value: 0x0000_00a1).description == "000000A1")
    #expect(Checksum("000000a1") == Checksum(value: 0xa1))
    for text in ["", "a1", "0x0000a1", "+00000a1", "000000a1 ", "000000g1"] { #expect(Checksum(text) == nil) }
    #expect(Checksum().description == "00000000")
  }
}
