internal import Spool

/// What a line of a list looks like.
enum LineLooks {
  /// `name=value`, and not `key: value`, which may be indented too.
  static func isOption(_ line: some StringProtocol) -> Bool {
    let name = trimmed(Substring(line)).prefix(before: "=")
    return line.utf8.contains(UInt8(ascii: "=")) && !name.isEmpty
      && name.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D }
  }

  /// `key: value`, or `key@host: value`, whether or not the key is known.
  static func isKey(_ line: Substring) -> Bool {
    let name = line.utf8.prefix { $0 != 0x3A && $0 != 0x40 }
    return name.endIndex != line.endIndex && !name.isEmpty
      && name.allSatisfy { (0x61...0x7A).contains($0 | 0x20) || (0x30...0x39).contains($0) || $0 == 0x2D }
  }

  /// Begins with a scheme and `://`, or as a magnet link does.
  static func isURL(_ line: some StringProtocol) -> Bool {
    let scheme = line.utf8.prefix { (0x61...0x7A).contains($0 | 0x20) || (0x30...0x39).contains($0) || $0 == 0x2B }
    let rest = line.utf8[scheme.endIndex...]
    return !scheme.isEmpty && (rest.starts(with: "://".utf8) || rest.starts(with: ":?".utf8))
  }

  /// What a line seems to be that is neither a URL nor `key: value`.
  static func odd(_ line: Substring) -> String {
    let isRow = line.prefix(before: ",;\t").endIndex < line.endIndex
    return "neither a URL nor `key: value`" + (isRow ? "; it looks like a line of a table: \(fromTable)" : "")
  }

  private static let fromTable =
    "a list has the URL alone in a line, or URL, tab and file name; `cut -d, -f1 TABLE` prints the first column"

  /// Why a line that begins with a URL is not one that can be fetched, where that is plain to see.
  static func oddity(ofURL line: Substring) -> String? {
    let bytes = line.utf8
    let scheme = bytes.prefix { $0 != 0x3A }
    if bytes[scheme.endIndex...].starts(with: ":?".utf8) {
      return
        "the scheme of a \(Substring(scheme).lowercasedASCII) link is not one that is fetched: only files by their URL"
    }
    if bytes.contains(0x09) {
      return URLWithName(line) == nil ? "it looks like a line of a table: \(fromTable)" : nil
    }
    if bytes.contains(0x20) {
      return "a blank in the URL: write %20 in its place; if a file name follows, put a tab before it, "
        + "or write two lines, `url: URL` and `output: NAME`"
    }
    return isRow(line) ? "it looks like a line of a table: \(fromTable)" : nil
  }

  /// Whether commas or semicolons, which may be part of a URL, separate a file's URL from other values: a number, a
  /// digest, the file's name once more, or another URL.
  private static func isRow(_ line: Substring) -> Bool {
    [",", ";"].contains { separator in
      let fields = line.split(at: separator, omittingEmptySubsequences: false)
      let name = fields[0].split(at: "/", omittingEmptySubsequences: false).last ?? ""
      let ending = name.split(at: ".", omittingEmptySubsequences: false).dropFirst().last
      guard fields.count > 1, ending?.utf8.first.map({ 0x61...0x7A ~= $0 | 0x20 }) == true else { return false }
      return fields.dropFirst().contains { field in
        let value = field.split(at: "\"").first ?? ""
        return isURL(value) || value.exact == name.exact || isNumberOrDigest(value)
      }
    }
  }

  fileprivate static func isNumberOrDigest(_ text: Substring) -> Bool {
    let digits = text.utf8
    return !text.isEmpty && digits.allSatisfy(isHexDigit)
      && (digits.allSatisfy { (0x30...0x39).contains($0) }
        || DigestAlgorithm(digits: digits.count).map { $0 != .crc32 } == true)
  }
}

/// A line with a URL, a tab, and the name of the file.
struct URLWithName {
  let url: Substring
  let name: Substring

  /// nil for any other line.
  init?(_ line: Substring) {
    let parts = line.split(at: "\t", omittingEmptySubsequences: false).map { trimmed($0) }
    guard parts.count == 2, LineLooks.isURL(parts[0]), !parts[0].utf8.contains(0x20), !parts[1].isEmpty,
      !LineLooks.isURL(parts[1]), !LineLooks.isNumberOrDigest(parts[1])
    else { return nil }
    (url, name) = (parts[0], parts[1])
  }
}
