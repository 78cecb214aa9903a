internal import Glibc
internal import Spool

/// A line of a list, without its end: UTF-8 without control bytes other than tabs, unless it has a defect.
struct ListLine: Sendable {
  let text: String
  /// From 1.
  let number: Int
  /// Why it cannot be read. Its text only shows what it may be.
  var defect: Defect?

  var isIndented: Bool { text.utf8.first == 0x20 || text.utf8.first == 0x09 }
  var content: Substring { trimmed(text[...]) }
}

struct LineReader {
  /// The most bytes that a line may have: a job's text has no more.
  static let longest = JobText.maximumRequest

  private let source: ByteSource
  private var buffer: [UInt8] = []
  private var position = 0
  private var isAtEnd = false
  private(set) var number = 0
  /// Where the next line begins, in bytes.
  private(set) var offset = 0

  init(_ source: ByteSource) { self.source = source }

  /// The next line; nil at the end. The last one need not end in a newline.
  /// - Throws: ``Defect`` where the rest cannot be read; ``SpoolError``.
  mutating func next() throws -> ListLine? { try nextBytes().map { Self.line($0, number) } }

  private mutating func nextBytes() throws -> ArraySlice<UInt8>? {
    var searched = position
    while true {
      if let end = newline(from: searched) { return take(to: end, skipping: 1) }
      if isAtEnd { return position < buffer.count ? take(to: buffer.count, skipping: 0) : nil }
      if buffer.count - position > Self.longest {
        throw Defect(line: number + 1, reason: "a line of over 64 KiB: a list is plain text")
      }
      let rest = Array(buffer[position...])
      searched = rest.count
      position = 0
      if let block = try source.next() {
        buffer = rest + block
      } else {
        buffer = rest
        isAtEnd = true
      }
    }
  }

  private func newline(from start: Int) -> Int? {
    buffer.withUnsafeBytes { bytes in
      guard start < bytes.count, let base = bytes.baseAddress,
        let found = memchr(base + start, 0x0A, bytes.count - start)
      else { return nil }
      return UnsafeRawPointer(found) - base
    }
  }

  private mutating func take(to end: Int, skipping: Int) -> ArraySlice<UInt8> {
    let line = buffer[position..<end]
    offset += end + skipping - position
    position = end + skipping
    number += 1
    return line
  }

  private static func line(_ bytes: ArraySlice<UInt8>, _ number: Int) -> ListLine {
    var line = bytes
    if line.last == 0x0D { line.removeLast() }
    // A byte order mark.
    if number == 1, line.starts(with: [0xEF, 0xBB, 0xBF]) { line = line.dropFirst(3) }
    let hasControls = line.contains(where: isControl)
    if !hasControls, let text = String(validating: line, as: UTF8.self) { return ListLine(text: text, number: number) }
    let defect = Defect(line: number, reason: hasControls ? "control bytes: a list is plain text" : "not UTF-8")
    return ListLine(text: String(decoding: line, as: UTF8.self), number: number, defect: defect)
  }
}

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
      && name.allSatisfy { isAlphanumeric($0) || $0 == 0x2D }
  }

  /// Begins with a scheme and `://`, or as a magnet link does.
  static func isURL(_ line: some StringProtocol) -> Bool {
    let scheme = line.utf8.prefix { isAlphanumeric($0) || $0 == 0x2B }
    let rest = line.utf8[scheme.endIndex...]
    return !scheme.isEmpty && (rest.starts(with: "://".utf8) || rest.starts(with: ":?".utf8))
  }

  /// `htp:/host/path`, where `htp` is no key.
  static func isURLWithoutSlash(_ line: Substring) -> Bool {
    let name = line.prefix(before: ":")
    return line.utf8[name.endIndex...].starts(with: ":/".utf8) && JobKey.find(name) == nil
  }

  /// `//host/path` or `host/path`.
  static func isLikeURL(_ line: Substring) -> Bool {
    guard !line.utf8.contains(0x20), let slash = line.utf8.firstIndex(of: UInt8(ascii: "/")) else { return false }
    let host = line.utf8[..<slash]
    return host.isEmpty || host.contains(UInt8(ascii: ".")) || host.contains(UInt8(ascii: ":"))
  }

  /// What a line seems to be that is neither a URL nor `key: value`.
  static func odd(_ line: Substring) -> String {
    let isRow = line.prefix(before: ",;\t").endIndex < line.endIndex
    return "neither a URL nor `key: value`" + (isRow ? "; \(table)" : "")
  }

  private static let table =
    "it looks like a line of a table: a list has the URL alone in a line, or URL, tab and file name; "
    + "`cut -d, -f1 TABLE` prints the first column"

  /// Why a line that begins with a URL is not one that can be fetched, where that is plain to see.
  static func oddity(ofURL line: Substring) -> String? {
    let bytes = line.utf8
    let scheme = bytes.prefix { $0 != 0x3A }
    if bytes[scheme.endIndex...].starts(with: ":?".utf8) {
      return
        "the scheme of a \(Substring(scheme).lowercasedASCII) link is not one that is fetched: only files by their URL"
    }
    if bytes.contains(0x09) { return URLWithName(line) == nil ? table : nil }
    if bytes.contains(0x20) {
      return "a blank in the URL: write %20 in its place; if a file name follows, put a tab before it, "
        + "or write two lines, `url: URL` and `output: NAME`"
    }
    return isRow(line) ? table : nil
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

  init?(_ line: Substring) {
    let parts = line.split(at: "\t", omittingEmptySubsequences: false).map { trimmed($0) }
    guard parts.count == 2, LineLooks.isURL(parts[0]), !parts[0].utf8.contains(0x20), !parts[1].isEmpty,
      !LineLooks.isURL(parts[1]), !LineLooks.isNumberOrDigest(parts[1])
    else { return nil }
    (url, name) = (parts[0], parts[1])
  }
}
