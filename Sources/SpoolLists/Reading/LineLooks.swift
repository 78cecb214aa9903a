internal import Spool

/// What a line of a list looks like.
enum LineLooks {
  /// `name=value`, and not `key: value`, which may be indented too.
  static func isOption(_ line: some StringProtocol) -> Bool {
    let name = trimmed(Substring(line)).prefix(before: "=")
    return line.utf8.contains(UInt8(ascii: "=")) && !name.isEmpty
      && name.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D }
  }

  /// Begins with a scheme and `://`.
  static func isURL(_ line: some StringProtocol) -> Bool {
    let scheme = line.utf8.prefix { (0x61...0x7A).contains($0 | 0x20) || (0x30...0x39).contains($0) || $0 == 0x2B }
    return !scheme.isEmpty && line.utf8[scheme.endIndex...].starts(with: "://".utf8)
  }
}
