internal import Spool

extension DigestAlgorithm {
  /// Its name as other programs spell it, in either case: `SHA-256`, `sha256`, `SHA2-256`.
  init?(title: some StringProtocol) {
    var name = title.lowercasedASCII.split(at: "-").joined()
    if name == "sha2256" || name == "sha2512" { name.remove(at: name.index(name.startIndex, offsetBy: 3)) }
    self.init(rawValue: name)
  }

  /// By the number of hexadecimal digits.
  init?(digits count: Int) {
    guard let found = Self.allCases.first(where: { $0.digits == count }) else { return nil }
    self = found
  }

  /// With the strongest first.
  static let byStrength: [DigestAlgorithm] = [.sha512, .sha256, .sha1, .md5, .crc32]

  static var listed: String { allCases.map(\.rawValue).joined(separator: ", ") }
}

/// A line of a list of checksums: what a file of some name has to be.
struct ChecksumLine {
  /// nil where the algorithm is not known here.
  let digest: Digest?
  let name: String

  /// As sha256sum(1) prints it: hexadecimal digits, a blank, a blank or `*`, the name; in front of all a backslash
  /// where the name has escapes. The algorithm by the number of digits.
  init?(gnu line: Substring) {
    let isEscaped = line.utf8.first == 0x5C
    let line = isEscaped ? line.dropFirstBytes() : line
    let digits = line.utf8.prefix(while: isHexDigit)
    let rest = line.utf8[digits.endIndex...]
    // 56 and 96 are SHA-224 and SHA-384.
    let algorithm = DigestAlgorithm(digits: digits.count)
    guard algorithm != nil || [56, 96].contains(digits.count), rest.count > 2, rest.first == 0x20,
      let mark = rest.dropFirst().first, mark == 0x20 || mark == 0x2A,
      let name = Self.name(Substring(rest.dropFirst(2)), isEscaped: isEscaped)
    else { return nil }
    digest = algorithm.flatMap { Digest($0, String(Substring(digits))) }
    self.name = name
  }

  /// As BSD's tools, `sha256sum --tag`, `rhash --bsd` and `openssl dgst` print it: `SHA256 (name) = digits`.
  init?(tagged line: Substring) {
    let isEscaped = line.utf8.first == 0x5C
    let line = isEscaped ? line.dropFirstBytes() : line
    // openssl leaves the blank before the parenthesis out, and the one behind it.
    let title = line.prefix(before: "(")
    let tag = trimmed(title)
    guard title.endIndex < line.endIndex, !tag.isEmpty, tag.utf8.count <= 16,
      tag.utf8.allSatisfy({ 0x61...0x7A ~= $0 | 0x20 || (0x2D...0x39).contains($0) }),
      let close = line.utf8.lastIndex(of: UInt8(ascii: ")"))
    else { return nil }
    let value = trimmed(line[close...].dropFirstBytes())
    guard value.begins(with: "="),
      let name = Self.name(line[title.endIndex..<close].dropFirstBytes(), isEscaped: isEscaped)
    else { return nil }
    let text = String(trimmed(value.dropFirstBytes()))
    if let algorithm = DigestAlgorithm(title: tag) {
      guard let digest = Digest(algorithm, text) else { return nil }
      self.digest = digest
    } else {
      digest = nil
    }
    self.name = name
  }

  /// As cksfv(1) prints it: the name, blanks, eight hexadecimal digits.
  init?(sfv line: Substring) {
    let line = trimmed(line)
    guard let blank = line.utf8.lastIndex(where: isBlank),
      let digest = Digest(.crc32, String(line[blank...].dropFirstBytes())),
      let name = Self.name(trimmed(line[..<blank]), isEscaped: false)
    else { return nil }
    self.digest = digest
    self.name = name
  }

  /// Without the `./` that find(1) puts in front.
  /// - Returns: nil for none, and for an escape other than `\\`, `\n` and `\r` (sha256sum(1)).
  private static func name(_ text: Substring, isEscaped: Bool) -> String? {
    var name = text
    while name.begins(with: "./") { name = name.dropFirstBytes(2) }
    guard !name.isEmpty else { return nil }
    guard isEscaped else { return String(name) }
    var bytes: [UInt8] = []
    var rest = name.utf8[...]
    while let byte = rest.popFirst() {
      guard byte == 0x5C else {
        bytes.append(byte)
        continue
      }
      switch rest.popFirst() {
      case UInt8(ascii: "\\"): bytes.append(0x5C)
      case UInt8(ascii: "n"): bytes.append(0x0A)
      case UInt8(ascii: "r"): bytes.append(0x0D)
      default: return nil
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
