internal import Spool

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
  /// Whether the name says nothing.
  var isUnsaid: Bool { if case .unsaid = algorithm { true } else { false } }
  /// The one file that a list such as `a.iso.sha256` is of.
  private var file: String?

  /// What is in the names of lists of other digests that are as long as known ones.
  private static let others = [
    "b2sum", "blake2", "b3sum", "blake3", "sha3224", "sha3256", "sha3384", "sha3512", "sha3sum", "keccak", "sha512256",
    "sha512224", "sha224", "sha384", "rmd160", "ripemd", "streebog", "sm3sum", "md4sum",
  ]
  /// The same, if nothing else is in the last part of the name.
  private static let otherWords = ["b2", "b3", "sha3", "md4", "sm3", "gost", "whirlpool"]
  private static let known: [DigestAlgorithm] = [.sha512, .sha256, .sha1, .md5]

  /// - Parameters:
  ///   - format: says more than the name, if it is that of one algorithm.
  ///   - name: bytes of the list's own name; empty if it has none.
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
    return known.first { text.utf8.contains($0.rawValue.utf8) }.map { .named($0) }
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
    case .named: break
    case .other(let title): throw Self.unknown(line, ", but \(title) by the list's name")
    case .unsaid: break
    }
    guard let algorithm = DigestAlgorithm(digits: sum.value.utf8.count) else { throw Self.unknown(line) }
    // gpg(1) has no other of that length.
    if algorithm == .sha512, !sum.isOpen {
      throw Defect(
        line: line, reason: "128 digits, which may be SHA-512 or BLAKE2b: say --format sha512 if they are SHA-512")
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
