internal import CCurl
internal import Glibc

/// A `Content-Disposition` field of a response (RFC 6266). Pure.
package struct ContentDisposition: Equatable, Sendable {
  /// The name that the server proposes, as it says it: perhaps a path, or with control characters; nil if it proposes
  /// none that can be read. `filename*` counts before `filename` (section 4.3).
  package let filename: String?

  /// Nil for what is no such field: a type, and parameters, each at most once (section 4.1).
  package init?(_ field: String) {
    var rest = Array(field.utf8)[...]
    guard Self.token(&rest) != nil else { return nil }
    // Some servers leave the type out.
    if rest.first == UInt8(ascii: "=") { rest = Array((";" + field).utf8)[...] }
    var parameters: [String: [UInt8]] = [:]
    while true {
      skipBlanks(&rest)
      if rest.isEmpty { break }
      guard rest.popFirst() == UInt8(ascii: ";") else { return nil }
      skipBlanks(&rest)
      // Some servers end the field with a semicolon.
      if rest.isEmpty { break }
      guard let name = Self.token(&rest) else { return nil }
      skipBlanks(&rest)
      guard rest.popFirst() == UInt8(ascii: "=") else { return nil }
      skipBlanks(&rest)
      guard let value = Self.value(&rest) else { return nil }
      let key = String(decoding: name.map(lowercasedASCII), as: UTF8.self)
      guard parameters.updateValue(value, forKey: key) == nil else { return nil }
    }
    filename =
      parameters["filename*"].flatMap { Self.extended($0) }
      ?? parameters["filename"].map { String(decoding: $0, as: UTF8.self) }
  }

  private static func token(_ rest: inout ArraySlice<UInt8>) -> [UInt8]? {
    let token = rest.prefix(while: isTokenByte)
    rest = rest[token.endIndex...]
    return token.isEmpty ? nil : Array(token)
  }

  /// A quoted string (RFC 9110, 5.6.4), without its quotes; or what servers write instead of one, up to the semicolon.
  private static func value(_ rest: inout ArraySlice<UInt8>) -> [UInt8]? {
    guard rest.first == UInt8(ascii: "\"") else {
      let value = rest.prefix { $0 != UInt8(ascii: ";") }
      rest = rest[value.endIndex...]
      return value.isEmpty ? nil : Array(trimmed(value))
    }
    rest.removeFirst()
    var value: [UInt8] = []
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\"") { return value }
      if byte == UInt8(ascii: "\\") {
        guard let next = rest.popFirst() else { return nil }
        value.append(next)
      } else {
        value.append(byte)
      }
    }
    return nil
  }

  /// `UTF-8'language'percent-encoded` (RFC 8187, 3.2.1), or the same in ISO-8859-1, which RFC 5987 required; nil for
  /// anything else.
  private static func extended(_ value: [UInt8]) -> String? {
    let parts = value.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, parts[2].allSatisfy({ 0x21...0x7E ~= $0 }) else { return nil }
    let (bytes, isValid) = percentDecoded(parts[2])
    guard isValid else { return nil }
    switch String(decoding: parts[0].map(lowercasedASCII), as: UTF8.self) {
    case "utf-8", "utf8": return String(validating: bytes, as: UTF8.self)
    case "iso-8859-1": return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    default: return nil
    }
  }
}

/// A `Content-Range` field with the unit `bytes` (RFC 9110, 14.4): `bytes 0-99/100`, `bytes 0-99/*` or, with status
/// 416, `bytes */100`.
package struct ContentRange: Equatable, Sendable {
  /// First byte of the range, counted from 0; nil for an unsatisfied range.
  package let first: UInt64?
  /// Last byte of the range, itself included; nil for an unsatisfied range.
  package let last: UInt64?
  /// Length of the whole representation in bytes; nil if the server says `*`.
  package let total: UInt64?

  /// Nil for what the grammar does not allow, for numbers that no file reaches (off_t), and for contradictions (last
  /// before first, range beyond total). A resumed file depends on this field, so nothing is guessed.
  package init?(_ field: String) {
    let bytes = Array(field.utf8)
    let unit = Array("bytes ".utf8)
    guard bytes.count > unit.count, zip(bytes, unit).allSatisfy({ lowercasedASCII($0) == $1 }) else { return nil }
    let parts = bytes[unit.count...].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }

    let star = [UInt8(ascii: "*")]
    func position(_ digits: ArraySlice<UInt8>) -> UInt64? { decimal(digits).flatMap { $0 < Int64.max ? $0 : nil } }
    let total = position(parts[1])
    guard total != nil || parts[1].elementsEqual(star) else { return nil }

    if parts[0].elementsEqual(star) {
      guard total != nil else { return nil }
      (first, last) = (nil, nil)
    } else {
      let ends = parts[0].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
      guard ends.count == 2, let first = position(ends[0]), let last = position(ends[1]), last >= first,
        last < total ?? .max
      else { return nil }
      (self.first, self.last) = (first, last)
    }
    self.total = total
  }
}

/// The three date formats of HTTP (RFC 9110, 5.6.7), as seconds since 1970-01-01T00:00:00Z: IMF-fixdate, such as
/// `Sun, 06 Nov 1994 08:49:37 GMT`, and the obsolete `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`.
///
/// curl_getdate(3) would read these too, but also `1994` and `next week`; a date decides here whether data may
/// be joined, so only the grammar counts. The name of the weekday is not compared with the date.
package enum HTTPDate {
  /// - Parameter now: seconds since 1970; only places the two-digit year of an rfc850-date.
  /// - Returns: nil if `text` is none of the three formats or no day of the calendar.
  package static func parse(_ text: String, now: Int64) -> Int64? {
    guard text.utf8.count <= 40 else { return nil }
    for format in ["%a, %d %b %Y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y", "%a %b %d %H:%M:%S %Y"] {
      if let parts = parts(text, format) { return seconds(parts, year: Int64(parts.tm_year) + 1900) }
    }
    guard let parts = parts(text, "%A, %d-%b-%y %H:%M:%S GMT") else { return nil }
    // "More than 50 years in the future" means the most recent past year with those two digits.
    let fiftyYears: Int64 = 50 * 31_556_952
    let century = (1970 + now / 31_556_952) / 100
    let candidates = [1, 0, -1].compactMap { seconds(parts, year: (century + $0) * 100 + Int64(parts.tm_year % 100)) }
    return candidates.first { $0 <= now + fiftyYears }
  }

  /// The parts of a text in exactly this format. strptime(3) takes more, such as blanks: so the text is made again. The
  /// names are English, as no program here calls setlocale(3).
  private static func parts(_ text: String, _ format: String) -> tm? {
    var parts = tm()
    guard ccurl_parse_time(text, format, &parts) != 0, parts.tm_sec <= 60 else { return nil }
    var again = [CChar](repeating: 0, count: 64)
    let count = strftime(&again, again.count, format.replacing("%Y", with: "%04Y"), &parts)
    return again[..<count].elementsEqual(text.utf8.map { CChar(bitPattern: $0) }) ? parts : nil
  }

  private static func seconds(_ parts: tm, year: Int64) -> Int64? {
    guard year >= 1 else { return nil }
    var minute = parts
    // A leap second may be the next day's.
    (minute.tm_year, minute.tm_sec) = (Int32(year - 1900), 0)
    let start = timegm(&minute)
    // Of a day that does not exist it has made another.
    return minute.tm_mday == parts.tm_mday ? Int64(start) + Int64(parts.tm_sec) : nil
  }
}

/// The `Retry-After` field: a number of seconds or a date (RFC 9110, 10.2.3).
package enum RetryAfter {
  /// - Parameter sent: the answer's Date field. A date is relative to that, because either clock may be wrong, and the
  ///   server's is one.
  /// - Parameter now: seconds since 1970, to which a date is relative where there is no such field.
  /// - Returns: seconds to wait, 0 for a date that has passed, at most `Int32.max` (the caller has a limit of its own
  ///   anyway); nil if the field is neither form.
  package static func seconds(_ field: String, sent: String? = nil, now: Int64) -> Int? {
    let limit = Int64(Int32.max)
    if !field.isEmpty, field.utf8.allSatisfy(isDigit) {
      return Int(min(decimal(field.utf8) ?? UInt64(limit), UInt64(limit)))
    }
    guard let date = HTTPDate.parse(field, now: now) else { return nil }
    return Int(max(0, min(date - time(sent, now: now), limit)))
  }

  /// When an answer was sent.
  fileprivate static func time(_ sent: String?, now: Int64) -> Int64 {
    sent.flatMap { HTTPDate.parse($0, now: now) } ?? now
  }
}

extension ResponseHead {
  /// Seconds until a quota that is used up begins anew, by the field RateLimit (draft-ietf-httpapi-ratelimit-headers)
  /// or those that servers had before it; nil if it is not used up, or nothing is said.
  func quotaReset(now: Int64) -> Int? {
    let left = first("ratelimit-remaining") ?? first("x-ratelimit-remaining")
    guard status == 429 || status == 403 && left.map({ RetryAfter.seconds($0, now: now) == 0 }) ?? false else {
      return nil
    }
    let parameters = (first("ratelimit") ?? "").utf8.split { ";, ".utf8.contains($0) }
    let stated = parameters.first { $0.starts(with: "t=".utf8) || $0.starts(with: "reset=".utf8) }
    let text =
      stated?.split(separator: UInt8(ascii: "=")).last.map { String(decoding: $0, as: UTF8.self) }
      ?? first("ratelimit-reset") ?? first("x-ratelimit-reset")
    // Some state a time, in seconds since 1970, or in milliseconds.
    let digits = text.map { $0.utf8.count == 13 ? String(decoding: $0.utf8.prefix(10), as: UTF8.self) : $0 }
    guard let digits else { return nil }
    guard let time = decimal(digits.utf8), time > 1_000_000_000 else { return RetryAfter.seconds(digits, now: now) }
    let wait = Int64(min(time, 1 << 40)) - RetryAfter.time(first("date"), now: now)
    return Int(min(max(0, wait), Int64(Int32.max)))
  }
}

/// A digest of the whole representation, as a server states it. Nothing shows that it is right.
package struct StatedDigest: Hashable, Sendable {
  package enum Algorithm: String, CaseIterable, Sendable {
    case sha256, sha512, sha1, md5, crc32, crc32c, crc64nvme

    /// Characters of a value in base64.
    fileprivate var length: Int {
      switch self {
      case .crc32, .crc32c: 8
      case .crc64nvme: 12
      case .md5: 24
      case .sha1: 28
      case .sha256: 44
      case .sha512: 88
      }
    }
  }

  package let algorithm: Algorithm
  /// As sent: base64 with its padding (RFC 4648, 4). Only its length and its characters are checked.
  package let base64: String

  fileprivate init?(_ algorithm: Algorithm?, _ base64: String) {
    guard let algorithm, base64.utf8.count == algorithm.length, base64.utf8.allSatisfy(isBase64) else { return nil }
    (self.algorithm, self.base64) = (algorithm, base64)
  }
}

extension ResponseHead {
  /// The digests of the whole representation that the fields state, at most one by each algorithm. Two that contradict
  /// each other state nothing. An ETag is never taken for one. Pure.
  ///
  /// For a response without Content-Encoding, because fields differ in whether they are of what is encoded.
  func statedDigests(isWhole: Bool) -> [StatedDigest] {
    // Of the representation, whatever part of it the body is (RFC 9530, 3; RFC 3230, 4.3.2).
    var found = byteSequences("repr-digest") + list("digest", Self.instanceDigests)
    if !isDecodedByStore { found += list("x-goog-hash", Self.storeDigests) }
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

  private static let storeDigests: [String: StatedDigest.Algorithm] = ["md5": .md5, "crc32c": .crc32c]

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

  private static let amazonFields = StatedDigest.Algorithm.allCases.map { ("x-amz-checksum-\($0.rawValue)", $0) }

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

  /// What is between the colons of the members of a Dictionary of Byte Sequences (RFC 8941, 3.2 and 3.3.5). Of several
  /// members with one key the last one counts. One that is malformed, or of another type, states nothing, as a whole
  /// (RFC 8941, 4.2).
  private func byteSequences(_ name: String) -> [StatedDigest] {
    var values: [String: String] = [:]
    for member in members(name) {
      guard let (key, value) = Self.byteSequence(member) else { return [] }
      values[key] = value
    }
    return values.compactMap { StatedDigest(Self.instanceDigests[$0], $1) }
  }

  /// `KEY=:BASE64:`, perhaps with parameters, which have no meaning here. A comma in a string among them has ended the
  /// member too early.
  private static func byteSequence(_ member: String) -> (key: String, value: String)? {
    let parts = member.utf8.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].last == UInt8(ascii: "=") else { return nil }
    let (key, value, parameters) = (parts[0].dropLast(), parts[1], parts[2])
    guard let first = key.first, isLowerCase(first) || first == UInt8(ascii: "*"),
      key.allSatisfy({ isLowerCase($0) || isDigit($0) || "_-.*".utf8.contains($0) }), value.allSatisfy(isBase64),
      parameters.isEmpty || parameters.first == UInt8(ascii: ";") && !parameters.contains(UInt8(ascii: "\""))
    else { return nil }
    return (String(decoding: key, as: UTF8.self), String(decoding: value, as: UTF8.self))
  }
}

private func skipBlanks(_ rest: inout ArraySlice<UInt8>) { rest = rest.drop(while: isBlank) }

private func isBase64(_ byte: UInt8) -> Bool {
  isDigit(byte) || isLowerCase(lowercasedASCII(byte)) || "+/=".utf8.contains(byte)
}
