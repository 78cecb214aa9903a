internal import CChecksum
internal import CDigest

/// The digests by which a payload can be declared and verified. The raw value is the job's key and the field of
/// records. A new one is a case, a row, and its entries in the manual.
package enum DigestAlgorithm: String, CaseIterable, Sendable {
  case crc32, sha256, sha512, sha1, md5, blake2b, sha3 = "sha3-256", crc32c, crc64nvme

  // Not the raw value, a text: sets of them are made for each job.
  package func hash(into hasher: inout Hasher) { hasher.combine(kind) }

  /// `kind`: as ``HashState`` computes it; nil for CRC-32, which is computed at once, by ``Checksum``.
  /// `isStrong`: nobody can make another file that has it. `isNew`: workers of version 0.2 do not know the key.
  private var row: (title: String, digits: Int, kind: Int32?, isStrong: Bool, isNew: Bool) {
    switch self {
    case .crc32: ("CRC-32", 8, nil, false, false)
    case .md5: ("MD5", 32, Int32(SPOOLRUN_MD5), false, false)
    case .sha1: ("SHA-1", 40, Int32(SPOOLRUN_SHA1), false, false)
    case .sha256: ("SHA-256", 64, Int32(SPOOLRUN_SHA256), true, false)
    case .sha512: ("SHA-512", 128, Int32(SPOOLRUN_SHA512), true, false)
    case .blake2b: ("BLAKE2b", 128, Int32(SPOOLRUN_BLAKE2B), true, true)
    case .sha3: ("SHA3-256", 64, Int32(SPOOLRUN_SHA3_256), true, true)
    case .crc32c: ("CRC-32C", 8, Int32(SPOOLRUN_CRC32C), false, true)
    case .crc64nvme: ("CRC-64/NVME", 16, Int32(SPOOLRUN_CRC64NVME), false, true)
    }
  }

  package var title: String { row.title }
  package var digits: Int { row.digits }
  var kind: Int32? { row.kind }
  var isStrong: Bool { row.isStrong }
  var isNew: Bool { row.isNew }
  /// Whether this machine can compute it: BLAKE2b needs a library that few have.
  package var isAvailable: Bool { kind.map { spoolrun_digest_is_available($0) != 0 } ?? true }

  /// Of two of one length, the one that more lists have comes first.
  package static let byStrength = allCases.sorted { $0.digits > $1.digits }

  package var wanted: String {
    if !isAvailable { return "left out: this machine lacks the library libb2" }
    return digits == 8
      ? "8 hexadecimal digits, such as 1c291ca3" : "\(digits) hexadecimal digits, or the same in base64"
  }

  var help: String {
    digits == 8 ? "\(title), eight hexadecimal digits." : "\(title), \(digits) hexadecimal digits or base64."
  }

  /// Its name as other programs spell it, in either case: `SHA-256`, `sha256`, `SHA2-256`, `BLAKE2b-512`.
  package init?(title: some StringProtocol) {
    let name = title.lowercasedASCII.split(at: "-/").joined()
    let plain = ["sha2256": "sha256", "sha2512": "sha512", "blake2b512": "blake2b"][name] ?? name
    guard let found = Self.allCases.first(where: { $0.rawValue.split(at: "-").joined() == plain }) else { return nil }
    self = found
  }
}

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
    guard algorithm.isAvailable else { return nil }
    if text.utf8.count == algorithm.digits {
      guard text.utf8.allSatisfy(isHexDigit) else { return nil }
      self.init(algorithm, digits: text)
    } else if let mark = text.utf8.lastIndex(where: { $0 == 0x3A || $0 == 0x2D }) {
      // `sha256:`, as GitHub has it, and `sha256-`, as web pages have it (SRI). A name may have such a mark, as
      // `sha3-256` has, a digest none.
      guard DigestAlgorithm(title: text[..<mark]) == algorithm else { return nil }
      self.init(algorithm, String(text[mark...].dropFirstBytes()))
    } else {
      // Those of 32 bits are in base64 as long as in hexadecimal digits.
      if algorithm.digits == 8 { return nil }
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

  init(_ state: HashState) { self.init(state.algorithm, digits: hexadecimal(state.value[...])) }

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

  init(_ digests: [Digest]) { for digest in digests { self[digest.algorithm] = digest } }

  /// - Parameter digests: in the order of ``all``, at most one by each algorithm.
  init(inOrder digests: [Digest]) { all = digests }

  package init(_ fields: Fields) {
    all = DigestAlgorithm.allCases.compactMap { algorithm in
      fields[algorithm.rawValue].flatMap { Digest(algorithm, $0) }
    }
  }

  package subscript(algorithm: DigestAlgorithm) -> Digest? {
    get { all.first { $0.algorithm == algorithm } }
    set { all = DigestAlgorithm.allCases.compactMap { $0 == algorithm ? newValue : self[$0] } }
  }

  package var isEmpty: Bool { all.isEmpty }

  package var algorithms: Set<DigestAlgorithm> { Set(all.map(\.algorithm)) }

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
  package consuming func with(_ digests: Digests) -> Fields {
    for digest in digests.all { add(digest.algorithm.rawValue, digest) }
    return self
  }
}

package struct Mismatch: Sendable, Equatable {
  package enum Property: Sendable, Equatable {
    case size
    case digest(DigestAlgorithm)
    /// Of the list of pieces.
    case piece
  }

  package let property: Property
  /// What it should be, as records show it.
  package let expected: String
  package let found: String

  /// `expected 5 bytes, found 6`.
  package var text: String {
    switch property {
    case .size: "expected \(expected) bytes, found \(found)"
    case .digest(let algorithm): "expected \(algorithm.rawValue) \(expected), found \(found)"
    case .piece: "expected the pieces \(expected), found \(found)"
    }
  }
}

/// One line of a list of digests, as sha256sum(1), cksfv(1) and rhash(1) check it.
package struct SumLine: Sendable, Equatable {
  package enum Style: Sendable {
    /// `HEX  PATH`, as md5sum(1) and sha256sum(1) print it; for a CRC-32 `PATH HEX`, as cksfv(1) does.
    case plain
    /// `SHA256 (PATH) = HEX`, as the BSDs and `sha256sum --tag` print it.
    case tagged
  }

  /// The line without its newline.
  package let text: String

  /// - Returns: nil for a path that a line of this style cannot have.
  package init?(_ digest: Digest, _ path: String, _ style: Style) {
    let path = Self.distinct(path)
    guard digest.algorithm != .crc32 else {
      // SFV knows no escapes.
      if path.utf8.contains(where: { $0 == 0x0A || $0 == 0x0D }) { return nil }
      text = style == .plain ? "\(path) \(digest)" : "\(digest.algorithm.tag) (\(path)) = \(digest)"
      return
    }
    // As GNU coreutils escape a name: a backslash at the start of the line shows it (sha256sum(1)).
    let escaped = path.replacing { ["\\": "\\\\", "\n": "\\n", "\r": "\\r"][$0] }
    let mark = escaped == path ? "" : "\\"
    text = mark + (style == .plain ? "\(digest)  \(escaped)" : "\(digest.algorithm.tag) (\(escaped)) = \(digest)")
  }

  /// The same path, with `./` before what some reader takes for something else: `-` is standard input for sha256sum,
  /// `;` begins a comment for cksfv, `#` one for rhash, which also drops `*`, blanks and a backslash.
  private static func distinct(_ path: String) -> String {
    guard let first = path.utf8.first, "-;#* \t\\".utf8.contains(first) else { return path }
    return "./\(path)"
  }
}

extension DigestAlgorithm { fileprivate var tag: String { self == .blake2b ? title : rawValue.uppercased() } }

/// A running CRC-32 as zlib, cksfv and `rhash --crc32` compute it (ISO 3309, RFC 1952 section 8).
package struct Checksum: Hashable, Sendable, CustomStringConvertible {
  package private(set) var value: UInt32

  package init() { value = 0 }
  package init(value: UInt32) { self.value = value }

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

struct HashState: Sendable, Hashable {
  private enum Running: Sendable {
    case crc32(Checksum)
    /// `length`: bytes taken in. By reference, or each mark would have room for the largest context.
    indirect case other(spoolrun_digest, length: UInt64)
  }

  let algorithm: DigestAlgorithm
  private var running: Running

  init(_ algorithm: DigestAlgorithm) {
    self.algorithm = algorithm
    if let kind = algorithm.kind {
      var digest = spoolrun_digest()
      spoolrun_digest_init(&digest, kind)
      running = .other(digest, length: 0)
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
    case .other(var digest, let length):
      spoolrun_digest_update(&digest, bytes.count, base)
      // A state from a journal may claim any length.
      running = .other(digest, length: length &+ UInt64(bytes.count))
    }
  }

  var value: [UInt8] {
    switch running {
    case .crc32(let checksum): return withUnsafeBytes(of: checksum.value.bigEndian) { Array($0) }
    case .other(let digest, _):
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
    guard case .other(let digest, let length) = running else { return nil }
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
      let state = bytes(ofHexadecimal: Array(parts[1].utf8)[...])
    else { return nil }
    var digest = spoolrun_digest()
    guard spoolrun_digest_restore(&digest, kind, length, state.count, state) != 0 else { return nil }
    self.algorithm = algorithm
    running = .other(digest, length: length)
  }
}

/// nil where `text` is anything but pairs of hexadecimal digits.
func bytes(ofHexadecimal text: ArraySlice<UInt8>) -> [UInt8]? {
  guard text.count % 2 == 0, text.allSatisfy(isHexDigit) else { return nil }
  // `9` is 0x39, `A` is 0x41 and `a` is 0x61.
  func value(_ digit: UInt8) -> UInt8 { digit & 0xF + (digit > 0x39 ? 9 : 0) }
  return stride(from: text.startIndex, to: text.endIndex, by: 2).map { value(text[$0]) << 4 | value(text[$0 + 1]) }
}
