/// Text from outside, such as a URL, a path or a header field, to be compared: it equals only the same bytes.
///
/// Swift compares strings by canonical equivalence, where é equals e with an accent, and cuts them between characters,
/// where a `?` with an accent behind it is no `?`. To a server and to a file system these are different texts. So
/// foreign text is compared as ``exact``, and cut by its `utf8` and by what is below (a test of the style looks).
package struct ExactText: Hashable, Comparable, Sendable {
  package let text: String

  package static func == (one: ExactText, other: ExactText) -> Bool {
    var (one, other) = (one.text, other.text)
    return one.withUTF8 { one in other.withUTF8 { one.count == $0.count && one.elementsEqual($0) } }
  }

  package static func < (one: ExactText, other: ExactText) -> Bool {
    one.text.utf8.lexicographicallyPrecedes(other.text.utf8)
  }

  package func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    hasher.combine(0xFF as UInt8)
  }
}

/// A text, or none, that a value compares with that of another one as ``ExactText``.
@propertyWrapper package struct Exact: Hashable, Sendable {
  private var text: ExactText?

  package init(wrappedValue: String?) { text = wrappedValue?.exact }

  package var wrappedValue: String? {
    get { text?.text }
    set { text = newValue?.exact }
  }
}

extension StringProtocol {
  package var exact: ExactText { ExactText(text: String(self)) }

  @inlinable package func begins(with start: some StringProtocol) -> Bool { utf8.starts(with: start.utf8) }

  @inlinable
  package func ends(with end: some StringProtocol) -> Bool { utf8.reversed().starts(with: end.utf8.reversed()) }

  /// With ASCII letters in lower case, and all else as it is.
  @inlinable package var lowercasedASCII: String {
    String(decoding: utf8.map { 0x41...0x5A ~= $0 ? $0 | 0x20 : $0 }, as: UTF8.self)
  }

  /// Up to the first of these ASCII characters, or all of it.
  @inlinable package func prefix(before stops: String) -> SubSequence {
    self[..<(utf8.firstIndex { stops.utf8.contains($0) } ?? endIndex)]
  }

  /// Behind its first bytes.
  /// - Parameter count: of bytes that end a character of UTF-8.
  @inlinable package func dropFirstBytes(_ count: Int = 1) -> SubSequence {
    self[(utf8.index(startIndex, offsetBy: count, limitedBy: endIndex) ?? endIndex)...]
  }

  /// The parts between these ASCII characters.
  @inlinable package func split(at separators: String, maxSplits: Int = .max, omittingEmptySubsequences: Bool = true)
    -> [SubSequence]
  {
    utf8.split(maxSplits: maxSplits, omittingEmptySubsequences: omittingEmptySubsequences) {
      separators.utf8.contains($0)
    }.map { self[$0.startIndex..<$0.endIndex] }
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

package func escaped(_ string: some StringProtocol) -> String { escaped(Array(string.utf8)) }

/// A text that has escaped what it quotes, perhaps not all of it: backslashes stay.
package func withoutControls(_ text: String) -> String {
  text.replacing { scalar in scalar != "\\" && isUnsafeForDisplay(scalar) ? " " : nil }
}

/// `text` in quotes, with a backslash before each `"` and `\`.
/// - Parameter escape: what to write for a character that is unsafe to show (``isUnsafeForDisplay(_:)``).
package func doubleQuoted(_ text: String, escape: (Unicode.Scalar) -> String) -> String {
  let inner = text.replacing { scalar in
    scalar == "\"" || scalar == "\\" ? "\\\(scalar)" : isUnsafeForDisplay(scalar) ? escape(scalar) : nil
  }
  return "\"\(inner)\""
}

extension String {
  /// The text with other characters in place of some.
  /// - Parameter replacement: nil for a character that stays.
  package func replacing(_ replacement: (Unicode.Scalar) -> String?) -> String {
    unicodeScalars.reduce(into: "") { result, scalar in
      if let text = replacement(scalar) { result += text } else { result.unicodeScalars.append(scalar) }
    }
  }
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

package func isHexDigit(_ byte: UInt8) -> Bool { 0x30...0x39 ~= byte || 0x61...0x66 ~= byte | 0x20 }

/// Letters and digits of ASCII.
package func isAlphanumeric(_ byte: UInt8) -> Bool { 0x30...0x39 ~= byte || 0x61...0x7A ~= byte | 0x20 }

/// Two hexadecimal digits for each byte, in lower case.
func hexadecimal(_ bytes: ArraySlice<UInt8>) -> String {
  String(unsafeUninitializedCapacity: 2 * bytes.count) { text in
    for (index, byte) in bytes.enumerated() {
      for (place, digit) in [(2 * index, byte >> 4), (2 * index + 1, byte & 15)] {
        text.initializeElement(at: place, to: digit < 10 ? 0x30 + digit : 0x57 + digit)
      }
    }
    return 2 * bytes.count
  }
}

/// `text` as part of a URL: all but letters, digits and some more characters of ASCII encoded (RFC 3986 section 2.1).
package func percentEncoded(_ text: String, keeping more: String) -> String {
  var bytes: [UInt8] = []
  for byte in text.utf8 {
    let isKept = isAlphanumeric(byte) || more.utf8.contains(byte)
    bytes += isKept ? [byte] : [0x25] + hexadecimal(UInt64(byte), digits: 2).uppercased().utf8
  }
  return String(decoding: bytes, as: UTF8.self)
}

func words(_ text: some StringProtocol) -> [Substring] {
  Substring(text).utf8.split(whereSeparator: isBlank).map(Substring.init)
}

/// `text` without blanks and tabs around it.
package func trimmed(_ text: Substring) -> Substring {
  // By bytes: a blank and a combining mark behind it are one character, which is no blank.
  guard let first = text.utf8.firstIndex(where: { !isBlank($0) }),
    let last = text.utf8.lastIndex(where: { !isBlank($0) })
  else { return text[text.endIndex...] }
  return text[first..<text.utf8.index(after: last)]
}

package func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

/// Whether no line of a job or a list has it.
package func isControl(_ byte: UInt8) -> Bool { byte < 0x20 && byte != 0x09 || byte == 0x7F }

extension [UInt8] {
  mutating func append(utf8Of text: String) {
    var text = text
    text.withUTF8 { append(contentsOf: $0) }
  }
}

extension Sequence where Element == UInt8 {
  /// FNV-1a: `hashValue` is another one in each process.
  package var stableHash: UInt64 { reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 } }
}
