/// A `Content-Disposition` field of a response (RFC 6266). Pure.
package struct ContentDisposition: Equatable, Sendable {
  /// The name that the server proposes, as it says it: perhaps a path, or with control characters; nil if it proposes
  /// none that can be read. `filename*` counts before `filename` (section 4.3).
  package let filename: String?

  /// Nil for what is no such field: a type, and parameters, each at most once (section 4.1).
  package init?(_ field: String) {
    var rest = Array(field.utf8)[...]
    guard Self.token(&rest) != nil else { return nil }
    var parameters: [String: [UInt8]] = [:]
    while true {
      Self.skipBlanks(&rest)
      if rest.isEmpty { break }
      guard rest.popFirst() == UInt8(ascii: ";") else { return nil }
      Self.skipBlanks(&rest)
      // Some servers end the field with a semicolon.
      if rest.isEmpty { break }
      guard let name = Self.token(&rest) else { return nil }
      Self.skipBlanks(&rest)
      guard rest.popFirst() == UInt8(ascii: "=") else { return nil }
      Self.skipBlanks(&rest)
      guard let value = Self.value(&rest) else { return nil }
      let key = String(decoding: name.map(lowercasedASCII), as: UTF8.self)
      guard parameters.updateValue(value, forKey: key) == nil else { return nil }
    }
    filename =
      parameters["filename*"].flatMap { Self.extended($0) }
      ?? parameters["filename"].map { String(decoding: $0, as: UTF8.self) }
  }

  private static func skipBlanks(_ rest: inout ArraySlice<UInt8>) {
    rest = rest.drop { $0 == 0x20 || $0 == 0x09 }
  }

  /// A token (RFC 9110, 5.6.2); nil if there is none.
  private static func token(_ rest: inout ArraySlice<UInt8>) -> [UInt8]? {
    let token = rest.prefix { $0 > 0x20 && $0 < 0x7F && !"\"(),/:;<=>?@[\\]{}".utf8.contains($0) }
    rest = rest[token.endIndex...]
    return token.isEmpty ? nil : Array(token)
  }

  /// A quoted string (RFC 9110, 5.6.4), without its quotes; or what servers write instead of one, up to the semicolon.
  private static func value(_ rest: inout ArraySlice<UInt8>) -> [UInt8]? {
    guard rest.first == UInt8(ascii: "\"") else {
      var value = rest.prefix { $0 != UInt8(ascii: ";") }
      rest = rest[value.endIndex...]
      while value.last == 0x20 || value.last == 0x09 { value.removeLast() }
      return value.isEmpty ? nil : Array(value)
    }
    rest.removeFirst()
    var value: [UInt8] = []
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\"") { return value }
      if byte == UInt8(ascii: "\\") {
        guard let next = rest.popFirst() else { return nil }
        value.append(next)
      } else {
        value.append(byte)
      }
    }
    return nil
  }

  /// `UTF-8'language'percent-encoded` (RFC 8187, 3.2.1), or the same in ISO-8859-1, which RFC 5987 required; nil for
  /// anything else.
  private static func extended(_ value: [UInt8]) -> String? {
    let parts = value.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, let bytes = percentDecoded(parts[2]) else { return nil }
    switch String(decoding: parts[0].map(lowercasedASCII), as: UTF8.self) {
    case "utf-8": return String(validating: bytes, as: UTF8.self)
    case "iso-8859-1": return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    default: return nil
    }
  }

  private static func percentDecoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    var result: [UInt8] = []
    var rest = text
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        guard byte > 0x20, byte < 0x7F else { return nil }
        result.append(byte)
        continue
      }
      let digits = rest.prefix(2).compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
      guard digits.count == 2 else { return nil }
      result.append(UInt8(digits[0] << 4 | digits[1]))
      rest = rest.dropFirst(2)
    }
    return result
  }
}
