/// Status and fields of a final HTTP response; not of a 1xx.
package struct ResponseHead: Sendable {
  package let status: Int
  /// In the order received; names in lower case, values without the blanks around them. Bytes that are no UTF-8 are
  /// U+FFFD; in Location they are percent-encoded.
  package let fields: [(name: String, value: String)]

  package private(set) var framing = Framing.none
  /// The lengths of the names, as bits: a head is searched for some twenty names, most of which are not in it.
  private let lengths: UInt64

  package init(status: Int, fields: [(name: String, value: String)]) {
    (self.status, self.fields) = (status, fields)
    lengths = fields.reduce(0) { $0 | Self.bit($1.name) }
    framing = readFraming()
  }

  /// All values of the field `name` (in lower case), one for each occurrence.
  package func values(_ name: String) -> [String] {
    if lengths & Self.bit(name) == 0 { return [] }
    return fields.compactMap { Self.isSame($0.name, name) ? $0.value : nil }
  }

  package func first(_ name: String) -> String? {
    lengths & Self.bit(name) == 0 ? nil : fields.first { Self.isSame($0.name, name) }?.value
  }

  private static func bit(_ name: String) -> UInt64 { 1 << UInt64(name.utf8.count % 64) }

  /// - Parameter other: ASCII. A text that Swift takes for equal to it has the same bytes if it has as many.
  private static func isSame(_ one: String, _ other: String) -> Bool {
    one.utf8.count == other.utf8.count && one == other
  }

  /// The members of the list that all fields `name` (in lower case) form, without the blanks around them, empty members
  /// included (RFC 9110, 5.6.1).
  func members(_ name: String) -> [String] {
    values(name).flatMap { value in
      // Splitting takes longer than all else.
      if !value.utf8.contains(UInt8(ascii: ",")) { return [value] }
      return value.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        .map { String(decoding: trimmed($0), as: UTF8.self) }
    }
  }

  /// Content-Type without its parameters, in lower case; nil if there is none, or several, or one longer than 127
  /// bytes.
  var mediaType: String? {
    let types = values("content-type")
    guard types.count == 1 else { return nil }
    let type = trimmed(types[0].utf8.prefix { $0 != UInt8(ascii: ";") })
    guard 1...127 ~= type.count, type.allSatisfy({ 0x21...0x7E ~= $0 }) else { return nil }
    return String(decoding: type.map(lowercasedASCII), as: UTF8.self)
  }

  /// How the end of the body is found (RFC 9112, 6.3), for a GET.
  package enum Framing: Sendable, Equatable {
    case none
    case length(UInt64)
    /// A transfer coding, whose last chunk is the end.
    case chunked
    /// The connection is closed at the end; a body that was cut may look the same.
    case close
    /// The reason why the end cannot be found.
    case invalid(String)
  }

  private func readFraming() -> Framing {
    if status == 204 || status == 304 { return .none }
    // `identity` is none (RFC 2616, 3.6). `chunked` is applied once (RFC 9112, 6.1), however often a proxy says so.
    let codings = Set(members("transfer-encoding").map { lowercasedASCII($0) }).subtracting(["", "identity"])
    if !codings.isEmpty {
      return codings == ["chunked"] ? .chunked : .invalid("a transfer coding that was not requested")
    }
    // A list of equal members is one value (RFC 9112, 6.3, 5.). Checked here, as libcurl takes the last member, and
    // ignores a length that is too large for it.
    let lengths = members("content-length")
    guard let text = lengths.first else { return .close }
    guard lengths.allSatisfy({ $0.utf8.elementsEqual(text.utf8) }) else {
      return .invalid("contradictory Content-Length fields")
    }
    guard let length = decimal(text.utf8), length <= UInt64(Int64.max) else {
      return .invalid("Content-Length is not a valid number")
    }
    return .length(length)
  }
}

/// Puts the head of the final HTTP response together from the lines that libcurl delivers. Pure.
package struct HeadReader {
  package enum Event {
    case nothing
    case head(ResponseHead)
    /// The reason why this cannot be the head of an HTTP response, or not one for us.
    case malformed(String)
  }

  /// For all lines of one request together: interim responses, the head, trailers.
  static let limit = 256 * 1024

  private var size = 0
  private var status: Int?
  private var fields: [(name: String, value: String)] = []
  private var isComplete = false
  private var folds = 0
  /// Servers do not fold at all any more; 256 KiB of folds would keep the loop busy for a minute.
  private static let mostFolds = 100

  package init() {}

  package mutating func take(_ line: UnsafeRawBufferPointer) -> Event {
    size += line.count
    guard size <= Self.limit else { return .malformed("more than 256 KiB of header fields") }
    guard !isComplete else { return .nothing }  // a trailer field

    var length = line.count
    if length > 0, line[length - 1] == UInt8(ascii: "\n") { length -= 1 }
    if length > 0, line[length - 1] == UInt8(ascii: "\r") { length -= 1 }
    let bytes = UnsafeRawBufferPointer(rebasing: line[..<length])

    if bytes.starts(with: "HTTP/".utf8) {
      guard let code = Self.status(of: bytes) else { return .malformed("no status in the status line") }
      // Other 1xx are interim; no request asks for another protocol (RFC 9110, 15.2.2).
      guard code != 101 else { return .malformed("switch of protocols that was not requested") }
      (status, fields) = (code, [])
      fields.reserveCapacity(16)
      return .nothing
    }
    guard let status else { return .malformed("no status line") }
    if bytes.isEmpty {
      guard status >= 200 else {
        self.status = nil
        return .nothing
      }
      isComplete = true
      return .head(ResponseHead(status: status, fields: fields))
    }
    addField(bytes)
    return folds > Self.mostFolds ? .malformed("more than \(Self.mostFolds) folded lines of header fields") : .nothing
  }

  private mutating func addField(_ line: UnsafeRawBufferPointer) {
    if line.first.map(isBlank) == true {  // obsolete folding (RFC 9112, 5.2)
      guard let last = fields.indices.last else { return }
      // Trimmed again, as either part may be empty. This reads the whole value each time, hence the limit.
      folds += 1
      fields[last].value = trimmed(fields[last].value + " " + trimmed(String(decoding: line, as: UTF8.self)))
      return
    }
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return }
    let name = String(unsafeUninitializedCapacity: colon) { name in
      for index in 0..<colon { name.initializeElement(at: index, to: lowercasedASCII(line[index])) }
      return colon
    }
    let value = UnsafeRawBufferPointer(rebasing: trimmed(line[(colon + 1)...]))
    fields.append((name, name == "location" ? percentEncoded(value) : String(decoding: value, as: UTF8.self)))
  }

  /// `HTTP/1.1 206 Partial Content`
  private static func status(of line: UnsafeRawBufferPointer) -> Int? {
    let words = line.split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
    guard words.count >= 2, words[1].count == 3, let code = decimal(words[1]), code >= 100 else { return nil }
    return Int(code)
  }
}

/// How a login is presented to an HTTP server (RFC 9110, 11).
enum LoginManner {
  /// With the request, by Basic (RFC 7617).
  case atOnce
  /// Only after the server has asked, by the best scheme that it names: Digest (RFC 7616), which does not show the
  /// password, or Basic. libcurl answers the server by itself, within the hop.
  case whenAsked

  /// Over TLS nobody else reads it, and some servers answer 404, or lead to a page, where there is no login.
  init(for scheme: Scheme) { self = scheme.channel == .tls ? .atOnce : .whenAsked }

  /// The other way, if a refusal shows that this one does not fit; nil otherwise.
  func other(after status: Int, naming schemes: [String]) -> LoginManner? {
    switch self {
    case .atOnce: status == 401 && schemes.contains { lowercasedASCII($0) == "digest" } ? .whenAsked : nil
    case .whenAsked: [401, 403, 404].contains(status) && schemes.isEmpty ? .atOnce : nil
    }
  }

  /// CURLOPT_HTTPAUTH(3), whose values are macros with casts: CURLAUTH_BASIC is 1, CURLAUTH_DIGEST is 2.
  var schemes: Int {
    switch self {
    case .atOnce: 1
    case .whenAsked: 1 | 2
    }
  }
}

extension ResponseHead {
  /// The schemes by which the server takes a login (WWW-Authenticate; RFC 9110, 11.6.1), at most five. Pure.
  var loginSchemes: [String] {
    var schemes: [String] = []
    for member in values("www-authenticate").flatMap(Self.splitOutsideQuotes) {
      let text = trimmed(member)
      let name = text.prefix(while: isTokenByte)
      // `realm="x"` continues the challenge before it.
      let rest = text[name.endIndex...]
      guard 1...20 ~= name.count, rest.isEmpty || isBlank(rest[rest.startIndex]), trimmed(rest).first != 0x3D else {
        continue
      }
      let scheme = String(decoding: name, as: UTF8.self)
      if !schemes.contains(scheme), schemes.count < 5 { schemes.append(scheme) }
    }
    return schemes
  }

  private static func splitOutsideQuotes(_ value: String) -> [ArraySlice<UInt8>] {
    var (isQuoted, isEscaped) = (false, false)
    return Array(value.utf8).split { byte in
      if isEscaped {
        isEscaped = false
      } else if byte == UInt8(ascii: "\"") {
        isQuoted.toggle()
      } else if byte == UInt8(ascii: "\\") {
        isEscaped = isQuoted
      }
      return byte == UInt8(ascii: ",") && !isQuoted
    }
  }
}
