internal import CCurl
internal import Glibc

/// Why a text is no URL that can be fetched. Never quotes the text, which may hold secrets.
package struct URLProblem: Error, Equatable, Sendable {
  package let reason: String
}

/// A URL taken apart by libcurl's own parser (libcurl-url(3)), so that what is checked is what is fetched.
/// Needs no engine.
package struct URLParts: Sendable {
  package let scheme: Scheme
  /// ASCII in lower case; IPv6 addresses in brackets.
  package let host: String
  /// The scheme's default if the URL names none.
  package let port: UInt16
  /// `scheme://host[:port]/path`: what may be shown. No user information, query or fragment; ASCII without
  /// control bytes.
  package let redacted: String
  /// What the last segment of the path says with its percent escapes decoded; nil where that cannot be a file name:
  /// empty, `.`, `..`, a slash, a control character, or no UTF-8.
  package let lastPathSegment: String?

  /// The URL for libcurl, without user information and fragment. Holds the query: not for showing.
  let requestText: String
  let user: String?
  let password: String?

  /// - Parameter text: an absolute URL; characters beyond ASCII get percent-encoded.
  package init(_ text: String) throws(URLProblem) {
    try self.init(text, relativeTo: nil)
  }

  /// What follows the question mark; nil where there is none. May hold secrets.
  package var query: String? {
    requestText.firstIndex(of: "?").map { String(requestText[requestText.index(after: $0)...]) }
  }

  /// Same scheme, host and port (RFC 6454, 4).
  package func hasSameOrigin(as other: URLParts) -> Bool {
    scheme == other.scheme && host == other.host && port == other.port
  }

  /// The target of a redirect (RFC 9110, 10.2.2). User information in it is dropped: a server does not choose
  /// credentials.
  package func resolving(_ location: String) throws(URLProblem) -> URLParts {
    try URLParts(location, relativeTo: requestText)
  }

  private init(_ text: String, relativeTo base: String?) throws(URLProblem) {
    do throws(TransferError) { try Libcurl.load() } catch { throw URLProblem(reason: error.description) }
    guard let handle = curl_url() else { throw URLProblem(reason: "out of memory") }
    defer { curl_url_cleanup(handle) }
    var flags = UInt32(CURLU_URLENCODE | CURLU_NON_SUPPORT_SCHEME)

    if let base {
      flags |= UInt32(CURLU_ALLOW_SPACE)  // servers do send it in Location; it becomes %20
      try Self.set(handle, CURLUPART_URL, base, flags)
    } else {
      try Self.checkForm(text)
    }
    guard !text.utf8.contains(0) else { throw URLProblem(reason: "control character in the URL") }
    try Self.set(handle, CURLUPART_URL, text, flags)

    scheme = try Self.scheme(try Self.required(handle, CURLUPART_SCHEME).utf8)
    user = try Self.part(handle, CURLUPART_USER, UInt32(CURLU_URLDECODE))
    password = try Self.part(handle, CURLUPART_PASSWORD, UInt32(CURLU_URLDECODE))
    for secret in [CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS, CURLUPART_FRAGMENT] {
      guard curl_url_set(handle, secret, nil, 0) == CURLUE_OK else {
        throw URLProblem(reason: "out of memory")
      }
    }
    // Read again, as the engine will: libcurl decodes `%30` to `0`, but sees 0.0.0.0 in it only the next time.
    try Self.set(handle, CURLUPART_URL, try Self.required(handle, CURLUPART_URL), flags)
    requestText = try Self.required(handle, CURLUPART_URL)

    host = try Self.host(handle)
    let portText = try Self.required(handle, CURLUPART_PORT, UInt32(CURLU_DEFAULT_PORT))
    guard let port = UInt16(portText), port > 0 else {
      throw URLProblem(reason: "port is not between 1 and 65535")
    }
    self.port = port

    let path = try Self.part(handle, CURLUPART_PATH) ?? "/"
    let shownPort = try Self.part(handle, CURLUPART_PORT, UInt32(CURLU_NO_DEFAULT_PORT))
    redacted = "\(scheme)://\(host)\(shownPort.map { ":" + $0 } ?? "")\(path)"
    guard redacted.utf8.allSatisfy({ 0x21...0x7e ~= $0 }) else {
      throw URLProblem(reason: "control character in the URL")
    }
    lastPathSegment = Self.fileName(inPath: path)

    if scheme.listsDirectories {
      // A directory comes as a listing, and a path with type=a or type=d as text.
      let lower = String(decoding: path.utf8.map(lowercasedASCII), as: UTF8.self)
      guard !path.hasSuffix("/"), !lower.hasSuffix(";type=a"), !lower.hasSuffix(";type=d") else {
        throw URLProblem(reason: "path names no file")
      }
    }
  }

  private static let unknownScheme = URLProblem(
    reason: "scheme is none of \(Scheme.allCases.map(\.rawValue).joined(separator: ", "))")

  private static func scheme(_ bytes: some Collection<UInt8>) throws(URLProblem) -> Scheme {
    guard let scheme = Scheme(rawValue: String(decoding: bytes.map(lowercasedASCII), as: UTF8.self)) else {
      throw unknownScheme
    }
    return scheme
  }

  /// libcurl forgives `http:/host`, `http:///host` and a missing scheme; a job has no use for guesses.
  private static func checkForm(_ text: String) throws(URLProblem) {
    for byte in text.utf8 where byte <= 0x20 || byte == 0x7f {
      throw URLProblem(
        reason: byte == 0x20 ? "blank in the URL: write %20" : "control character in the URL")
    }
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")),
      text.utf8[colon...].starts(with: "://".utf8)
    else { throw URLProblem(reason: "no scheme: a URL begins with http:// or https://") }
    _ = try scheme(text.utf8[..<colon])
    let authority = text.utf8[colon...].dropFirst(3)
    guard let first = authority.first, !"/?#".utf8.contains(first) else {
      throw URLProblem(reason: "no host in the URL")
    }
  }

  private static func host(_ handle: OpaquePointer) throws(URLProblem) -> String {
    let bytes = try required(handle, CURLUPART_HOST).utf8.map(lowercasedASCII)
    // libcurl converts names by the locale of the process, which here is the one of C, and fails.
    guard bytes.allSatisfy({ $0 < 0x80 }) else {
      throw URLProblem(reason: "host name is not ASCII: write it in its xn-- form")
    }
    guard !bytes.isEmpty, bytes.allSatisfy({ 0x21...0x7e ~= $0 }) else {
      throw URLProblem(reason: "host name is not valid")
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func fileName(inPath path: String) -> String? {
    let segment = path.utf8.split(
      separator: UInt8(ascii: "/"), omittingEmptySubsequences: false
    ).last
    guard let segment, let name = String(validating: percentDecoded(segment), as: UTF8.self),
      !name.isEmpty, name != ".", name != "..", !name.utf8.contains(UInt8(ascii: "/")),
      !name.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
    else { return nil }
    return name
  }

  private static func percentDecoded(_ text: some Collection<UInt8>) -> [UInt8] {
    var result: [UInt8] = []
    var rest = text[...]
    while let byte = rest.popFirst() {
      let digits = rest.prefix(2)
      if byte == UInt8(ascii: "%"), digits.count == 2, digits.allSatisfy(isHexDigit),
        let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
      {
        result.append(value)
        rest = rest.dropFirst(2)
      } else {
        result.append(byte)
      }
    }
    return result
  }

  private static func isHexDigit(_ byte: UInt8) -> Bool {
    UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
      || UInt8(ascii: "a")...UInt8(ascii: "f") ~= lowercasedASCII(byte)
  }
}

/// Printing the parts must not print the secrets in them.
extension URLParts: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { redacted }
  package var debugDescription: String { redacted }
  package var customMirror: Mirror { Mirror(self, children: ["redacted": redacted]) }
}

// MARK: libcurl's URL handle

extension URLParts {
  private static func set(
    _ handle: OpaquePointer, _ part: CURLUPart, _ value: String, _ flags: UInt32
  ) throws(URLProblem) {
    let code = curl_url_set(handle, part, value, flags)
    guard code == CURLUE_OK else { throw URLProblem(reason: reason(code)) }
  }

  /// Nil if the URL has no such part.
  private static func part(
    _ handle: OpaquePointer, _ part: CURLUPart, _ flags: UInt32 = 0
  ) throws(URLProblem) -> String? {
    var text: UnsafeMutablePointer<CChar>?
    let code = ccurl_url_get(handle, part, &text, flags)
    defer { curl_free(text) }
    switch code {
    case CURLUE_OK:
      guard let text else { return nil }
      if let valid = String(validatingCString: text) { return valid }
      // Another password than the one meant would be refused, and nobody could see why.
      if part == CURLUPART_USER || part == CURLUPART_PASSWORD {
        throw URLProblem(reason: "user name or password is no UTF-8")
      }
      return String(cString: text)
    case CURLUE_NO_SCHEME, CURLUE_NO_USER, CURLUE_NO_PASSWORD, CURLUE_NO_OPTIONS, CURLUE_NO_HOST,
      CURLUE_NO_PORT, CURLUE_NO_QUERY, CURLUE_NO_FRAGMENT:
      return nil
    default: throw URLProblem(reason: reason(code))
    }
  }

  private static func required(
    _ handle: OpaquePointer, _ part: CURLUPart, _ flags: UInt32 = 0
  ) throws(URLProblem) -> String {
    guard let text = try Self.part(handle, part, flags) else {
      throw URLProblem(reason: "incomplete URL")
    }
    return text
  }

  private static func reason(_ code: CURLUcode) -> String {
    switch code {
    case CURLUE_BAD_PORT_NUMBER: "port is not between 1 and 65535"
    case CURLUE_BAD_HOSTNAME, CURLUE_LACKS_IDN: "host name is not valid"
    case CURLUE_BAD_IPV6: "IPv6 address is not valid"
    case CURLUE_NO_HOST: "no host in the URL"
    default: "malformed URL: \(String(cString: curl_url_strerror(code)))"
    }
  }
}
