/// The media types that a payload may have, such as `application/zip` or `image/*` (RFC 9110 section 8.3.1).
package struct MediaTypes: Sendable, Equatable {
  /// In lower case, without parameters.
  private let ranges: [Substring]

  /// Reads types with blanks between them; nil if one is malformed.
  package init?(_ text: String) {
    ranges = text.lowercasedASCII.split(at: " \t")
    guard !ranges.isEmpty, ranges.allSatisfy(Self.isRange) else { return nil }
  }

  /// As a job has it, in lower case with single blanks.
  package var text: String { ranges.joined(separator: " ") }

  /// - Parameter type: in lower case, without parameters.
  package func contain(_ type: String) -> Bool {
    ranges.contains { $0.ends(with: "/*") ? type.begins(with: $0.dropLast()) : type == $0 }
  }

  private static func isRange(_ text: Substring) -> Bool {
    let parts = text.split(at: "/", omittingEmptySubsequences: false)
    return parts.count == 2 && isToken(parts[0]) && (parts[1] == "*" || isToken(parts[1]))
  }

  /// RFC 9110 section 5.6.2, except that an asterisk stands for all types.
  private static func isToken(_ text: Substring) -> Bool {
    !text.isEmpty
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: "!#$%&'+-.^_`|~".utf8.contains(byte)
        }
      }
  }
}
