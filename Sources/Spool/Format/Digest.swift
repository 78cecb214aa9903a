internal import CNettle

/// The digests by which a payload can be declared and verified. The raw value is the job's key and the field of
/// records.
///
/// To add one: a case here, its kind in ``HashState``, its failure in ``FailureCode``, and its entries in the manual.
package enum DigestAlgorithm: String, CaseIterable, Sendable {
  case crc32, sha256, sha512, sha1, md5

  /// The number of hexadecimal digits.
  package var digits: Int {
    switch self {
    case .crc32: 8
    case .md5: 32
    case .sha1: 40
    case .sha256: 64
    case .sha512: 128
    }
  }

  /// The name for people.
  package var title: String {
    switch self {
    case .crc32: "CRC-32"
    case .md5: "MD5"
    case .sha1: "SHA-1"
    case .sha256: "SHA-256"
    case .sha512: "SHA-512"
    }
  }

  /// As cksfv, `rhash --crc32` and the like print it.
  var isUpperCase: Bool { self == .crc32 }

  /// A CRC-32 in base64 is as long as one in hexadecimal digits.
  private var mayBeBase64: Bool { self != .crc32 }

  /// What a value of the key has to be.
  package var wanted: String {
    self == .crc32 ? "8 hexadecimal digits, such as 1c291ca3" : "\(digits) hexadecimal digits, or the same in base64"
  }

  /// One line of help for the key.
  var help: String {
    self == .crc32
      ? "CRC-32, eight hexadecimal digits." : "\(title), \(digits) hexadecimal digits or base64."
  }

  /// `text` in hexadecimal digits; nil where it is no value of this digest.
  fileprivate func hexadecimalDigits(_ text: String) -> String? {
    if text.utf8.count == digits {
      return text.utf8.allSatisfy(isHexDigit) ? text : nil
    }
    return mayBeBase64 ? hexadecimalDigits(ofBase64: text) : nil
  }

  /// The same of a text that is in base64.
  fileprivate func hexadecimalDigits(ofBase64 text: String) -> String? {
    var bytes = [UInt8](repeating: 0, count: digits / 2 + 3)
    let text = Array(text.utf8CString)
    let count = spoolrun_base64(text.count - 1, text, bytes.count, &bytes)
    return count * 2 == digits ? hexadecimal(bytes[..<count]) : nil
  }
}

/// The digest of a payload.
package struct Digest: Hashable, Sendable, CustomStringConvertible {
  /// What computes it.
  package let algorithm: DigestAlgorithm
  /// Hexadecimal digits, in the case that other tools print.
  package let description: String

  /// - Parameter text: hexadecimal digits in either case, or base64 where that has another length; nil for any other.
  package init?(_ algorithm: DigestAlgorithm, _ text: String) {
    guard let digits = algorithm.hexadecimalDigits(text) else { return nil }
    self.algorithm = algorithm
    description = algorithm.isUpperCase ? digits.uppercased() : digits.lowercasedASCII
  }

  /// - Parameter base64: with its padding (RFC 4648 section 4).
  package init?(_ algorithm: DigestAlgorithm, base64: String) {
    guard let digits = algorithm.hexadecimalDigits(ofBase64: base64) else { return nil }
    self.algorithm = algorithm
    description = algorithm.isUpperCase ? digits.uppercased() : digits
  }

  /// A CRC-32 as a digest.
  package init(_ checksum: Checksum) {
    algorithm = .crc32
    description = "\(checksum)"
  }

  /// - Parameter value: as many bytes as the algorithm gives.
  init(_ algorithm: DigestAlgorithm, value: [UInt8]) {
    self.algorithm = algorithm
    description = hexadecimal(value[...])
  }
}

/// Digests of one payload, at most one by each algorithm.
package struct Digests: Hashable, Sendable {
  /// In the order of ``DigestAlgorithm``.
  package private(set) var all: [Digest] = []

  /// Of two by one algorithm, the last one counts.
  package init(_ digests: Digest...) { self.init(digests) }

  init(_ digests: [Digest]) {
    for digest in digests { self[digest.algorithm] = digest }
  }

  /// Those among the fields of a journal line.
  package init(_ fields: Fields) {
    all = DigestAlgorithm.allCases.compactMap { algorithm in
      fields[algorithm.rawValue].flatMap { Digest(algorithm, $0) }
    }
  }

  /// The digest of this algorithm; nil if there is none.
  package subscript(algorithm: DigestAlgorithm) -> Digest? {
    get { all.first { $0.algorithm == algorithm } }
    set { all = DigestAlgorithm.allCases.compactMap { $0 == algorithm ? newValue : self[$0] } }
  }

  /// Whether there is no digest.
  package var isEmpty: Bool { all.isEmpty }

  /// The algorithms of these digests.
  package var algorithms: Set<DigestAlgorithm> { Set(all.map(\.algorithm)) }

  /// Those by `algorithms`.
  package func only(_ algorithms: Set<DigestAlgorithm>) -> Digests {
    Digests(all.filter { algorithms.contains($0.algorithm) })
  }

  /// These, and those of `others` that are by other algorithms.
  package func joined(with others: Digests) -> Digests { Digests(others.all + all) }

  /// Whether one of `others` is by the same algorithm as one of these, and another value.
  package func contradict(_ others: Digests) -> Bool {
    others.all.contains { other in self[other.algorithm].map { $0 != other } ?? false }
  }
}

extension Fields {
  /// This and a field for each of `digests`.
  package consuming func with(_ digests: Digests) -> Fields {
    for digest in digests.all { add(digest.algorithm.rawValue, digest) }
    return self
  }
}
