import TestSupport

/// The length of the current payload.
let n = 10_000

/// The current payload: bytes without a pattern, the same in every run.
let payload: [UInt8] = {
  var state: UInt32 = 2_463_534_242
  return (0..<n).map { _ in
    state ^= state << 13
    state ^= state >> 17
    state ^= state << 5
    return UInt8(truncatingIfNeeded: state >> 8)
  }
}()

/// What the same URL held before: differs from `payload` in every byte, so that no splice goes unseen.
let previous = payload.map { ~$0 }

/// A later version of another length, unlike both at every offset.
let shorter = payload.prefix(7000).map { $0 ^ 0x55 }

let v1 = "\"v1\""
let v2 = "\"v2\""

/// A payload of `count` blocks that differ: large, and yet made in no time.
func large(_ block: [UInt8], count: Int) -> [UInt8] {
  var bytes: [UInt8] = []
  for number in 0..<count {
    bytes.append(contentsOf: Array("block \(number) ".utf8))
    bytes.append(contentsOf: block)
  }
  return bytes
}

/// Bytes in short, for comparisons whose failure a person can read.
func digest(_ bytes: [UInt8]?) -> String {
  bytes.map { "\($0.count) bytes, crc32 \(hex8(independentCRC32($0)))" } ?? "no file"
}
