package struct FetchResult: Sendable {
  package enum End: Sendable {
    /// The message was complete by its own framing: `Content-Length` met, last chunk seen, or a clean close where
    /// the close is the end.
    case complete
    case refused
    case cancelled
    case failed(TransferFailure)
  }

  package var end: End
  /// What the sink was asked to accept; nil if no response came.
  package var response: Response?
  package var bytesReceived: UInt64 = 0
  /// The family of the address that answered last, or was to answer; nil without a connection.
  package var addressFamily: FetchRequest.AddressFamily?
  /// A redirect led to another server, which answered last, or was to answer.
  package var isOfOtherServer = false
  /// From the call of `fetch` to the end.
  package var seconds = 0.0
  /// In seconds: from the last request to the first line of its response, and from then to the end; nil if no response
  /// came.
  package var times: (wait: Double, body: Double)?
  /// For the next request over this connection; nil if no request was sent.
  package var pace: Pace?

  package static let unbegun = FetchResult(end: .cancelled)
}

/// Why a fetch failed. Holds no secrets and no control characters.
package struct TransferFailure: Error, Equatable, Sendable {
  package enum Code: String, Sendable {
    case resolve, connect, tls
    /// The proxy cannot be reached, or refuses to serve us, whatever the host.
    case proxy
    /// No data for the idle timeout, or less than the floor.
    case stalled
    case timeout
    /// The connection broke within the message.
    case cut
    /// The connection was closed in good order, but before `Content-Length` was met.
    case shortBody
    /// Too many redirects, or one that must not be followed.
    case redirect
    case protocolNotEnabled
    case privateAddress
    /// The URL or a header line of the request is malformed.
    case badURL
    case badResponse
    /// The body is in a coding that libcurl cannot decode.
    case undecodable
    case outOfMemory
    /// A file of this machine cannot be read, or it has no socket left.
    case local
  }

  package let code: Code
  /// What happened, with the host. Printable ASCII.
  package let message: String
  /// errno(3) if a system call failed, otherwise 0.
  package let osErrno: Int32
  /// `HOST:PORT` of the proxy, for ``Code/proxy``.
  package let proxy: String?

  /// - Parameter message: any text; bytes that are no printable ASCII are replaced.
  package init(code: Code, message: String, osErrno: Int32 = 0, proxy: String? = nil) {
    (self.proxy, self.code) = (proxy, code)
    self.message = printable(message)
    self.osErrno = osErrno
  }
}

/// Where a fetch delivers. Called on the thread that runs the engine, from within ``TransferEngine/advance()``.
package protocol FetchSink: AnyObject {
  /// Decides on the response: once, before any byte of the body, and also if there is no body. False drops the
  /// connection; the fetch ends with `.refused`.
  func accept(_ response: Response) -> Bool
  /// The next bytes of the body, at most 16 KiB at a time, valid only during the call. False drops the connection;
  /// the fetch ends with `.refused`.
  func append(_ bytes: UnsafeRawBufferPointer) -> Bool
  /// All bytes that the response announced are here. If the end of the message does not follow within a second, the
  /// fetch is `.complete` and its connection is closed: squid 5.7 never ends a 206 that its origin sent in chunks.
  var hasAll: Bool { get }
  /// More bytes would have to wait. The transfer is paused until this is false, and others go on.
  var isFull: Bool { get }
}

extension FetchSink { package var isFull: Bool { false } }
