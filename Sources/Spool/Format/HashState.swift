internal import CNettle

/// A running digest other than CRC-32, computed by Nettle.
struct HashState: Sendable, Hashable {
  let algorithm: DigestAlgorithm
  /// Bytes taken in.
  private(set) var length: UInt64 = 0
  private var digest = spoolrun_digest()

  /// nil for CRC-32.
  init?(_ algorithm: DigestAlgorithm) {
    guard let kind = Self.kind(algorithm) else { return nil }
    self.algorithm = algorithm
    spoolrun_digest_init(&digest, kind)
  }

  private static func kind(_ algorithm: DigestAlgorithm) -> Int32? {
    switch algorithm {
    case .crc32: nil
    case .md5: Int32(SPOOLRUN_MD5)
    case .sha1: Int32(SPOOLRUN_SHA1)
    case .sha256: Int32(SPOOLRUN_SHA256)
    case .sha512: Int32(SPOOLRUN_SHA512)
    }
  }

  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    guard let base = bytes.baseAddress else { return }
    spoolrun_digest_update(&digest, bytes.count, base)
    // A state from a journal may claim any length.
    length &+= UInt64(bytes.count)
  }

  /// The digest of the bytes so far.
  var value: [UInt8] {
    withUnsafePointer(to: digest) { digest in
      [UInt8](unsafeUninitializedCapacity: Int(SPOOLRUN_LONGEST_DIGEST)) { value, count in
        count = spoolrun_digest_value(digest, value.baseAddress)
      }
    }
  }

  // What waits in the context for a block to be full depends on how the bytes came, and counts for nothing.
  static func == (left: HashState, right: HashState) -> Bool {
    left.algorithm == right.algorithm && left.length == right.length && left.value == right.value
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(algorithm)
    hasher.combine(length)
  }
}

extension Digest {
  /// The digest of the bytes that `state` has taken in.
  init(_ state: HashState) { self.init(state.algorithm, value: state.value) }
}

// MARK: states that can be saved

extension HashState {
  /// The version of what ``saved`` writes. A state of another one is not read: the bytes are.
  private static let version = "1"

  /// `sha256/1:HEX`; nil where the library's state has another layout than is known here.
  var saved: String? {
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
      let algorithm = DigestAlgorithm(rawValue: String(name[0])), let kind = Self.kind(algorithm),
      let state = bytes(ofHexadecimal: parts[1])
    else { return nil }
    self.algorithm = algorithm
    self.length = length
    guard spoolrun_digest_restore(&digest, kind, length, state.count, state) != 0 else { return nil }
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
