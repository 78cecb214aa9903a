internal import CCurl
internal import Glibc

/// A URL taken apart by libcurl's own parser (libcurl-url(3)), so that what is checked is what is fetched.
/// Needs no engine.
package struct URLParts: Sendable {
  package let scheme: Scheme
  /// ASCII in lower case; IPv6 addresses in brackets.
  package let host: String
  /// The scheme's default if the URL names none.
  package let port: UInt16
  /// `scheme://host[:port]`, and with it the path unless that is secret too: what may be shown. No user information,
  /// query or fragment; ASCII without control bytes.
  package var redacted: String { isPathSecret ? origin : place }
  /// `scheme://host[:port]/path`: the resource, to compare with others. Must not be shown: see ``redacted``.
  package let place: String
  /// The path may contain secrets, as in links that a server made for one person.
  package let isPathSecret: Bool
  private let origin: String
  /// The last segment of the path with its percent escapes decoded; an encoded slash ends a segment, too. It stays
  /// encoded if it is not UTF-8. nil if it cannot be a file name: empty, `.`, `..`, or with a control character.
  package let lastPathSegment: String?

  var root: String { origin + "/" }
  package let server: String
  /// The URL for libcurl, without user information and fragment. Contains the query, so it must not be shown.
  package let requestText: String
  let user: String?
  let password: String?
  package var hasLogin: Bool { (user ?? password) != nil }

  /// The text after the question mark; nil if there is none. May contain secrets.
  package var query: String? {
    var text = requestText
    let mark = text.withUTF8 { $0.firstIndex(of: UInt8(ascii: "?")) }
    return mark.flatMap { String(requestText.utf8.dropFirst($0 + 1)) }
  }

  /// Same scheme, host and port (RFC 6454, 4).
  package func hasSameOrigin(as other: URLParts) -> Bool {
    scheme == other.scheme && host == other.host && port == other.port
  }

  /// The target of a redirect (RFC 9110, 10.2.2), or of a reference in this resource (RFC 3986 section 5). User
  /// information in it is dropped: a server does not choose credentials.
  package func resolving(_ location: String) throws(URLProblem) -> URLParts {
    try URLParts(location, relativeTo: requestText, isPathSecret: isPathSecret)
  }

  /// - Parameter text: characters beyond ASCII get percent-encoded.
  /// - Parameter base: the ``requestText`` that it is relative to; nil for an absolute URL.
  /// - Parameter isPathSecret: whether nothing but the origin may be shown, neither of this URL nor of those that
  ///   redirects lead to.
  package init(_ text: String, relativeTo base: String? = nil, isPathSecret: Bool = false) throws(URLProblem) {
    self.isPathSecret = isPathSecret
    let handle = try URLHandle()
    if let base {
      guard !text.utf8.contains(0) else { throw URLProblem(reason: "control character in the URL") }
      try handle.set(CURLUPART_URL, base, allowingSpace: true)
    } else {
      try Self.checkForm(text)
    }
    // Servers do send blanks in Location; they become %20.
    try handle.set(CURLUPART_URL, text, allowingSpace: base != nil)

    let writtenScheme = try handle.required(CURLUPART_SCHEME)
    scheme = try Self.scheme(writtenScheme.utf8)
    var components = try Components(handle, writtenScheme)
    if components.host.utf8.contains(where: { $0 >= 0x80 }) {
      // One form everywhere: for limits, logins and cookies, and to the server.
      try handle.set(CURLUPART_HOST, Self.asciiHost(components.host))
      components = try Components(handle, writtenScheme)
    }
    (user, password) = try Self.takeLogin(from: handle, text)
    // libcurl's text is ASCII, so what Swift takes for equal to it has the same bytes if it has as many.
    if base == nil, components.text.utf8.count == text.utf8.count, components.text == text {
      requestText = text
    } else {
      // libcurl reads its own text again, as the engine will: it sees 0.0.0.0 in a decoded `%30` only the next time.
      try handle.set(CURLUPART_URL, handle.required(CURLUPART_URL), allowingSpace: base != nil)
      requestText = try handle.required(CURLUPART_URL)
      components = try Components(handle, writtenScheme)
    }

    host = try Self.host(components.host)
    guard let port = UInt16(components.port), port > 0 else {
      throw URLProblem(reason: "port is not between 1 and 65535")
    }
    self.port = port
    let start = scheme.rawValue + "://" + host
    server = "\(start):\(port)"

    lastPathSegment = Self.fileName(inPath: components.path)
    let shownPort = try handle.part(CURLUPART_PORT, CURLU_NO_DEFAULT_PORT)
    origin = shownPort.map { start + ":" + $0 } ?? start
    place = origin + components.path
    guard place.utf8.allSatisfy({ 0x21...0x7e ~= $0 }) else { throw URLProblem(reason: "control character in the URL") }
    if !scheme.isHTTP { try Self.checkNamesFile(components.path) }
  }

  /// Removes user information and fragment from a URL that was read.
  private static func takeLogin(from handle: borrowing URLHandle, _ text: String) throws(URLProblem) -> (
    user: String?, password: String?
  ) {
    // Nothing else begins user information or a fragment; the base of a redirect has neither.
    guard text.utf8.contains(where: { $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "#") }) else { return (nil, nil) }
    let user = try handle.part(CURLUPART_USER, CURLU_URLDECODE)
    let password = try handle.part(CURLUPART_PASSWORD, CURLU_URLDECODE)
    for secret in [CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS, CURLUPART_FRAGMENT] {
      try handle.remove(secret)
    }
    return (user, password)
  }

  /// What libcurl has read behind the scheme, but for user information and fragment.
  private struct Components {
    let host: String
    /// The scheme's default if the URL names none.
    let port: String
    let path: String
    /// The URL that names these. libcurl's own text of it is put together byte by byte.
    let text: String

    init(_ handle: borrowing URLHandle, _ scheme: String) throws(URLProblem) {
      host = try handle.required(CURLUPART_HOST)
      port = try handle.required(CURLUPART_PORT, CURLU_DEFAULT_PORT)
      path = try handle.part(CURLUPART_PATH) ?? "/"
      let named = try handle.part(CURLUPART_PORT)
      let query = try handle.part(CURLUPART_QUERY)
      text = "\(scheme)://\(host)\(named.map { ":" + $0 } ?? "")\(path)\(query.map { "?" + $0 } ?? "")"
    }
  }

  private static func scheme(_ bytes: some Collection<UInt8>) throws(URLProblem) -> Scheme {
    guard let scheme = Scheme(rawValue: String(decoding: bytes.map(lowercasedASCII), as: UTF8.self)) else {
      throw URLProblem(reason: "the scheme is not one of \(Scheme.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return scheme
  }

  /// By FTP and SFTP a directory comes as a listing, and a path with type=a or type=d as text.
  private static func checkNamesFile(_ path: String) throws(URLProblem) {
    let end = path.utf8.suffix(7).map(lowercasedASCII)
    guard end.last != UInt8(ascii: "/"), end != Array(";type=a".utf8), end != Array(";type=d".utf8) else {
      throw URLProblem(reason: "the path does not name a file")
    }
  }

  /// libcurl accepts `http:/host`, `http:///host` and a missing scheme, and guesses the rest; a job must have the
  /// complete URL.
  private static func checkForm(_ text: String) throws(URLProblem) {
    for byte in text.utf8 where byte <= 0x20 || byte == 0x7f {
      throw URLProblem(reason: byte == 0x20 ? "blank in the URL: write %20" : "control character in the URL")
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

  private static func host(_ text: String) throws(URLProblem) -> String {
    let bytes = text.utf8.map(lowercasedASCII)
    guard !bytes.isEmpty, bytes.allSatisfy({ 0x21...0x7e ~= $0 }) else {
      throw URLProblem(reason: "host name is not valid")
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The form of a host name beyond ASCII that DNS has (RFC 5890, 2.3.2.1).
  private static func asciiHost(_ host: String) throws(URLProblem) -> String {
    var ascii = [CChar](repeating: 0, count: 256)
    if let problem = ccurl_ascii_host(host, &ascii, ascii.count) {
      let why = printable(String(cString: problem))
      throw URLProblem(reason: "host name beyond ASCII, and its xn-- form, which is needed, cannot be found: \(why)")
    }
    let bytes = ascii.prefix { $0 != 0 }.map { lowercasedASCII(UInt8(bitPattern: $0)) }
    // Some characters become slashes and the like, which would end the host.
    guard bytes.allSatisfy({ isLowerCase($0) || isDigit($0) || "-._".utf8.contains($0) }) else {
      throw URLProblem(reason: "host name is not valid")
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func fileName(inPath path: String) -> String? {
    let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    let segment = path.utf8[(slash.map { path.utf8.index(after: $0) } ?? path.startIndex)...]
    if !segment.contains(UInt8(ascii: "%")), segment.allSatisfy({ 0x21...0x7E ~= $0 }) {
      return segment.isEmpty || [".", ".."].contains(Substring(segment)) ? nil : String(segment)
    }
    let decoded = percentDecoded(segment).bytes
    let last = decoded.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).last ?? []
    // The general category Cc is these two blocks, and does not change (Unicode 4.8).
    let name = percentEncoded(last)
    guard !name.isEmpty, name != ".", name != "..",
      !name.unicodeScalars.contains(where: { $0.value < 0x20 || 0x7F...0x9F ~= $0.value })
    else { return nil }
    return name
  }
}

/// Printing the parts must not print the secrets in them.
extension URLParts: CustomStringConvertible, CustomReflectable {
  package var description: String { redacted }
  package var customMirror: Mirror { Mirror(self, children: ["redacted": redacted]) }
}

/// The scheme of a URL that can be fetched: the one place that knows what each protocol has.
package enum Scheme: String, Sendable, CaseIterable, CustomStringConvertible {
  case http, https, ftp, ftps, sftp

  package var description: String { rawValue }

  /// HTTP (RFC 9110): the answer has a status and header fields. FTP and SFTP have no validators, conditions or
  /// redirects.
  var isHTTP: Bool { self == .http || self == .https }

  enum Channel { case plain, tls, ssh }
  var channel: Channel {
    switch self {
    case .http, .ftp: .plain
    case .https, .ftps: .tls
    case .sftp: .ssh
    }
  }

  /// Whether nobody in between can read what is sent.
  package var isEncrypted: Bool { channel != .plain }

  /// A request can name the last byte that it wants, so several connections can share one file. FTP and SFTP send from
  /// an offset to the end.
  package var hasBoundedRanges: Bool { isHTTP }

  /// The environment variables that name its proxy, by precedence (curl(1), ENVIRONMENT).
  var proxyVariables: [String] {
    // A CGI program gets the field `Proxy:` of any client in HTTP_PROXY.
    self == .http ? ["http_proxy"] : ["\(self)_proxy", "\(self)_proxy".uppercased()]
  }
}
