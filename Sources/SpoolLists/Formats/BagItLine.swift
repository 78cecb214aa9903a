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
    guard path.contains("%") else { return String(path) }
    return String(path).replacing(/%(25|0[AaDd])/) { match in
      switch match.1.lowercased() {
      case "25": "%"
      case "0a": "\n"
      default: "\r"
      }
    }
  }
}
