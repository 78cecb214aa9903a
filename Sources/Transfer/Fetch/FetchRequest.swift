/// One GET, or its equivalent in FTP and SFTP.
package struct FetchRequest: Sendable {
  /// Unique among the fetches of an engine.
  package typealias ID = UInt64

  /// Identifies the fetch while it runs; the caller keeps it unique.
  package var id: ID
  /// An absolute URL. User information in it is the login: see ``LoginManner`` for HTTP.
  package private(set) var url: String
  /// ``url`` taken apart, from a caller who has done that.
  package private(set) var parts: URLParts?
  /// Whether the path of `url`, and of what it redirects to, may not be shown either.
  package var isPathSecret = false
  /// `Name: value`, one an element: for the origin of `url` only; dropped when a redirect leads to another origin.
  /// Without a value, the field is not sent, even if it would be without this line.
  package var headers: [String]
  /// The value of User-Agent, for all origins; nil for the engine's.
  package var userAgent: String?
  /// The URL of the page that leads to the file: see ``Route/referer(_:)``.
  package var referer: String?
  /// First byte wanted, counted from 0; nil asks for the whole without a `Range`.
  package var rangeStart: UInt64?
  /// Last byte wanted, itself included; nil for all from ``rangeStart`` on. Ignored without
  /// ``Scheme/hasBoundedRanges``.
  package var rangeEnd: UInt64?
  /// The value of `If-Range`, sent verbatim.
  package var ifRange: String?
  /// For name resolution, TCP and TLS together, for each connection; ``idleTimeoutSeconds`` if that is less. See
  /// ``effectiveConnectTimeoutSeconds``.
  package var connectTimeoutSeconds: Int
  /// The longest time without a header line or a body byte, once the request is sent; 0 for no limit.
  package var idleTimeoutSeconds: Int
  /// The least rate from the first line of the answer on; nil for any rate. A slower fetch fails as `stalled`.
  package var floor: RateFloor?
  /// How fast the server was in earlier requests over this connection; nil for the first.
  package var pace: Pace?
  /// For the whole fetch, from the first request on; 0 for no limit. Waiting for one of the host's connections does not
  /// count.
  package var totalTimeoutSeconds: Int
  /// The largest number of redirects that are followed.
  package var maxRedirects: Int
  /// Bytes per second of the body, on average, unless ``TransferEngine/limit(group:to:of:)`` says otherwise; nil for no
  /// limit but the engine's.
  package var bytesPerSecond: UInt64?
  /// Fetches of one group share one rate limit, and the cookies that servers set: see ``TransferEngine/forget(_:)``.
  /// nil for a fetch on its own.
  package var group: ID?
  /// Uses HTTP/1.1 only: its framing distinguishes a complete body from a cut one, and each fetch has its own
  /// connection.
  package var keepsToHTTP1: Bool
  /// Uses a new connection, even if one is idle.
  package var needsFreshConnection = false
  /// The addresses to connect to.
  package var addressFamily = AddressFamily.any
  /// `If-None-Match` and the like (RFC 9110, 13.1), one an element: sent on each hop. The answer may be 304.
  package var conditions: [String] = []
  /// Has a body decoded that comes in a coding, although none is asked for. Not for a range.
  package var decodes = false
  /// Whether the worker's own login for a host goes there over an encrypted channel only, as after a redirect.
  package var needsEncryptionForLogin = false
  /// Asks for the head of the response alone: HTTP's HEAD.
  package var wantsHeadOnly = false

  /// The addresses that a fetch may connect to.
  package enum AddressFamily: String, Sendable { case any, ipv4 = "IPv4", ipv6 = "IPv6" }

  /// The defaults are those of a job without keys, in seconds.
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

  /// Asks for another URL.
  /// - Parameter parts: the URL taken apart.
  package mutating func ask(for url: String, _ parts: URLParts) { (self.url, self.parts) = (url, parts) }

  /// A server that is silent from the start is given up as early as one that falls silent later.
  var effectiveConnectTimeoutSeconds: Int {
    max(1, idleTimeoutSeconds > 0 ? min(connectTimeoutSeconds, idleTimeoutSeconds) : connectTimeoutSeconds)
  }
}

/// The URL and the headers contain secrets, which printing a request must not show.
extension FetchRequest: CustomStringConvertible, CustomReflectable {
  package var description: String { "fetch \(id)" }
  package var customMirror: Mirror { Mirror(self, children: ["id": id]) }
}
