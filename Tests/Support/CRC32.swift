/// CRC-32 of zip and gzip (reflected, polynomial 0xEDB88320), written here a second time so that
/// the program's own checksum is not checked against itself.
package func independentCRC32(_ bytes: some Sequence<UInt8>) -> UInt32 {
  var remainder: UInt32 = 0xFFFF_FFFF
  for byte in bytes {
    remainder = (remainder >> 8) ^ crcTable[Int(UInt8(truncatingIfNeeded: remainder) ^ byte)]
  }
  return ~remainder
}

private let crcTable: [UInt32] = (0..<256).map { (index: UInt32) in
  (0..<8).reduce(index) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
}

/// Eight upper-case hex digits, as jobs and journals write a CRC-32.
package func hex8(_ value: UInt32) -> String {
  let digits = String(value, radix: 16, uppercase: true)
  return String(repeating: "0", count: 8 - digits.count) + digits
}
