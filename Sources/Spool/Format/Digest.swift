/// The digests by which a payload can be declared and verified. The raw value is the job's key and the field of
/// records.
///
/// To add one: a case here, its state in ``DigestStates``, its failure in ``Mismatch``, and its entries in the manual.
package enum DigestAlgorithm: String, CaseIterable, Sendable {
  case crc32

  /// The number of hexadecimal digits.
  var digits: Int {
    switch self {
    case .crc32: 8
    }
  }

  /// As cksfv, `rhash --crc32` and the like print it.
  var isUpperCase: Bool { self == .crc32 }

  /// What a value of the key has to be.
  var wanted: String {
    switch self {
    case .crc32: "8 hexadecimal digits, such as 1c291ca3"
    }
  }

  /// One line of help for the key.
  var help: String {
    switch self {
    case .crc32: "CRC-32, eight hexadecimal digits."
    }
  }
}

/// The digest of a payload.
package struct Digest: Hashable, Sendable, CustomStringConvertible {
  package let algorithm: DigestAlgorithm
  /// Hexadecimal digits, in the case that other tools print.
  package let description: String

  /// - Parameter text: hexadecimal digits in either case; nil for any other.
  package init?(_ algorithm: DigestAlgorithm, _ text: String) {
    guard text.utf8.count == algorithm.digits,
      text.utf8.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit })
    else { return nil }
    self.algorithm = algorithm
    description = algorithm.isUpperCase ? text.uppercased() : text.lowercased()
  }

  package init(_ checksum: Checksum) {
    algorithm = .crc32
    description = "\(checksum)"
  }
}

/// Digests of one payload, at most one by each algorithm.
package struct Digests: Hashable, Sendable {
  private var values: [DigestAlgorithm: Digest] = [:]

  package init(_ digests: Digest...) {
    for digest in digests { values[digest.algorithm] = digest }
  }

  /// Those among the fields of a journal line.
  package init(_ fields: Fields) {
    for algorithm in DigestAlgorithm.allCases {
      values[algorithm] = fields[algorithm.rawValue].flatMap { Digest(algorithm, $0) }
    }
  }

  package subscript(algorithm: DigestAlgorithm) -> Digest? {
    get { values[algorithm] }
    set { values[algorithm] = newValue }
  }

  package var isEmpty: Bool { values.isEmpty }

  /// In the order of ``DigestAlgorithm``.
  package var all: [Digest] { DigestAlgorithm.allCases.compactMap { values[$0] } }
}

/// The digests of the bytes so far, while they grow: what a checkpoint carries so that no byte before it is read again.
package struct DigestStates: Hashable, Sendable {
  /// Its value is its whole state.
  package private(set) var crc32: Checksum

  package init(crc32: Checksum = Checksum()) { self.crc32 = crc32 }

  /// Those that a journal line carries; nil where one is missing.
  init?(_ fields: Fields) {
    guard let crc32 = fields[DigestAlgorithm.crc32.rawValue].flatMap({ Checksum($0) }) else { return nil }
    self.crc32 = crc32
  }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) { crc32.update(bytes) }

  /// The digests of all bytes so far.
  package var digests: Digests { Digests(Digest(crc32)) }
}

extension Fields {
  /// This and a field for each of `digests`.
  package func with(_ digests: Digests) -> Fields {
    digests.all.reduce(self) { $0.with($1.algorithm.rawValue, $1) }
  }

  /// This and the fields from which `states` can be read again.
  package func with(_ states: DigestStates?) -> Fields { with(DigestAlgorithm.crc32.rawValue, states?.crc32) }
}
