internal import CCurl

/// HTTP: the head makes the response.
struct HTTPBackend: Backend {
  private let url: URLParts
  private let proxy: Proxy?
  private var reader = HeadReader()
  private(set) var framing: ResponseHead.Framing?

  init(url: URLParts, proxy: Proxy?) {
    self.url = url
    self.proxy = proxy
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
    if isRedirect, let target = head.first("location"), !target.isEmpty { return .redirect(to: target) }
    // Over TLS the answer comes from the server behind the tunnel, not from the proxy.
    if head.status == 407, url.scheme.channel == .plain, let proxy, proxy.isHTTP {
      return .failed(proxy.refusal(head.status))
    }
    let framing = head.framing
    if case .invalid(let reason) = framing { return badResponse(reason) }
    self.framing = framing
    return .response(Response(head, from: url, now: unixSeconds()))
  }

  func beginBody(of handle: EasyHandle) -> BackendEvent { badResponse("body without a head") }

  func response(at code: CURLcode, of handle: EasyHandle) -> Response? { nil }

  private func badResponse(_ reason: String) -> BackendEvent {
    .failed(TransferFailure(code: .badResponse, message: "\(reason) from \(url.host)"))
  }
}
