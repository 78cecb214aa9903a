internal import Spool

/// Tells a list's format by its looks.
enum FormatGuess {
  /// - Parameter head: the list's first bytes.
  static func format(of head: [UInt8]) -> ListFormat {
    var text = String(decoding: head.starts(with: [0xEF, 0xBB, 0xBF]) ? head.dropFirst(3) : head[...], as: UTF8.self)
    // Only XML files may be UTF-16.
    if head.starts(with: [0xFF, 0xFE]) || head.starts(with: [0xFE, 0xFF]) { return .metalink }
    // The last line may be cut.
    if head.count == ByteSource.blockSize, let end = text.utf8.lastIndex(of: 0x0A) { text = String(text[...end]) }
    let lines = text.split(at: "\r\n")
    guard let first = lines.first(where: { !$0.utf8.allSatisfy(isBlank) && !$0.begins(with: "#") })
    else { return .native }
    if trimmed(first).begins(with: "<") { return .metalink }
    if first.begins(with: ";") { return .sfv }
    if LineLooks.isURL(first) { return formatOfURLs(lines, first) }
    if ChecksumLine(tagged: first) != nil || ChecksumLine(gnu: first) != nil || first.begins(with: "-----BEGIN PGP") {
      return .sums
    }
    return ChecksumLine(sfv: first) != nil && !first.utf8.contains(": ".utf8) ? .sfv : .native
  }

  private static func formatOfURLs(_ lines: [Substring], _ first: Substring) -> ListFormat {
    if BagItLine(first) != nil { return .bagit }
    // An option, or several URLs in a line.
    let isAria2 = lines.contains { line in
      if line.utf8.first.map(isBlank) == true { return LineLooks.isOption(line) }
      return LineLooks.isURL(line) && line.utf8.contains(0x09)
    }
    return isAria2 ? .aria2 : .native
  }
}
