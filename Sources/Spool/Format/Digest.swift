internal import CNettle

/// The digests by which a payload can be declared and verified. The raw value is the job's key and the field of
/// records. A new one is a case, a row, and its entries in the manual.
package enum DigestAlgorithm: String, CaseIterable, Sendable {
  case crc32, sha256, sha512, sha1, md5

  /// `kind`: as Nettle computes it; nil for CRC-32, which is computed at once, by ``Checksum``.
  private var row: (title: String, digits: Int, kind: Int32?) {
    switch self {
    case .crc32: ("CRC-32", 8, nil)
    case .md5: ("MD5", 32, Int32(SPOOLRUN_MD5))
    case .sha1: ("SHA-1", 40, Int32(SPOOLRUN_SHA1))
    case .sha256: ("SHA-256", 64, Int32(SPOOLRUN_SHA256))
    case .sha512: ("SHA-512", 128, Int32(SPOOLRUN_SHA512))
    }
  }

  /// The name for people.
  package var title: String { row.title }
  /// The number of hexadecimal digits.
  package var digits: Int { row.digits }
  var kind: Int32? { row.kind }

  package static let byStrength = allCases.sorted { $0.digits > $1.digits }

  /// What a value of the key has to be.
  package var wanted: String {
    self == .crc32 ? "8 hexadecimal digits, such as 1c291ca3" : "\(digits) hexadecimal digits, or the same in base64"
  }

  /// One line of help for the key.
  var help: String {
    self == .crc32
      ? "CRC-32, eight hexadecimal digits." : "\(title), \(digits) hexadecimal digits or base64."
  }
}

/// The digest of a payload.
package struct Digest: Hashable, Sendable, CustomStringConvertible {
  package let algorithm: DigestAlgorithm
  /// Hexadecimal digits, in the case that other tools print: cksfv and `rhash --crc32` in upper case.
  package let description: String

  private init(_ algorithm: DigestAlgorithm, digits: String) {
    self.algorithm = algorithm
    description = algorithm == .crc32 ? digits.uppercased() : digits.lowercasedASCII
  }

  /// - Parameter text: hexadecimal digits in either case, or base64 where that has another length; nil for any other.
  package init?(_ algorithm: DigestAlgorithm, _ text: String) {
    if text.utf8.count == algorithm.digits {
      guard text.utf8.allSatisfy(isHexDigit) else { return nil }
      self.init(algorithm, digits: text)
    } else {
      // A CRC-32 in base64 is as long as one in hexadecimal digits.
      if algorithm == .crc32 { return nil }
      self.init(algorithm, base64: text)
    }
  }

  /// - Parameter base64: with its padding (RFC 4648 section 4).
  package init?(_ algorithm: DigestAlgorithm, base64: String) {
    var bytes = [UInt8](repeating: 0, count: algorithm.digits / 2 + 3)
    let text = Array(base64.utf8CString)
    let count = spoolrun_base64(text.count - 1, text, bytes.count, &bytes)
    guard count * 2 == algorithm.digits else { return nil }
    self.init(algorithm, digits: hexadecimal(bytes[..<count]))
  }

  /// The digest of the bytes that `state` has taken in.
  init(_ state: HashState) { self.init(state.algorithm, digits: hexadecimal(state.value[...])) }

  /// Of a text in UTF-8.
  init(_ algorithm: DigestAlgorithm, of text: String) {
    var state = HashState(algorithm)
    Array(text.utf8).withUnsafeBytes { state.update($0) }
    self.init(state)
  }

  package init(_ checksum: Checksum) { self.init(.crc32, digits: "\(checksum)") }
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

  package var isEmpty: Bool { all.isEmpty }

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

/// What is known of a payload before its bytes are: the size and the digests that it must have.
package struct Expectation: Sendable, Equatable {
  /// Bytes of the whole; nil for any size.
  package var size: UInt64?
  /// All of these have to agree.
  package var digests: Digests

  /// Without arguments, any payload will do.
  package init(size: UInt64? = nil, digests: Digests = Digests()) {
    self.size = size
    self.digests = digests
  }

  /// Whether a digest proves in the end that the bytes are right, wherever they come from.
  package var provesContent: Bool { !digests.isEmpty }

  /// Whether bytes of two mirrors may be joined: their validators cannot be compared, so only a digest shows a splice.
  package var mayJoinMirrors: Bool { provesContent }

  /// How a payload of `size` bytes differs; nil where it may be the right one.
  package func mismatch(size found: UInt64) -> Mismatch? {
    guard let size, size != found else { return nil }
    return Mismatch(property: .size, expected: "\(size)", found: "\(found)")
  }

  /// How the payload that ends at `found` differs; nil where it is the right one. A digest that was not computed counts
  /// as a mismatch.
  package func mismatch(_ found: Mark) -> Mismatch? {
    if let mismatch = mismatch(size: found.offset) { return mismatch }
    let computed = found.digests
    for digest in digests.all where computed[digest.algorithm] != digest {
      return Mismatch(
        property: .digest(digest.algorithm), expected: "\(digest)",
        found: computed[digest.algorithm].map { "\($0)" } ?? "nothing")
    }
    return nil
  }
}

/// In what a payload differs from what it must be.
package struct Mismatch: Sendable, Equatable {
  /// What differs.
  package enum Property: Sendable, Equatable {
    case size
    case digest(DigestAlgorithm)
  }

  /// What differs.
  package let property: Property
  /// What it should be, as records show it.
  package let expected: String
  /// What it is, as records show it.
  package let found: String

  /// `expected 5 bytes, found 6`.
  package var text: String {
    switch property {
    case .size: "expected \(expected) bytes, found \(found)"
    case .digest(let algorithm): "expected \(algorithm.rawValue) \(expected), found \(found)"
    }
  }
}
