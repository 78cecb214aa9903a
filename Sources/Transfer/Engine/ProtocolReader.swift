internal import CCurl

/// How one protocol answers the request of one hop. Decides on what libcurl delivers; `Exchange` performs it.
protocol ProtocolReader {
  /// A line of the head, or of an FTP server's replies.
  mutating func take(line: UnsafeRawBufferPointer) -> ProtocolEvent
  /// The first bytes of the body are here, and there was no response before.
  func beginBody(of handle: EasyHandle) -> ProtocolEvent
  /// The response where libcurl ended the hop without one; nil if `code` is a failure (libcurl-errors(3)).
  func response(at code: CURLcode, of handle: EasyHandle) -> Response?
  /// libcurl makes another request of this hop. Returns whether it thereby answers a server that asked for a login.
  mutating func beginsAgain() -> Bool
  /// How the end of an HTTP body is found; nil in other protocols, and before the head.
  var framing: ResponseHead.Framing? { get }
}

enum ProtocolEvent {
  case nothing
  case response(Response)
  /// The value of Location, and whether the response sets cookies.
  case redirect(to: String, setsCookies: Bool)
  /// The same once more, with the login in another manner.
  case again(LoginManner)
  case failed(TransferFailure)
}

/// The reader that answers for a URL.
/// - Parameter login: how the hop presents a login; nil without one.
/// - Parameter netrc: the file that may have it; nil if the URL does.
func reader(
  for url: URLParts, request: FetchRequest, proxy: Proxy?, login: LoginManner?, netrc: String? = nil
) -> any ProtocolReader {
  url.scheme.isHTTP
    ? HTTPReader(url: url, proxy: proxy, login: login, netrc: netrc, isDecoding: request.decodes)
    : FileReader(url: url, offset: request.rangeStart ?? 0)
}

/// HTTP: the head makes the response.
private struct HTTPReader: ProtocolReader {
  let url: URLParts
  let proxy: Proxy?
  let login: LoginManner?
  let netrc: String?
  let isDecoding: Bool
  var reader = HeadReader()
  var framing: ResponseHead.Framing?
  /// A 401 that libcurl may answer with the login. If it does not, this is the response.
  var challenge: Response?
  var challenges = 0
  /// A server that calls every answer stale (RFC 7616, 3.3) would ask for ever.
  private static let mostChallenges = 4

  mutating func beginsAgain() -> Bool {
    guard challenge != nil else { return false }
    (challenge, reader, framing) = (nil, HeadReader(), nil)
    return true
  }

  mutating func take(line: UnsafeRawBufferPointer) -> ProtocolEvent {
    switch reader.take(line) {
    case .nothing: return .nothing
    case .malformed(let reason): return badResponse(reason)
    case .head(let head): return receive(head)
    }
  }

  private mutating func receive(_ head: ResponseHead) -> ProtocolEvent {
    let isRedirect = [301, 302, 303, 307, 308].contains(head.status)
    if isRedirect, let target = head.first("location"), !target.isEmpty {
      return .redirect(to: target, setsCookies: head.first("set-cookie") != nil)
    }
    // Over TLS the answer comes from the server behind the tunnel, not from the proxy.
    if head.status == 407, url.scheme.channel == .plain, let proxy, proxy.isHTTP {
      return .failed(proxy.refusal(head.status))
    }
    let framing = head.framing
    if case .invalid(let reason) = framing { return badResponse(reason) }
    // What libcurl has answered needs no other manner: after Digest, Basic would show the password.
    let other = challenges == 0 ? login?.other(after: head.status, naming: head.loginSchemes) : nil
    if let other, netrc.map({ mayHaveLogin(for: url.host, netrc: $0) }) ?? true { return .again(other) }
    self.framing = framing
    var response = Response(head, from: url, now: unixSeconds())
    if isDecoding, response.coding != nil {
      (response.isDecoded, response.bodyLength) = (true, nil)
      // It is that of the bytes before they are decoded: libcurl compares it.
      if case .length = framing { self.framing = nil }
    }
    if head.status == 401, login == .whenAsked, challenges < Self.mostChallenges {
      challenges += 1
      challenge = response
      return .nothing
    }
    return .response(response)
  }

  func beginBody(of handle: EasyHandle) -> ProtocolEvent {
    challenge.map { .response($0) } ?? badResponse("body without a head")
  }

  /// If the hop fails, it may be on the way to the answer.
  func response(at code: CURLcode, of handle: EasyHandle) -> Response? { code == CURLE_OK ? challenge : nil }

  private func badResponse(_ reason: String) -> ProtocolEvent {
    .failed(TransferFailure(code: .badResponse, message: "\(reason) from \(url.host)"))
  }
}

/// FTP and SFTP: there is no head. The first byte of the body shows that the file is being sent, and libcurl knows its
/// size.
private struct FileReader: ProtocolReader {
  let url: URLParts
  /// The first byte asked for.
  let offset: UInt64
  let framing: ResponseHead.Framing? = nil
  /// The login was refused because too many are logged in.
  var isBusy = false

  /// FTP says so by 421 (RFC 959, 4.2), or by the reply to a wrong login, of which then only the text tells.
  mutating func take(line: UnsafeRawBufferPointer) -> ProtocolEvent {
    let text = lowercasedASCII(String(decoding: line, as: UTF8.self)).utf8
    let isRefusal = text.starts(with: "530".utf8)
    isBusy =
      isBusy || text.starts(with: "421".utf8)
      || isRefusal && ["too many", "maximum", "exceeded", "limit", "later"].contains { text.contains($0.utf8) }
    return .nothing
  }

  func beginsAgain() -> Bool { false }

  func beginBody(of handle: EasyHandle) -> ProtocolEvent { .response(body(of: handle)) }

  private func body(of handle: EasyHandle) -> Response {
    let length = handle.contentLength
    var response = Response(url: url, content: content(length: length))
    response.bodyLength = length
    response.ending = length == nil ? .reply : .announced
    return response
  }

  /// - Parameter length: bytes that libcurl expects, from ``offset`` on; nil if the server has no SIZE (RFC 3659, 4).
  private func content(length: UInt64?) -> Response.Content {
    guard offset > 0 else { return .whole }
    guard let length, length > 0 else { return .unknownRange("the size of the file is not known") }
    let end = offset + length
    return .range(first: offset, last: end - 1, total: end)
  }

  func response(at code: CURLcode, of handle: EasyHandle) -> Response? {
    let content: Response.Content
    switch code {
    case CURLE_OK:
      guard offset > 0 else { return body(of: handle) }
      // libcurl asks for nothing if the offset is the file's size.
      content = .nothingThere(size: offset)
    // The file is shorter, or the server cannot start at an offset.
    case CURLE_BAD_DOWNLOAD_RESUME, CURLE_FTP_COULDNT_USE_REST: content = .nothingThere(size: nil)
    // libcurl takes 421 for a time that is over.
    case CURLE_OPERATION_TIMEDOUT where isBusy: content = .refused(.unavailable)
    case CURLE_LOGIN_DENIED: content = .refused(isBusy ? .unavailable : .login)
    case CURLE_REMOTE_ACCESS_DENIED: content = .refused(.access)
    case CURLE_REMOTE_FILE_NOT_FOUND: content = .refused(.noSuchFile)
    case CURLE_FTP_COULDNT_RETR_FILE: content = .refused(.unavailable)
    default: return nil
    }
    return Response(url: url, content: content)
  }
}
