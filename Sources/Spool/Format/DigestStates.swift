/// The digests of the bytes so far, while they grow: what a checkpoint carries so that no byte before it is read again.
package struct DigestStates: Hashable, Sendable {
  /// Always computed. Its value is its whole state.
  package private(set) var crc32: Checksum
  /// The others, in the order of ``DigestAlgorithm``.
  private(set) var hashes: [HashState]

  /// Of no bytes yet.
  /// - Parameter algorithms: those to compute beside CRC-32.
  package init(_ algorithms: Set<DigestAlgorithm> = []) {
    self.init(
      crc32: Checksum(), DigestAlgorithm.allCases.filter(algorithms.contains).compactMap { HashState($0) })
  }

  /// CRC-32 alone, continued.
  package init(crc32: Checksum) { self.init(crc32: crc32, []) }

  init(crc32: Checksum, _ hashes: [HashState]) {
    self.crc32 = crc32
    self.hashes = hashes
  }

  /// Those that a journal line carries; nil where there is no CRC-32. Others that cannot be read are left out.
  /// - Parameter length: the number of bytes that they are of.
  init?(_ fields: Fields, length: UInt64) {
    guard let crc32 = fields[DigestAlgorithm.crc32.rawValue].flatMap({ Checksum($0) }) else { return nil }
    self.crc32 = crc32
    let saved = fields[Self.field]?.split(at: ",") ?? []
    let states = saved.compactMap { HashState($0, length: length) }
    hashes = DigestAlgorithm.allCases.compactMap { algorithm in states.first { $0.algorithm == algorithm } }
  }

  /// The field of journal lines from which all but the CRC-32 can be carried on.
  static let field = "states"

  /// What ``field`` has of these.
  fileprivate var saved: String? {
    let states = hashes.compactMap(\.saved)
    return states.isEmpty ? nil : states.joined(separator: ",")
  }

  /// What is computed beside CRC-32.
  package var algorithms: Set<DigestAlgorithm> { Set(hashes.map(\.algorithm)) }

  /// These without those that are not in `algorithms`; nil where one of `algorithms` is missing.
  package func narrowed(to algorithms: Set<DigestAlgorithm>) -> DigestStates? {
    let narrowed = DigestStates(crc32: crc32, hashes.filter { algorithms.contains($0.algorithm) })
    return narrowed.algorithms == algorithms.subtracting([.crc32]) ? narrowed : nil
  }

  /// Adds bytes to all of them.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    crc32.update(bytes)
    for index in hashes.indices { hashes[index].update(bytes) }
  }

  /// The digests of all bytes so far.
  package var digests: Digests { Digests([Digest(crc32)] + hashes.map { Digest($0) }) }
}

extension Fields {
  /// This and the fields from which `states` can be read again.
  package consuming func with(_ states: DigestStates?) -> Fields {
    self.with(DigestAlgorithm.crc32.rawValue, states?.crc32).with(DigestStates.field, states?.saved)
  }
}
