internal import Spool

/// Tells a list's format by its looks.
enum FormatGuess {
  /// - Parameter head: the list's first bytes.
  static func format(of head: [UInt8]) -> ListFormat {
    var text =
      ByteSource.isLittleEndian(head).map {
        String(decoding: ByteSource.units(head, isLittle: $0), as: UTF16.self)
      } ?? String(decoding: head, as: UTF8.self)
    // A byte order mark.
    if text.unicodeScalars.first == "\u{FEFF}" { text.unicodeScalars.removeFirst() }
    // The last line may be cut.
    if head.count == ByteSource.blockSize, let end = text.utf8.lastIndex(of: 0x0A) { text = String(text[...end]) }
    let lines = text.split(at: "\r\n")
    let begun = lines.drop { $0.utf8.allSatisfy(isBlank) || $0.begins(with: "#") }
    guard let first = begun.first else { return .native }
    if trimmed(first).begins(with: "<") { return .metalink }
    if first.begins(with: ";") { return .sfv }
    if LineLooks.isURL(first) { return formatOfURLs(lines, first) }
    if ChecksumLine(first) != nil || first.begins(with: "-----BEGIN PGP") { return .sums }
    // A long name has a line of its own.
    if let name = ChecksumLine(gpg: first), name.value.isEmpty, let next = begun.dropFirst().first,
      ChecksumLine.Rest(next)?.isLong == true
    {
      return .sums
    }
    return ChecksumLine(sfv: first) != nil && !first.utf8.contains(": ".utf8) ? .sfv : .native
  }

  private static func formatOfURLs(_ lines: [Substring], _ first: Substring) -> ListFormat {
    if BagItLine(first) != nil { return .bagit }
    // An option, or several URLs in a line.
    let isAria2 = lines.contains { line in
      if line.utf8.first.map(isBlank) == true { return LineLooks.isOption(line) }
      return LineLooks.isURL(line) && line.split(at: "\t").count(where: LineLooks.isURL) > 1
    }
    return isAria2 ? .aria2 : .native
  }
}
