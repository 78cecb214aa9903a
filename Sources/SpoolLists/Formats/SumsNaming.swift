internal import Spool

/// A line of a list of checksums: what a file of some name has to be.
struct ChecksumLine {
  /// The algorithm as the line names it; nil where it does not.
  private(set) var title: String?
  /// Hexadecimal digits, or base64.
  private(set) var value: String
  /// nil where the line has a digest alone.
  let name: String?
  /// The digits may go on in the next line.
  private(set) var isOpen = false

  /// Any of the forms but that of SFV, which is less plain than the others.
  init?(_ line: Substring) {
    if let line = ChecksumLine(gnu: line) ?? ChecksumLine(tagged: line) {
      self = line
    } else if let line = ChecksumLine(gpg: line), !line.value.isEmpty {
      self = line
    } else {
      return nil
    }
  }

  /// As sha256sum(1) prints it: hexadecimal digits, a blank, a blank or `*`, the name; in front of all a backslash
  /// where the name has escapes. Also with a single blank, as `md5 -r` prints it, and without a name.
  init?(gnu line: Substring) {
    let line = Substring(line.utf8.drop(while: isBlank))
    let isEscaped = line.utf8.first == 0x5C
    let digits = (isEscaped ? line.dropFirstBytes() : line).utf8.prefix(while: isHexDigit)
    // 56 and 96 are SHA-224 and SHA-384.
    guard DigestAlgorithm(digits: digits.count) != nil || [56, 96].contains(digits.count) else { return nil }
    value = String(Substring(digits))
    var rest = line.utf8[digits.endIndex...]
    // Eight digits may be a file's name, or any number.
    let isPlain = digits.count > 8
    if rest.isEmpty, isPlain, !isEscaped {
      name = nil
      return
    }
    guard let blank = rest.popFirst(), blank == 0x20 || blank == 0x09 && isPlain else { return nil }
    if let mark = rest.first, mark == 0x20 || mark == 0x2A { rest.removeFirst() } else if !isPlain { return nil }
    guard let name = Self.name(Substring(rest), isEscaped: isEscaped) else { return nil }
    self.name = name
  }

  /// As BSD's tools, `sha256sum --tag`, `rhash --bsd` and `openssl dgst` print it: `SHA256 (name) = digits`.
  init?(tagged line: Substring) {
    let isEscaped = line.utf8.first == 0x5C
    let line = isEscaped ? line.dropFirstBytes() : line
    // openssl leaves the blank before the parenthesis out, and the one behind it.
    let title = line.prefix(before: "(")
    let tag = trimmed(title)
    guard title.endIndex < line.endIndex, Self.isTitle(tag), let close = line.utf8.lastIndex(of: UInt8(ascii: ")"))
    else { return nil }
    let value = trimmed(line[close...].dropFirstBytes())
    guard value.begins(with: "="),
      let name = Self.name(line[title.endIndex..<close].dropFirstBytes(), isEscaped: isEscaped)
    else { return nil }
    self.title = String(tag)
    self.value = String(trimmed(value.dropFirstBytes()))
    self.name = name
  }

  /// As cksfv(1) prints it: the name, blanks, eight hexadecimal digits.
  init?(sfv line: Substring) {
    let line = trimmed(line)
    guard let blank = line.utf8.lastIndex(where: isBlank),
      let digest = Digest(.crc32, String(line[blank...].dropFirstBytes())),
      let name = Self.name(trimmed(line[..<blank]), isEscaped: false)
    else { return nil }
    (title, value) = ("crc32", "\(digest)")
    self.name = name
  }

  /// As `gpg --print-md` and `--print-mds` print it: `name: 5891B5B5 22D5DF08 …` or `name: SHA256 = 5891B5B5 …`, with
  /// more digits in the next lines, and all of them there if the name is long.
  init?(gpg line: Substring) {
    let line = trimmed(line)
    guard let colon = line.utf8.lastIndex(of: 0x3A), let name = Self.name(line[..<colon], isEscaped: false) else {
      return nil
    }
    let behind = line[line.utf8.index(after: colon)...]
    (value, isOpen, self.name) = ("", true, name)
    if behind.isEmpty { return }
    guard isBlank(behind.utf8[behind.startIndex]), let rest = Rest(behind), rest.isLong else { return nil }
    append(rest)
  }

  /// What gpg(1) prints behind a name or in the lines below: the algorithm perhaps, and groups of digits.
  struct Rest {
    fileprivate let title: String?
    fileprivate let digits: String
    /// As a first line is, however long the name. Fewer may be anything.
    var isLong: Bool { digits.utf8.count >= 16 }

    /// nil for anything else, such as a digest in one piece.
    init?(_ line: Substring) {
      let parts = line.utf8.split(maxSplits: 1) { $0 == 0x3D }.map { trimmed(Substring($0)) }
      guard let groups = parts.last?.utf8.split(whereSeparator: isBlank),
        groups.allSatisfy({ $0.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x46).contains($0) } }),
        groups.allSatisfy({ $0.count == groups[0].count && [2, 4, 8].contains($0.count) })
      else { return nil }
      title = parts.count > 1 ? String(parts[0]) : nil
      if parts.count > 1 ? !ChecksumLine.isTitle(parts[0]) : false { return nil }
      digits = groups.map { String(Substring($0)) }.joined()
    }
  }

  mutating func append(_ rest: Rest) {
    title = title ?? rest.title
    value += rest.digits
    isOpen = true
  }

  private static func isTitle(_ text: Substring) -> Bool {
    !text.isEmpty && text.utf8.count <= 16
      && text.utf8.allSatisfy { (0x61...0x7A).contains($0 | 0x20) || (0x2D...0x39).contains($0) }
  }

  /// Without the `./` that find(1) puts in front. A backslash that is no escape separates directories, as on Windows:
  /// sha256sum(1) escapes those that are part of a name.
  /// - Returns: nil for none, and for an escape other than `\\`, `\n` and `\r` (sha256sum(1)).
  private static func name(_ text: Substring, isEscaped: Bool) -> String? {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      guard byte == 0x5C else {
        bytes.append(byte)
        continue
      }
      switch isEscaped ? rest.popFirst() : UInt8(ascii: "/") {
      case UInt8(ascii: "/") where !isEscaped: bytes.append(0x2F)
      case UInt8(ascii: "\\"): bytes.append(0x5C)
      case UInt8(ascii: "n"): bytes.append(0x0A)
      case UInt8(ascii: "r"): bytes.append(0x0D)
      default: return nil
      }
    }
    while bytes.starts(with: "./".utf8) { bytes.removeFirst(2) }
    return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
  }
}

extension DigestAlgorithm {
  /// By the number of hexadecimal digits. What is as long as one of these has to be named.
  init?(digits count: Int) {
    guard let found = [Self.crc32, .md5, .sha1, .sha256, .sha512].first(where: { $0.digits == count }) else {
      return nil
    }
    self = found
  }

  static var listed: String { allCases.map(\.rawValue).joined(separator: ", ") }
}

/// What a list of checksums says by its own name, such as `SHA256SUMS`, `b2sums.txt` or `a.iso.sha256`.
struct SumsNaming {
  private enum Algorithm {
    case unsaid
    /// It settles what digests of its length are.
    case named(DigestAlgorithm)
    /// All are by this one.
    case given(DigestAlgorithm)
    /// One that is not known here, as the name has it.
    case other(String)
  }

  private var algorithm = Algorithm.unsaid
  var isUnsaid: Bool { if case .unsaid = algorithm { true } else { false } }
  /// The one file that a list such as `a.iso.sha256` is of.
  private var file: String?

  /// What is in the names of lists of other digests that are as long as known ones.
  private static let others = [
    "blake2s", "b3sum", "blake3", "sha3224", "sha3384", "sha3512", "sha3sum", "keccak", "sha512256", "sha512224",
    "sha224", "sha384", "rmd160", "ripemd", "streebog", "sm3sum", "md4sum",
  ]
  /// The same, if nothing else is in the last part of the name.
  private static let otherWords = ["b3", "sha3", "md4", "sm3", "gost", "whirlpool"]
  private static let known: [(word: String, algorithm: DigestAlgorithm)] = [
    ("b2sum", .blake2b), ("blake2", .blake2b), ("sha3256", .sha3), ("sha512", .sha512), ("sha256", .sha256),
    ("sha1", .sha1), ("md5", .md5),
  ]

  /// - Parameter format: says more than the name, if it is that of one algorithm.
  /// - Parameter name: bytes of the list's own name; empty if it has none.
  init(_ format: ListFormat, of name: [UInt8]) {
    var parts = name.split(separator: 0x2E, omittingEmptySubsequences: false).map {
      String(decoding: $0, as: UTF8.self)
    }
    while let last = parts.last, ["txt", "gz", "asc"].contains(last.lowercasedASCII) { parts.removeLast() }
    // The last part that says anything: a file's own name is in front.
    for part in parts.indices.reversed() {
      guard let said = Self.algorithm(of: parts[part], isLast: part == parts.count - 1) else { continue }
      algorithm = said
      if part == parts.count - 1, part > 0 { file = parts[..<part].joined(separator: ".") }
      break
    }
    if let given = format.algorithm ?? (format == .sfv ? .crc32 : nil) { algorithm = .given(given) }
  }

  private static func algorithm(of part: String, isLast: Bool) -> Algorithm? {
    let text = part.lowercasedASCII.split(at: "-_").joined()
    if let other = others.first(where: { text.utf8.contains($0.utf8) }) { return .other(other) }
    if isLast, otherWords.contains(text) { return .other(text) }
    if isLast, text == "b2" { return .named(.blake2b) }
    return known.first { text.utf8.contains($0.word.utf8) }.map { .named($0.algorithm) }
  }

  /// The digest that a line states.
  /// - Throws: ``Defect`` where it is by an algorithm that is not known, here or at all.
  func digest(_ sum: ChecksumLine, _ line: Int) throws(Defect) -> Digest {
    let algorithm = try self.algorithm(of: sum, line)
    guard let digest = Digest(algorithm, sum.value) else {
      throw Defect(line: line, reason: "\(algorithm.title) must be \(algorithm.wanted)")
    }
    return digest
  }

  private func algorithm(of sum: ChecksumLine, _ line: Int) throws(Defect) -> DigestAlgorithm {
    if let title = sum.title {
      if let algorithm = DigestAlgorithm(title: title) { return algorithm }
      throw Self.unknown(line)
    }
    switch algorithm {
    case .given(let algorithm): return algorithm
    case .named(let algorithm) where algorithm.digits == sum.value.utf8.count: return algorithm
    // b2sum(1) makes others, too.
    case .named(let algorithm) where [.blake2b, .sha3].contains(algorithm):
      throw Self.unknown(line, ", but \(algorithm.title) of another length by the list's name")
    case .named: break
    case .other(let title): throw Self.unknown(line, ", but \(title) by the list's name")
    case .unsaid: break
    }
    guard let algorithm = DigestAlgorithm(digits: sum.value.utf8.count) else { throw Self.unknown(line) }
    // gpg(1) has no other of that length.
    if algorithm == .sha512, !sum.isOpen {
      throw Defect(line: line, reason: "128 digits, which may be SHA-512 or BLAKE2b: say --format sha512 or blake2b")
    }
    return algorithm
  }

  private static func unknown(_ line: Int, _ but: String = "") -> Defect {
    Defect(line: line, reason: "a checksum that is not one of \(DigestAlgorithm.listed)\(but)")
  }

  /// The file of a line that has a digest alone.
  func file(_ line: Int) throws(Defect) -> String {
    if let file { return file }
    throw Defect(
      line: line,
      reason: "a digest without the name of a file: call the list like the file, such as NAME.sha256, "
        + "or use `--sha256 DIGITS URL` in place of a list")
  }
}
