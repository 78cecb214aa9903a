/// A directory entry's name: bytes from strangers, any but `/` and NUL (path_resolution(7)).
package struct FileName: Hashable, Sendable {
  /// Bytes that a name may have (NAME_MAX, limits.h).
  package static let maximumLength = 255

  /// As the directory has them, of any encoding or none.
  package let bytes: [UInt8]

  /// - Parameter bytes: without `/` and NUL; nothing checks that.
  package init(_ bytes: [UInt8]) { self.bytes = bytes }
  /// The name in UTF-8.
  package init(_ string: String) { bytes = Array(string.utf8) }
  /// A leading dot: every reader of a spool ignores it, as in a maildir.
  package var isIgnored: Bool { bytes.first == 0x2E }

  /// The name without the number that ``numbered(_:limit:)`` adds, and the number; nil where the name ends in none.
  var numbering: (stem: FileName, number: Int)? {
    guard let mark = bytes.lastIndex(of: UInt8(ascii: "~")), mark > 0 else { return nil }
    let digits = bytes[(mark + 1)...]
    guard (1...9).contains(digits.count), digits.first != UInt8(ascii: "0"),
      let number = decimal(String(decoding: digits, as: UTF8.self)), number >= 2
    else { return nil }
    return (FileName(Array(bytes[..<mark])), Int(number))
  }

  /// `NAME~2` for the second of this name. A number that the name ends in is replaced, also one that was part of it
  /// from the start: `NAME~3`, and not `NAME~2~2`.
  /// - Parameter limit: bytes that it may have; a longer name is cut before the number.
  package func numbered(_ number: Int, limit: Int) -> FileName {
    (numbering?.stem ?? self).suffixed("~\(number)", limit: limit)
  }

  func suffixed(_ suffix: String, limit: Int) -> FileName {
    var length = min(bytes.count, max(0, limit - suffix.utf8.count))
    if length < bytes.count {
      // No part of a character of UTF-8, which has at most four bytes.
      let least = max(0, length - 3)
      while length > least, bytes[length] & 0xC0 == 0x80 { length -= 1 }
    }
    return FileName(Array(bytes[..<length]) + Array(suffix.utf8))
  }

  /// The name, safe for a terminal: see ``escaped(_:)``.
  package var display: String { escaped(bytes) }
}

extension FileName {
  /// One name in a directory: not empty, without a slash, and neither `.` nor `..`.
  package var isEntry: Bool { !bytes.isEmpty && !bytes.contains(0x2F) && bytes != [0x2E] && bytes != [0x2E, 0x2E] }

  /// The end of the name of a record in `failed/`.
  package static let recordSuffix = Array(".record".utf8)
  /// The end of the name of a job's data.
  package static let dataSuffix = Array(".part".utf8)

  /// `NAME.part`: the data of a job of this name.
  package var data: FileName { FileName(bytes + Self.dataSuffix) }

  /// Ends in `.part`: a job's data.
  package var isData: Bool { bytes.suffix(Self.dataSuffix.count) == Self.dataSuffix[...] }

  /// Without `.part`.
  package var dataOwner: FileName { FileName(Array(bytes.dropLast(Self.dataSuffix.count))) }

  /// Without `.record`; cut, if the name was too long for the suffix.
  package var recordSubject: FileName { FileName(Array(bytes.dropLast(Self.recordSuffix.count))) }

  /// Whether it ends like the name of a record of a failure.
  package var hasRecordSuffix: Bool {
    bytes.count > Self.recordSuffix.count && bytes.suffix(Self.recordSuffix.count) == Self.recordSuffix[...]
  }

  /// The name is too long to be in its record's name as a whole.
  var hasLongRecord: Bool { bytes.count > Self.maximumLength - Self.recordSuffix.count }

  /// The record in `failed/` of what is no job and has this name.
  package var record: FileName {
    FileName(Array(bytes.prefix(Self.maximumLength - Self.recordSuffix.count)) + Self.recordSuffix)
  }
}

/// A path below some directory, as bytes for the kernel.
package struct Path: Hashable, Sendable {
  /// Without the NUL at its end.
  package let bytes: [UInt8]

  /// - Parameter bytes: without NUL; nothing checks that.
  package init(_ bytes: [UInt8]) { self.bytes = bytes }
  /// The path in UTF-8.
  package init(_ string: String) { bytes = Array(string.utf8) }
  /// Relative to the spool.
  package init(_ directory: Directory, _ name: FileName) {
    let directory = directory.rawValue.utf8
    var bytes: [UInt8] = []
    bytes.reserveCapacity(directory.count + 1 + name.bytes.count)
    bytes += directory
    bytes.append(0x2F)
    bytes += name.bytes
    self.bytes = bytes
  }
  /// A directory of the spool, relative to it.
  package init(_ directory: Directory) { bytes = Array(directory.rawValue.utf8) }
  /// An entry of the directory that the path is relative to.
  package init(_ name: FileName) { bytes = name.bytes }

  /// For terminals, logs and records: ``escaped(_:)``.
  package var display: String { escaped(bytes) }

  /// The last component.
  var name: FileName? {
    guard let last = bytes.lastIndex(where: { $0 != 0x2F }) else { return nil }
    let start = bytes[...last].lastIndex(of: 0x2F).map { $0 + 1 } ?? 0
    return FileName(Array(bytes[start...last]))
  }

  func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes.count + 1) { buffer in
      bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(buffer).copyMemory(from: $0) }
      buffer[bytes.count] = 0
      return body(UnsafePointer(buffer.baseAddress!))
    }
  }
}

/// `bytes` as text that cannot control a terminal. Control characters (C0, DEL, C1), the backslash and whatever is no
/// UTF-8 become `\xNN`; so do bidirectional overrides, which make a name look like another.
package func escaped(_ bytes: some Sequence<UInt8>) -> String {
  var result = ""
  var decoder = UTF8()
  let all = Array(bytes)
  // Nearly every name: each error has one.
  if all.allSatisfy({ 0x20...0x7E ~= $0 && $0 != 0x5C }) { return String(decoding: all, as: UTF8.self) }
  var position = 0
  func hex(_ byte: UInt8) { result += "\\x" + hexadecimal(UInt64(byte), digits: 2) }
  while position < all.count {
    var rest = all[position...].makeIterator()
    decoder = UTF8()
    switch decoder.decode(&rest) {
    case .scalarValue(let scalar):
      let length = UTF8.width(scalar)
      if isUnsafeForDisplay(scalar) {
        for byte in all[position..<position + length] { hex(byte) }
      } else {
        result.unicodeScalars.append(scalar)
      }
      position += length
    case .emptyInput, .error:
      hex(all[position])
      position += 1
    }
  }
  return result
}

/// The same for text, by its UTF-8.
package func escaped(_ string: some StringProtocol) -> String { escaped(Array(string.utf8)) }

/// `text` in quotes, with a backslash before each `"` and `\`.
/// - Parameter escape: what to write for a character that is unsafe to show (``isUnsafeForDisplay(_:)``).
package func doubleQuoted(_ text: String, escape: (Unicode.Scalar) -> String) -> String {
  var result = "\""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "\"": result += "\\\""
    case "\\": result += "\\\\"
    case _ where isUnsafeForDisplay(scalar): result += escape(scalar)
    default: result.unicodeScalars.append(scalar)
    }
  }
  return result + "\""
}

/// Characters that control a terminal, or change the direction of the text after them.
package func isUnsafeForDisplay(_ scalar: Unicode.Scalar) -> Bool {
  switch scalar.value {
  case 0x00...0x1F, 0x5C, 0x7F...0x9F, 0x2028...0x202E, 0x2066...0x2069: true
  default: false
  }
}

/// Lower-case hexadecimal, zero-padded.
package func hexadecimal(_ value: UInt64, digits: Int) -> String {
  let text = String(value, radix: 16)
  return String(repeating: "0", count: max(0, digits - text.count)) + text
}

/// Whether the byte is a hexadecimal digit, in either case.
package func isHexDigit(_ byte: UInt8) -> Bool {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
    UInt8(ascii: "A")...UInt8(ascii: "F"):
    true
  default: false
  }
}
