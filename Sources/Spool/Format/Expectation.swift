/// What is known of a payload before its bytes are: the size and the digests that it must have.
package struct Expectation: Sendable, Equatable {
  /// Bytes of the whole; nil for any size.
  package var size: UInt64?
  /// All of these have to agree.
  package var digests: Digests
  package var pieces: PieceKey?

  package init(size: UInt64? = nil, digests: Digests = Digests(), pieces: PieceKey? = nil) {
    (self.size, self.digests, self.pieces) = (size, digests, pieces)
  }

  /// Whether the size and the digests that `wish` has are also here. Pieces are not compared.
  package func meets(_ wish: Expectation) -> Bool {
    (wish.size ?? size) == size && wish.digests.all.allSatisfy { digests[$0.algorithm] == $0 }
  }

  /// Whether a digest, or those of all pieces, prove in the end that the bytes are right, wherever they come from. Only
  /// then may bytes of two mirrors be joined: their validators cannot be compared.
  package var provesContent: Bool { !digests.isEmpty || pieces != nil }

  /// How a payload of `size` bytes differs; nil where it may be the right one.
  package func mismatch(size found: UInt64) -> Mismatch? {
    guard let size, size != found else { return nil }
    return Mismatch(property: .size, expected: "\(size)", found: "\(found)")
  }

  /// How the payload that ends at `found` differs; nil where it is the right one. A digest that was not computed counts
  /// as a mismatch.
  package func mismatch(_ found: Mark) -> Mismatch? {
    if let mismatch = mismatch(size: found.offset) { return mismatch }
    lazy var computed = found.digests
    for digest in DigestAlgorithm.byStrength.compactMap({ digests[$0] }) where computed[digest.algorithm] != digest {
      return Mismatch(
        property: .digest(digest.algorithm), expected: "\(digest)",
        found: computed[digest.algorithm].map { "\($0)" } ?? "nothing")
    }
    guard let pieces else { return nil }
    guard let state = found.states.pieces, state.list.key == pieces else {
      return Mismatch(property: .piece, expected: pieces.text, found: "nothing")
    }
    return state.mismatch
  }
}

/// The digests of the bytes so far, while they grow: what a checkpoint carries so that no byte before it is read again.
package struct DigestStates: Hashable, Sendable {
  /// In the order of ``DigestAlgorithm``. CRC-32 is always there.
  private(set) var all: [HashState]
  package private(set) var pieces: PieceState?
  /// The same as a journal line has it, until the list is known.
  private var savedPieces: String?

  package init(_ algorithms: Set<DigestAlgorithm> = [], pieces list: PieceList? = nil) {
    all = DigestAlgorithm.allCases.filter { $0 == .crc32 || algorithms.contains($0) }.map { HashState($0) }
    pieces = list.map { PieceState($0) }
  }

  init(_ states: [HashState], _ pieces: PieceState? = nil) { (all, self.pieces) = (states, pieces) }

  // What is known of the pieces follows from the same bytes.
  package static func == (left: DigestStates, right: DigestStates) -> Bool { left.all == right.all }

  package func hash(into hasher: inout Hasher) { hasher.combine(all) }

  /// Those that a journal line carries; nil where there is no CRC-32. Others that cannot be read are left out.
  /// - Parameter length: the number of bytes that they are of.
  init?(_ fields: Fields, length: UInt64) {
    guard let crc32 = fields[DigestAlgorithm.crc32.rawValue].flatMap({ Checksum($0) }) else { return nil }
    let saved = fields[Self.field]?.split(at: ",") ?? []
    let states = [HashState(crc32)] + saved.compactMap { HashState($0, length: length) }
    all = DigestAlgorithm.allCases.compactMap { algorithm in states.first { $0.algorithm == algorithm } }
    savedPieces = saved.first { $0.begins(with: PieceState.start) }.map { String($0) }
  }

  /// The field of journal lines from which all but the CRC-32 can be carried on.
  static let field = "states"

  package var algorithms: Set<DigestAlgorithm> { Set(all.map(\.algorithm)) }

  /// These without those that are neither CRC-32 nor in `algorithms`, and with those of the pieces in `list`; nil where
  /// one of them is missing.
  /// - Parameter length: the number of bytes before the states.
  func narrowed(to algorithms: Set<DigestAlgorithm>, _ list: PieceList? = nil, length: UInt64 = 0) -> DigestStates? {
    if !algorithms.isSubset(of: self.algorithms) { return nil }
    var result = DigestStates(all.filter { $0.algorithm == .crc32 || algorithms.contains($0.algorithm) })
    guard let list else { return result }
    let known = pieces.flatMap { $0.list.key == list.key ? $0 : nil }
    result.pieces = known ?? savedPieces.flatMap { PieceState($0, of: list, length: length) }
    return result.pieces == nil ? nil : result
  }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    for index in all.indices { all[index].update(bytes) }
    pieces?.update(bytes)
  }

  /// What journal lines keep beside the CRC-32.
  fileprivate var saved: [String] { all.compactMap(\.saved) + [pieces?.saved ?? savedPieces].compactMap(\.self) }

  package var digests: Digests { Digests(inOrder: all.map { Digest($0) }) }
}

extension Fields {
  /// This and the fields from which `states` can be read again.
  package consuming func with(_ states: DigestStates?) -> Fields {
    let saved = states?.saved ?? []
    return self.with(DigestAlgorithm.crc32.rawValue, states?.all.first.map { Digest($0) })
      .with(DigestStates.field, saved.isEmpty ? nil : saved.joined(separator: ","))
  }
}

/// An offset in the data, with the digests of all bytes before it: what a checkpoint records. From here the digests can
/// be carried on.
package struct Mark: Sendable, Hashable {
  /// In bytes.
  package let offset: UInt64
  package let states: DigestStates

  package static let zero = Mark.zero([])

  /// The beginning of the data, for a reading that computes `algorithms` beside CRC-32.
  package static func zero(_ algorithms: Set<DigestAlgorithm>, pieces: PieceList? = nil) -> Mark {
    Mark(offset: 0, states: DigestStates(algorithms, pieces: pieces))
  }

  package init(offset: UInt64, states: DigestStates) { (self.offset, self.states) = (offset, states) }

  package init(offset: UInt64, checksum: Checksum) {
    self.init(offset: offset, states: DigestStates([HashState(checksum)]))
  }

  package var digests: Digests { states.digests }

  /// This mark with the states of `algorithms` and those of `pieces` alone; nil where one of them is missing.
  package func narrowed(to algorithms: Set<DigestAlgorithm>, pieces: PieceList? = nil) -> Mark? {
    states.narrowed(to: algorithms, pieces, length: offset).map { Mark(offset: offset, states: $0) }
  }

  /// Reads it from a journal line, whose `offset` has been read already; nil where something is missing.
  init?(at offset: UInt64?, _ fields: Fields) {
    guard let offset, let states = DigestStates(fields, length: offset) else { return nil }
    self.init(offset: offset, states: states)
  }
}
