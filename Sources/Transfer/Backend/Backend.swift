internal import CCurl

/// How one protocol answers the request of one hop. Decides on what libcurl delivers; `Exchange` performs it.
protocol Backend {
  /// A line of the head, or of an FTP server's replies.
  mutating func take(line: UnsafeRawBufferPointer, from handle: EasyHandle) -> BackendEvent
  /// The first bytes of the body are here, and there was no response before.
  func beginBody(of handle: EasyHandle) -> BackendEvent
  /// The response where libcurl ended the hop without one; nil if `code` is a failure (libcurl-errors(3)).
  func response(at code: CURLcode, of handle: EasyHandle) -> Response?
  /// libcurl makes another request of this hop. Returns whether it thereby answers a server that asked for a login.
  mutating func beginsAgain() -> Bool
  /// How the end of an HTTP body is found; nil in other protocols, and before the head.
  var framing: ResponseHead.Framing? { get }
}

enum BackendEvent {
  case nothing
  case response(Response)
  /// The value of Location, and whether the response sets cookies.
  case redirect(to: String, setsCookies: Bool)
  /// The same once more, with the login in another manner.
  case again(LoginManner)
  case failed(TransferFailure)
}
