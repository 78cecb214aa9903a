internal import CChecksum

/// A running CRC-32 as zlib, cksfv and `rhash --crc32` compute it (ISO 3309, RFC 1952 section 8).
package struct Checksum: Hashable, Sendable, CustomStringConvertible {
  /// The CRC-32 of the bytes so far.
  package private(set) var value: UInt32

  /// The CRC-32 of no bytes.
  package init() { value = 0 }
  /// Continues from a CRC-32 that was recorded.
  package init(value: UInt32) { self.value = value }

  /// Of a text in UTF-8.
  init(of text: String) {
    self.init()
    Array(text.utf8).withUnsafeBytes { update($0) }
  }

  /// Eight hexadecimal digits of either case, with nothing else; nil otherwise.
  package init?(_ text: some StringProtocol) {
    guard text.utf8.count == 8, text.utf8.allSatisfy(isHexDigit),
      let value = UInt32(text, radix: 16)
    else { return nil }
    self.value = value
  }

  /// Adds bytes.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    guard let base = bytes.baseAddress else { return }
    value = spoolrun_crc32(value, base, bytes.count)
  }

  /// Upper case, as cksfv and `rhash --crc32` print it.
  package var description: String { hexadecimal(UInt64(value), digits: 8).uppercased() }
}
