internal import Glibc

/// How a column of an archive has bytes: as ``escaped(_:)`` shows them, and a newline as `\n`. So a line is text that
/// cannot control a terminal, and printf(1) with `%b` writes the bytes again. Pure.
package enum ArchiveText {
  /// Adds `bytes` to a line.
  package static func append(_ bytes: UnsafeRawBufferPointer, to line: inout [UInt8]) {
    line.reserveCapacity(line.count + bytes.count + bytes.count / 16)
    var rest = bytes
    while let newline = rest.firstIndex(of: 0x0A) {
      append(part: UnsafeRawBufferPointer(rebasing: rest[..<newline]), to: &line)
      line.append(UInt8(ascii: "\\"))
      line.append(UInt8(ascii: "n"))
      rest = UnsafeRawBufferPointer(rebasing: rest[(newline + 1)...])
    }
    append(part: rest, to: &line)
  }

  private static func append(part: UnsafeRawBufferPointer, to line: inout [UInt8]) {
    let isPlain = part.allSatisfy { 0x20...0x7E ~= $0 && $0 != 0x5C }
    if isPlain { line.append(contentsOf: part) } else { line += escaped(part).utf8 }
  }

  /// The bytes of a column; nil if it has another escape, or one that is cut.
  package static func decoded(_ column: Slice<UnsafeRawBufferPointer>) -> [UInt8]? {
    var rest = UnsafeRawBufferPointer(rebasing: column)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(rest.count)
    while let base = rest.baseAddress, let found = memchr(base, 0x5C, rest.count) {
      let length = UnsafeRawPointer(found) - base
      bytes.append(contentsOf: rest[..<length])
      let escape = rest[length...].prefix(4)
      guard escape.count >= 2 else { return nil }
      switch escape[length + 1] {
      case UInt8(ascii: "n"):
        bytes.append(0x0A)
        rest = UnsafeRawBufferPointer(rebasing: rest[(length + 2)...])
      case UInt8(ascii: "x"):
        let digits = escape.dropFirst(2)
        guard digits.count == 2, digits.allSatisfy(isHexDigit),
          let byte = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
        else { return nil }
        bytes.append(byte)
        rest = UnsafeRawBufferPointer(rebasing: rest[(length + 4)...])
      default: return nil
      }
    }
    bytes.append(contentsOf: rest)
    return bytes
  }
}
