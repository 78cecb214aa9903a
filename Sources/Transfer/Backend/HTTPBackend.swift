internal import CCurl

/// HTTP: the head makes the response.
struct HTTPBackend: Backend {
  private let url: URLParts
  private let proxy: Proxy?
  private let login: LoginManner?
  /// libcurl decodes the body.
  private let isDecoding: Bool
  private var reader = HeadReader()
  private(set) var framing: ResponseHead.Framing?
  /// A 401 that libcurl may answer with the login. If it does not, this is the response.
  private var challenge: Response?
  private var challenges = 0
  /// A server that calls every answer stale (RFC 7616, 3.3) would ask for ever.
  private static let mostChallenges = 4

  init(url: URLParts, proxy: Proxy?, login: LoginManner?, isDecoding: Bool) {
    self.url = url
    self.proxy = proxy
    self.login = login
    self.isDecoding = isDecoding
  }

  mutating func beginsAgain() -> Bool {
    guard challenge != nil else { return false }
    (challenge, reader, framing) = (nil, HeadReader(), nil)
    return true
  }

  mutating func take(line: UnsafeRawBufferPointer, from handle: EasyHandle) -> BackendEvent {
    switch reader.take(line) {
    case .nothing: return .nothing
    case .malformed(let reason): return badResponse(reason)
    case .head(var head):
      head.isMultiplexed = handle.isMultiplexed
      return receive(head)
    }
  }

  private mutating func receive(_ head: ResponseHead) -> BackendEvent {
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
    if let other = login?.other(after: head.status, naming: head.loginSchemes) { return .again(other) }
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

  func beginBody(of handle: EasyHandle) -> BackendEvent {
    challenge.map { .response($0) } ?? badResponse("body without a head")
  }

  /// If the hop fails, it may be on the way to the answer.
  func response(at code: CURLcode, of handle: EasyHandle) -> Response? { code == CURLE_OK ? challenge : nil }

  private func badResponse(_ reason: String) -> BackendEvent {
    .failed(TransferFailure(code: .badResponse, message: "\(reason) from \(url.host)"))
  }
}
