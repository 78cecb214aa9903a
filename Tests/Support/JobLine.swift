/// One line of a job file, read by this parser and not by the program's: `KEY: WORD… FIELD=VALUE…`,
/// values bare or in double quotes with `\"`, `\\` and `\xNN`.
package struct JobLine: Sendable, CustomStringConvertible {
  package let text: String
  package let key: String
  /// The words without `=`, such as the time.
  package let words: [String]
  package let fields: [String: String]

  package var description: String { text }

  package subscript(_ field: String) -> String? { fields[field] }

  init?(_ text: String) {
    guard let colon = text.unicodeScalars.firstIndex(of: ":") else { return nil }
    self.text = text
    key = String(text[..<colon])
    var words: [String] = []
    var fields: [String: String] = [:]
    var rest = text.unicodeScalars[colon...].dropFirst()
    while let first = rest.first {
      if first == " " {
        rest = rest.dropFirst()
        continue
      }
      let name = rest.prefix { $0 != "=" && $0 != " " }
      rest = rest.dropFirst(name.count)
      guard rest.first == "=" else {
        words.append(String(name))
        continue
      }
      fields[String(name)] = JobLine.value(&rest)
    }
    self.words = words
    self.fields = fields
  }

  private static func value(_ rest: inout String.UnicodeScalarView.SubSequence) -> String {
    rest = rest.dropFirst()
    guard rest.first == "\"" else {
      let bare = rest.prefix { $0 != " " }
      rest = rest.dropFirst(bare.count)
      return String(bare)
    }
    rest = rest.dropFirst()
    var value = String.UnicodeScalarView()
    while let scalar = rest.popFirst(), scalar != "\"" {
      guard scalar == "\\", let escaped = rest.popFirst() else {
        value.append(scalar)
        continue
      }
      if escaped == "x", let code = UInt8(String(rest.prefix(2)), radix: 16) {
        value.append(Unicode.Scalar(code))
        rest = rest.dropFirst(2)
      } else {
        value.append(escaped)
      }
    }
    return String(value)
  }

  /// The lines of a file that are complete and have a key.
  static func lines(of bytes: [UInt8]) -> [JobLine] {
    let text = String(decoding: bytes, as: UTF8.self)
    return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      .compactMap { JobLine(String($0)) }
  }
}

/// Seconds since the epoch of `2026-11-21T03:00:41Z` (RFC 3339, UTC), fractions dropped; nil for anything else.
package func secondsSinceEpoch(rfc3339 text: String) -> Int? {
  let numbers = text.split { "-T:Z.".contains($0) }.compactMap { Int($0) }
  guard numbers.count >= 6, text.hasSuffix("Z") else { return nil }
  // Days from civil: years begin in March, so that the leap day is a year's last.
  let year = numbers[1] <= 2 ? numbers[0] - 1 : numbers[0]
  let month = (numbers[1] + 9) % 12
  let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + numbers[2] - 1 - 719_468
  return ((days * 24 + numbers[3]) * 60 + numbers[4]) * 60 + numbers[5]
}
