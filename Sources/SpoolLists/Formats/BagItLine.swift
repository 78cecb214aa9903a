internal import Spool

/// A line of fetch.txt: the URL, the length or `-`, the file's path in the bag (RFC 8493 section 2.2.3).
struct BagItLine {
  let url: Substring
  let size: Substring
  let path: String

  init?(_ line: Substring) {
    let parts = line.utf8.split(maxSplits: 2, whereSeparator: isBlank).map(Substring.init)
    guard parts.count == 3, LineLooks.isURL(parts[0]),
      parts[1] == "-" || parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) })
    else { return nil }
    (url, size) = (parts[0], parts[1])
    path = Self.decoded(trimmed(parts[2]))
  }

  /// A path in a bag: line breaks and the percent sign itself are encoded, and nothing else (RFC 8493 section 2.1.3).
  static func decoded(_ path: Substring) -> String {
    let parts = path.split(at: "%", omittingEmptySubsequences: false)
    return parts.dropFirst().reduce(into: String(parts[0])) { text, part in
      switch part.utf8.prefix(2).map({ $0 | 0x20 }) {
      case [0x32, 0x35]: text += "%" + part.dropFirstBytes(2)
      case [0x30, 0x61]: text += "\n" + part.dropFirstBytes(2)
      case [0x30, 0x64]: text += "\r" + part.dropFirstBytes(2)
      default: text += "%" + part
      }
    }
  }
}
