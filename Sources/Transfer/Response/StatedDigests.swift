/// A digest of the whole representation, as a server states it. Nothing shows that it is right.
package struct StatedDigest: Hashable, Sendable {
  /// The algorithms that spoolrun can check.
  package enum Algorithm: String, CaseIterable, Sendable {
    case sha256, sha512, sha1, md5, crc32

    /// Characters of a value in base64.
    fileprivate var length: Int {
      switch self {
      case .crc32: 8
      case .md5: 24
      case .sha1: 28
      case .sha256: 44
      case .sha512: 88
      }
    }
  }

  /// What computes it.
  package let algorithm: Algorithm
  /// As sent: base64 with its padding (RFC 4648, 4). Only its length and its characters are checked.
  package let base64: String

  fileprivate init?(_ algorithm: Algorithm?, _ base64: String) {
    guard let algorithm, base64.utf8.count == algorithm.length, base64.utf8.allSatisfy(isBase64) else { return nil }
    self.algorithm = algorithm
    self.base64 = base64
  }
}

extension ResponseHead {
  /// The digests of the whole representation that the fields state, at most one by each algorithm. Two that contradict
  /// each other state nothing. An ETag is never taken for one. Pure.
  ///
  /// For a response without Content-Encoding, because fields differ in whether they are of what is encoded.
  /// - Parameter isWhole: whether the body is the whole representation.
  func statedDigests(isWhole: Bool) -> [StatedDigest] {
    // Of the representation, whatever part of it the body is (RFC 9530, 3; RFC 3230, 4.3.2).
    var found = byteSequences("repr-digest") + list("digest", Self.instanceDigests)
    if !isDecodedByStore { found += list("x-goog-hash", ["md5": .md5]) }
    // Of the body itself (RFC 9530, 2; RFC 1864), or perhaps of a part of an upload.
    if isWhole { found += byteSequences("content-digest") + single("content-md5", .md5) + amazonChecksums }
    if found.isEmpty { return [] }
    return StatedDigest.Algorithm.allCases.compactMap { algorithm in
      let values = Set(found.filter { $0.algorithm == algorithm })
      return values.count == 1 ? values.first : nil
    }
  }

  /// RFC 3230, 4.1.1, and RFC 5843; in lower case.
  private static let instanceDigests: [String: StatedDigest.Algorithm] = [
    "sha-256": .sha256, "sha-512": .sha512, "sha": .sha1, "md5": .md5,
  ]

  /// Google's store decodes a file that was stored with a Content-Encoding, as no coding was requested. Its hash is of
  /// the encoded file.
  private var isDecodedByStore: Bool {
    members("x-goog-stored-content-encoding").contains { !["", "identity"].contains(lowercasedASCII($0)) }
  }

  /// The checksum of an upload in parts may be one of the parts' checksums. Then it has a suffix, which no base64 has,
  /// or its type says so.
  private var amazonChecksums: [StatedDigest] {
    if values("x-amz-checksum-type").contains(where: { lowercasedASCII($0) != "full_object" }) { return [] }
    return Self.amazonFields.flatMap { single($0, $1) }
  }

  private static let amazonFields: [(String, StatedDigest.Algorithm)] = [
    ("x-amz-checksum-sha256", .sha256), ("x-amz-checksum-sha512", .sha512), ("x-amz-checksum-sha1", .sha1),
    ("x-amz-checksum-md5", .md5), ("x-amz-checksum-crc32", .crc32),
  ]

  private func single(_ name: String, _ algorithm: StatedDigest.Algorithm) -> [StatedDigest] {
    values(name).compactMap { StatedDigest(algorithm, $0) }
  }

  /// A list of `NAME=BASE64`.
  private func list(_ name: String, _ algorithms: [String: StatedDigest.Algorithm]) -> [StatedDigest] {
    members(name).compactMap { member in
      let parts = member.utf8.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        .map { String(decoding: $0, as: UTF8.self) }
      return parts.count == 2 ? StatedDigest(algorithms[lowercasedASCII(parts[0])], parts[1]) : nil
    }
  }

  /// A dictionary of byte sequences. One that is malformed states nothing, as a whole (RFC 8941, 4.2).
  private func byteSequences(_ name: String) -> [StatedDigest] {
    guard let members = ByteSequences(values(name)) else { return [] }
    return members.values.compactMap { key, value in StatedDigest(Self.instanceDigests[key], value) }
  }
}

/// A Dictionary whose values are Byte Sequences (RFC 8941, 3.2 and 3.3.5).
private struct ByteSequences {
  /// What is between the colons. Of several members with one key the last one counts.
  private(set) var values: [String: String] = [:]

  /// - Parameter lines: the values of all fields of one name.
  /// - Returns: nil for anything else, as for values of other types.
  init?(_ lines: [String]) {
    guard !lines.isEmpty else { return nil }
    var rest = Array(lines.joined(separator: ",").utf8)[...]
    while true {
      guard let (key, value) = Self.member(&rest) else { return nil }
      values[key] = value
      if rest.isEmpty { return }
      guard rest.popFirst() == UInt8(ascii: ",") else { return nil }
    }
  }

  /// Takes `KEY=:BASE64:` with the blanks around it. Parameters have no meaning here.
  private static func member(_ rest: inout ArraySlice<UInt8>) -> (key: String, value: String)? {
    skipBlanks(&rest)
    let key = rest.prefix { isLowerCase($0) || isDigit($0) || "_-.*".utf8.contains($0) }
    guard let first = key.first, isLowerCase(first) || first == UInt8(ascii: "*") else { return nil }
    rest = rest.dropFirst(key.count)
    guard rest.starts(with: "=:".utf8) else { return nil }
    rest = rest.dropFirst(2)
    let value = rest.prefix(while: isBase64)
    rest = rest.dropFirst(value.count)
    guard rest.popFirst() == UInt8(ascii: ":") else { return nil }
    if rest.first == UInt8(ascii: ";") {
      let parameters = rest.prefix { $0 != UInt8(ascii: ",") }
      // A comma in a string would end it too early.
      if parameters.contains(UInt8(ascii: "\"")) { return nil }
      rest = rest.dropFirst(parameters.count)
    }
    skipBlanks(&rest)
    return (String(decoding: key, as: UTF8.self), String(decoding: value, as: UTF8.self))
  }

  private static func skipBlanks(_ rest: inout ArraySlice<UInt8>) { rest = rest.drop { $0 == 0x20 || $0 == 0x09 } }
}

private func isLowerCase(_ byte: UInt8) -> Bool { UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte }
private func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }

/// A character of base64 or its padding.
private func isBase64(_ byte: UInt8) -> Bool {
  isLowerCase(byte) || isDigit(byte) || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte || "+/=".utf8.contains(byte)
}
