internal import CCurl

/// How one protocol answers the request of one hop. Decides on what libcurl delivers; `Exchange` performs it.
protocol Backend {
  /// A line of the head, or of an FTP server's replies.
  mutating func take(line: UnsafeRawBufferPointer, from handle: EasyHandle) -> BackendEvent
  /// The first bytes of the body are here, and there was no response before.
  func beginBody(of handle: EasyHandle) -> BackendEvent
  /// The response where libcurl ended the hop without one; nil if `code` is a failure (libcurl-errors(3)).
  func response(at code: CURLcode, of handle: EasyHandle) -> Response?
  /// How the end of an HTTP body is found; nil in other protocols, and before the head.
  var framing: ResponseHead.Framing? { get }
}

enum BackendEvent {
  case nothing
  case response(Response)
  /// The value of Location.
  case redirect(to: String)
  case failed(TransferFailure)
}
