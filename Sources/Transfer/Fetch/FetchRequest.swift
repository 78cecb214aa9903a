/// One GET, or its like in FTP and SFTP.
package struct FetchRequest: Sendable {
  package typealias ID = UInt64

  /// Names the fetch while it runs; the caller keeps it unique.
  package var id: ID
  /// An absolute URL. User information in it is sent as HTTP Basic or as the FTP or SFTP login.
  package var url: String
  /// `Name: value`, one an element: for the origin of `url` only, dropped for good when a redirect leaves it.
  package var headers: [String]
  /// First byte wanted, counted from 0; nil asks for the whole without a `Range`.
  package var rangeStart: UInt64?
  /// Last byte wanted, itself included; nil for all from ``rangeStart`` on. FTP and SFTP take no notice.
  package var rangeEnd: UInt64?
  /// The value of `If-Range`, sent verbatim.
  package var ifRange: String?
  /// For name resolution, TCP and TLS together, for each connection; ``idleTimeoutSeconds`` if that is less.
  package var connectTimeoutSeconds: Int
  /// The longest time without a header line or a body byte, once the request is sent; 0 for no limit.
  package var idleTimeoutSeconds: Int
  /// What the server has to bring from the first line of its answer on; nil for any rate. Fails as `stalled`.
  package var floor: RateFloor?
  /// How fast the server was in earlier requests over this connection; nil for the first.
  package var pace: Pace?
  /// For the whole fetch from the moment that the first connection stands; 0 for no limit. Waiting for one of the
  /// host's connections does not count.
  package var totalTimeoutSeconds: Int
  package var maxRedirects: Int
  /// Bytes per second of the body, on average; nil for no limit but the engine's.
  package var bytesPerSecond: UInt64?
  /// Fetches of one group count as one where rates are limited; nil for a fetch by itself.
  package var group: ID?
  /// Keeps to HTTP/1.1: its framing tells a whole body from a cut one, and fetches from one host really have a connection each.
  package var keepsToHTTP1: Bool
  /// On a new connection, even where one is idle.
  package var needsFreshConnection = false
  package var addressFamily = AddressFamily.any

  package enum AddressFamily: String, Sendable { case any, ipv4 = "IPv4", ipv6 = "IPv6" }

  package init(
    id: ID, url: String, headers: [String] = [], rangeStart: UInt64? = nil, rangeEnd: UInt64? = nil,
    ifRange: String? = nil, connectTimeoutSeconds: Int = 30, idleTimeoutSeconds: Int = 60, floor: RateFloor? = nil,
    totalTimeoutSeconds: Int = 7 * 86_400, maxRedirects: Int = 20,
    bytesPerSecond: UInt64? = nil, group: ID? = nil, keepsToHTTP1: Bool = false
  ) {
    self.id = id
    self.url = url
    self.headers = headers
    self.rangeStart = rangeStart
    self.rangeEnd = rangeEnd
    self.ifRange = ifRange
    self.connectTimeoutSeconds = connectTimeoutSeconds
    self.idleTimeoutSeconds = idleTimeoutSeconds
    self.floor = floor
    self.totalTimeoutSeconds = totalTimeoutSeconds
    self.maxRedirects = maxRedirects
    self.bytesPerSecond = bytesPerSecond
    self.group = group
    self.keepsToHTTP1 = keepsToHTTP1
  }
}

/// URL and headers hold secrets; printing a request must not.
extension FetchRequest: CustomStringConvertible, CustomReflectable {
  package var description: String { "fetch \(id)" }
  package var customMirror: Mirror { Mirror(self, children: ["id": id]) }
}

/// Where the answer goes. Called on the thread that polls, from within `TransferEngine.poll`.
package protocol FetchSink: AnyObject {
  /// Decides on status and fields of the final response, once, before any byte of the body and also when there is
  /// none. False drops the connection; the fetch ends with `.refused`.
  func accept(_ head: ResponseHead) -> Bool
  /// The next bytes of the body, at most 16 KiB at a time, valid only during the call. False drops the connection;
  /// the fetch ends with `.refused`.
  func append(_ bytes: UnsafeRawBufferPointer) -> Bool
  /// Whether all bytes have come that the head told of. Where the end of the message then stays away, the fetch is `.complete` after a moment, and its
  /// connection is closed: squid 5.7 never ends a 206 that its origin sent in chunks.
  var hasAll: Bool { get }
}

package struct FetchResult: Sendable {
  package enum End: Sendable {
    /// The message was complete by its own framing: `Content-Length` met, last chunk seen, or a clean close where
    /// the close is the end.
    case complete
    /// The sink said no.
    case refused
    case cancelled
    case failed(TransferFailure)
  }

  package var end: End
  /// The final response, if its head came.
  package var head: ResponseHead?
  /// Bytes of the body that the sink took.
  package var bytesReceived: UInt64
  /// The family of the address that answered last, or was to answer; nil where no connection stood.
  package var addressFamily: FetchRequest.AddressFamily?
  /// The last connection spoke HTTP/2 or later.
  package var isMultiplexed = false
  /// From the call of `fetch` to the end.
  package var seconds: Double
  /// For the next request over this connection; nil where nothing was asked.
  package var pace: Pace?
}

/// A fetch that came to no good end. Holds no secrets and no control characters.
package struct TransferFailure: Error, Equatable, Sendable {
  package enum Code: String, Sendable, CaseIterable {
    case resolve, connect, tls
    /// The proxy cannot be reached, or refuses to serve us, whatever the host.
    case proxy
    /// No data for the idle timeout, or less than the floor.
    case stalled
    /// The total timeout.
    case timeout
    /// The connection was lost within the message.
    case cut
    /// The connection was closed in good order, but before `Content-Length` was met.
    case shortBody
    /// Too many redirects, or one to a place where they must not go.
    case redirect
    case protocolNotEnabled
    /// The URL or a header line of the request is malformed.
    case badURL
    case badResponse
    /// More came than the answer had announced.
    case surplus
    case outOfMemory
  }

  package let code: Code
  /// What happened, with the host.
  package let message: String
  /// errno(3) where a system call failed, otherwise 0.
  package let osErrno: Int32

  package init(code: Code, message: String, osErrno: Int32 = 0) {
    self.code = code
    self.message = printable(message)
    self.osErrno = osErrno
  }
}
