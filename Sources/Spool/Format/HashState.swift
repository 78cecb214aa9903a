internal import CChecksum
internal import CNettle

/// A running CRC-32 as zlib, cksfv and `rhash --crc32` compute it (ISO 3309, RFC 1952 section 8).
package struct Checksum: Hashable, Sendable, CustomStringConvertible {
  package private(set) var value: UInt32

  package init() { value = 0 }
  package init(value: UInt32) { self.value = value }

  /// Of a text in UTF-8.
  init(of text: String) {
    self.init()
    Array(text.utf8).withUnsafeBytes { update($0) }
  }

  /// Eight hexadecimal digits of either case, with nothing else; nil otherwise.
  package init?(_ text: some StringProtocol) {
    guard text.utf8.count == 8, text.utf8.allSatisfy(isHexDigit),
      let value = UInt32(text, radix: 16)
    else { return nil }
    self.value = value
  }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    guard let base = bytes.baseAddress else { return }
    value = spoolrun_crc32(value, base, bytes.count)
  }

  /// Upper case, as cksfv and `rhash --crc32` print it.
  package var description: String { hexadecimal(UInt64(value), digits: 8).uppercased() }
}

/// A running digest.
struct HashState: Sendable, Hashable {
  private enum Running: Sendable {
    case crc32(Checksum)
    /// `length`: bytes taken in.
    case nettle(spoolrun_digest, length: UInt64)
  }

  let algorithm: DigestAlgorithm
  private var running: Running

  /// Of no bytes.
  init(_ algorithm: DigestAlgorithm) {
    self.algorithm = algorithm
    if let kind = algorithm.kind {
      var digest = spoolrun_digest()
      spoolrun_digest_init(&digest, kind)
      running = .nettle(digest, length: 0)
    } else {
      running = .crc32(Checksum())
    }
  }

  /// A CRC-32 is its own state.
  init(_ checksum: Checksum) { (algorithm, running) = (.crc32, .crc32(checksum)) }

  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    guard let base = bytes.baseAddress else { return }
    switch running {
    case .crc32(var checksum):
      checksum.update(bytes)
      running = .crc32(checksum)
    case .nettle(var digest, let length):
      spoolrun_digest_update(&digest, bytes.count, base)
      // A state from a journal may claim any length.
      running = .nettle(digest, length: length &+ UInt64(bytes.count))
    }
  }

  /// The digest of the bytes so far.
  var value: [UInt8] {
    switch running {
    case .crc32(let checksum): return withUnsafeBytes(of: checksum.value.bigEndian) { Array($0) }
    case .nettle(let digest, _):
      return withUnsafePointer(to: digest) { digest in
        [UInt8](unsafeUninitializedCapacity: Int(SPOOLRUN_LONGEST_DIGEST)) { value, count in
          count = spoolrun_digest_value(digest, value.baseAddress)
        }
      }
    }
  }

  // What waits in the context for a block to be full depends on how the bytes came, and counts for nothing.
  static func == (left: HashState, right: HashState) -> Bool {
    left.algorithm == right.algorithm && left.value == right.value
  }

  func hash(into hasher: inout Hasher) { hasher.combine(algorithm) }

  /// The version of what ``saved`` writes. A state of another one is not read: the bytes are.
  private static let version = "1"

  /// `sha256/1:HEX`; nil for CRC-32, and where the library's state has another layout than is known here.
  var saved: String? {
    guard case .nettle(let digest, let length) = running else { return nil }
    let state = withUnsafePointer(to: digest) { digest in
      [UInt8](unsafeUninitializedCapacity: Int(SPOOLRUN_LONGEST_STATE)) { state, count in
        count = spoolrun_digest_save(digest, length, state.baseAddress)
      }
    }
    return state.isEmpty ? nil : "\(algorithm.rawValue)/\(Self.version):\(hexadecimal(state[...]))"
  }

  /// Reads what ``saved`` wrote.
  /// - Parameter length: the number of bytes before the state.
  init?(_ saved: Substring, length: UInt64) {
    let parts = saved.split(at: ":", omittingEmptySubsequences: false)
    let name = parts[0].split(at: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, name.count == 2, name[1] == Self.version,
      let algorithm = DigestAlgorithm(rawValue: String(name[0])), let kind = algorithm.kind,
      let state = bytes(ofHexadecimal: parts[1])
    else { return nil }
    var digest = spoolrun_digest()
    guard spoolrun_digest_restore(&digest, kind, length, state.count, state) != 0 else { return nil }
    self.algorithm = algorithm
    running = .nettle(digest, length: length)
  }
}

/// The digests of the bytes so far, while they grow: what a checkpoint carries so that no byte before it is read again.
package struct DigestStates: Hashable, Sendable {
  /// In the order of ``DigestAlgorithm``. CRC-32 is always there.
  private(set) var all: [HashState]

  /// Of no bytes yet.
  package init(_ algorithms: Set<DigestAlgorithm> = []) {
    all = DigestAlgorithm.allCases.filter { $0 == .crc32 || algorithms.contains($0) }.map { HashState($0) }
  }

  init(_ states: [HashState]) { all = states }

  /// Those that a journal line carries; nil where there is no CRC-32. Others that cannot be read are left out.
  /// - Parameter length: the number of bytes that they are of.
  init?(_ fields: Fields, length: UInt64) {
    guard let crc32 = fields[DigestAlgorithm.crc32.rawValue].flatMap({ Checksum($0) }) else { return nil }
    let saved = fields[Self.field]?.split(at: ",") ?? []
    let states = [HashState(crc32)] + saved.compactMap { HashState($0, length: length) }
    all = DigestAlgorithm.allCases.compactMap { algorithm in states.first { $0.algorithm == algorithm } }
  }

  /// The field of journal lines from which all but the CRC-32 can be carried on.
  static let field = "states"

  package var algorithms: Set<DigestAlgorithm> { Set(all.map(\.algorithm)) }

  /// These without those that are neither CRC-32 nor in `algorithms`; nil where one of `algorithms` is missing.
  package func narrowed(to algorithms: Set<DigestAlgorithm>) -> DigestStates? {
    if !algorithms.isSubset(of: self.algorithms) { return nil }
    return DigestStates(all.filter { $0.algorithm == .crc32 || algorithms.contains($0.algorithm) })
  }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    for index in all.indices { all[index].update(bytes) }
  }

  /// The digests of all bytes so far.
  package var digests: Digests { Digests(all.map { Digest($0) }) }
}

extension Fields {
  /// This and the fields from which `states` can be read again.
  package consuming func with(_ states: DigestStates?) -> Fields {
    let saved = states?.all.compactMap(\.saved) ?? []
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

  /// The beginning of the data.
  package static let zero = Mark.zero([])

  /// The beginning of the data, for a reading that computes `algorithms` beside CRC-32.
  package static func zero(_ algorithms: Set<DigestAlgorithm>) -> Mark {
    Mark(offset: 0, states: DigestStates(algorithms))
  }

  package init(offset: UInt64, states: DigestStates) {
    self.offset = offset
    self.states = states
  }

  /// Without other digests than CRC-32.
  package init(offset: UInt64, checksum: Checksum) {
    self.init(offset: offset, states: DigestStates([HashState(checksum)]))
  }

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

/// Two hexadecimal digits for each byte, in lower case.
func hexadecimal(_ bytes: ArraySlice<UInt8>) -> String {
  let digits = Array("0123456789abcdef".utf8)
  return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}

/// nil where `text` is anything but pairs of hexadecimal digits.
private func bytes(ofHexadecimal text: Substring) -> [UInt8]? {
  let digits = text.utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
  guard digits.count == text.utf8.count, digits.count % 2 == 0 else { return nil }
  return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}
