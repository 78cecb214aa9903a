internal import Spool

/// SHA256SUMS and its kin, or an SFV file: names of files below a URL, and their digests. Lines of one file that follow
/// each other are one job.
struct ChecksumList: LineFormat {
  let isSFV: Bool
  /// Ends in a slash.
  let base: String
  let naming: SumsNaming
  private var job: ListedJob?
  /// A digest of the job whose digits may go on in the next line, and its line.
  private var open: (sum: ChecksumLine, line: Int)?
  /// How the lines end that are not the list's, but of OpenPGP's frame around it (RFC 9580 section 7).
  private var frameEnd: String?

  init(isSFV: Bool, base: String, naming: SumsNaming) {
    self.isSFV = isSFV
    self.base = base
    self.naming = naming
  }

  mutating func take(_ line: ListLine) throws(Defect) -> ListedJob? {
    if isFrame(line.content) { return nil }
    if open != nil, let rest = ChecksumLine.Rest(line.content) {
      open?.sum.append(rest)
      return nil
    }
    let content = line.content
    if content.isEmpty || content.begins(with: "#") || content.begins(with: ";") { return nil }
    guard let sum = isSFV ? ChecksumLine(sfv: content) : ChecksumLine(line.text[...]) ?? ChecksumLine(gpg: content)
    else {
      throw Defect(
        line: line.number,
        reason: isSFV
          ? "must be a file's name and 8 hexadecimal digits"
          : "no line of a list of checksums: must be `DIGITS  NAME` or `SHA256 (NAME) = DIGITS`")
    }
    let name: String
    if let own = sum.name { name = own } else { name = try naming.file(line.number) }
    let digest = sum.isOpen ? nil : try naming.digest(sum, line.number)
    var finished = Result<ListedJob?, Defect>.success(nil)
    if let output = job?.request.output, output.text.utf8.elementsEqual(name.utf8) {
      try close()
    } else {
      let next = try Self.job(name, base, line.number)
      finished = Result { () throws(Defect) in try finish() }
      job = next
    }
    if let digest { try declare(digest, line.number) } else { open = (sum, line.number) }
    return try finished.get()
  }

  mutating func finish() throws(Defect) -> ListedJob? {
    defer { job = nil }
    try close()
    return job
  }

  /// A signed list has a few lines before it, up to a blank one, and its signature behind it.
  private mutating func isFrame(_ content: Substring) -> Bool {
    if content.begins(with: "-----BEGIN PGP ") {
      frameEnd = content.begins(with: "-----BEGIN PGP SIGNED MESSAGE") ? "" : "-----END PGP "
    } else if let end = frameEnd {
      if end.isEmpty ? content.isEmpty : content.begins(with: end) { frameEnd = nil }
    } else {
      return false
    }
    return true
  }

  /// A file with contradicting digests cannot be used.
  private mutating func declare(_ digest: Digest, _ line: Int) throws(Defect) {
    guard var changed = job.take() else { return }
    try changed.request.declare(digest, line: line)
    job = changed
  }

  /// The digits of the open digest are all there.
  private mutating func close() throws(Defect) {
    guard let (sum, line) = open.take() else { return }
    // gpg(1) prints digests by all algorithms that it has.
    let isKnown = sum.title.map { DigestAlgorithm(title: $0) != nil } ?? true
    if !isKnown, job?.request.expected.digests.isEmpty == false { return }
    do throws(Defect) { try declare(naming.digest(sum, line), line) } catch {
      job = nil
      throw error
    }
  }

  private static func job(_ name: String, _ base: String, _ line: Int) throws(Defect) -> ListedJob {
    if name == "-" {
      throw Defect(line: line, reason: "`-` is the standard input of the program that wrote the list: name the file")
    }
    var job = ListedJob(line: line)
    try job.request.place(at: name, line: line)
    try job.request.add(url: base + percentEncoded(name), line: line)
    return job
  }
}

/// A path as part of a URL: all but slashes and unreserved characters (RFC 3986 section 2.3) encoded.
func percentEncoded(_ path: String) -> String {
  var bytes: [UInt8] = []
  for byte in path.utf8 {
    switch byte {
    case 0x61...0x7A, 0x41...0x5A, 0x30...0x39, 0x2D, 0x2E, 0x2F, 0x5F, 0x7E: bytes.append(byte)
    default: bytes += [0x25] + hexadecimal(UInt64(byte), digits: 2).uppercased().utf8
    }
  }
  return String(decoding: bytes, as: UTF8.self)
}

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

  static var listed: String { allCases.map(\.rawValue).joined(separator: ", ") }
}

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
    if let mark = rest.first, mark == 0x20 || mark == 0x2A {
      rest.removeFirst()
    } else if !isPlain {
      return nil
    }
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
    value = ""
    self.name = name
    if behind.isEmpty {
      isOpen = true
    } else {
      guard isBlank(behind.utf8[behind.startIndex]), let rest = Rest(behind), rest.isLong else { return nil }
      append(rest)
    }
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

  /// Takes in a further line.
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
