/// An offset in the data, with the digests of all bytes before it: what a checkpoint records. From here the digests can
/// be carried on.
package struct Mark: Sendable, Hashable {
  /// In bytes.
  package let offset: UInt64
  /// The digests of all bytes before ``offset``.
  package let states: DigestStates

  /// The beginning of the data.
  package static let zero = Mark(offset: 0, states: DigestStates())

  /// The beginning of the data, for a reading that computes `algorithms` beside CRC-32.
  package static func zero(_ algorithms: Set<DigestAlgorithm>) -> Mark {
    Mark(offset: 0, states: DigestStates(algorithms))
  }

  /// - Parameter states: of the bytes before `offset`.
  package init(offset: UInt64, states: DigestStates) {
    self.offset = offset
    self.states = states
  }

  /// - Parameter checksum: of the bytes before `offset`. Other digests are not computed.
  package init(offset: UInt64, checksum: Checksum) {
    self.init(offset: offset, states: DigestStates(crc32: checksum))
  }

  /// The CRC-32 of the bytes before ``offset``.
  package var checksum: Checksum { states.crc32 }

  /// The digests of the bytes before ``offset``.
  package var digests: Digests { states.digests }

  /// This mark with the states of `algorithms` alone; nil where one of them is missing.
  package func narrowed(to algorithms: Set<DigestAlgorithm>) -> Mark? {
    states.narrowed(to: algorithms).map { Mark(offset: offset, states: $0) }
  }

  /// Reads it from a journal line, whose `offset` has been read already; nil where something is missing.
  init?(at offset: UInt64?, _ fields: Fields) {
    guard let offset, let states = DigestStates(fields, length: offset) else { return nil }
    self.init(offset: offset, states: states)
  }
}
