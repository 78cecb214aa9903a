/// One GET, or its equivalent in FTP and SFTP.
package struct FetchRequest: Sendable {
  /// Unique among the fetches of an engine.
  package typealias ID = UInt64

  package var id: ID
  /// User information in it is the login: see ``LoginManner`` for HTTP.
  package var url: URLParts
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
  package var ifRange: String?
  /// For name resolution, TCP and TLS together, for each connection. See ``effectiveConnectTimeoutSeconds``.
  package var connectTimeoutSeconds: Int
  /// The longest time without a header line or a body byte, once the request is sent; 0 for no limit.
  package var idleTimeoutSeconds: Int
  /// The least rate from the first line of the answer on; nil for any rate. A slower fetch fails as `stalled`.
  package var floor: RateFloor?
  /// How fast the server was in earlier requests over this connection; nil for the first.
  package var pace: Pace?
  /// For the whole fetch, from the first request on; 0 for no limit. Waiting for one of the host's connections does not
  /// count.
  package var totalTimeoutSeconds = 7 * 86_400
  package var maxRedirects = 20
  /// Fetches of one group share one rate limit (``TransferEngine/limit(group:to:of:)``), and the cookies that servers
  /// set (``TransferEngine/forget(_:)``); nil for a fetch on its own.
  package var group: ID?
  package var needsFreshConnection = false
  package var addressFamily = AddressFamily.any
  /// `If-None-Match` and the like (RFC 9110, 13.1), one an element: sent on each hop. The answer may be 304.
  package var conditions: [String] = []
  /// As a condition: no cache on the way answers by itself (RFC 9111, 5.2.1.4).
  package static let pastCaches = "Cache-Control: no-cache"
  /// Has a body decoded that comes in a coding, although none is asked for. Not for a range.
  package var decodes = false
  /// Whether the worker's own login for a host goes there over an encrypted channel only, as after a redirect.
  package var needsEncryptionForLogin = false
  /// Asks for the head of the response alone: HTTP's HEAD.
  package var wantsHeadOnly = false

  package enum AddressFamily: String, Sendable { case any, ipv4 = "IPv4", ipv6 = "IPv6" }

  /// The defaults are those of a job without keys.
  package init(
    id: ID, url: URLParts, headers: [String] = [], connectTimeoutSeconds: Int = 30, idleTimeoutSeconds: Int = 60
  ) {
    (self.id, self.url, self.headers) = (id, url, headers)
    (self.connectTimeoutSeconds, self.idleTimeoutSeconds) = (connectTimeoutSeconds, idleTimeoutSeconds)
  }

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

extension FetchRequest {
  /// Why `line` is no `Name: value` (RFC 9110, 5.1 and 5.5); nil if it is one. Never quotes the value. The caller
  /// decides which names are allowed.
  package static func problem(ofHeader line: String) -> String? {
    guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { return "header has no colon" }
    let name = line.utf8[..<colon]
    guard !name.isEmpty, name.allSatisfy(isTokenByte) else { return "header name is not a valid token" }
    guard isFieldValue(String(line[line.utf8.index(after: colon)...])) else {
      return "header value has a control character"
    }
    return nil
  }

  /// The lines for libcurl (CURLOPT_HTTPHEADER(3)).
  func headerLines(withCredentials: Bool) -> [String] {
    var lines = ["Accept-Encoding: identity"]
    // Not CURLOPT_RANGE or CURLOPT_RESUME_FROM_LARGE: libcurl would judge the answer, which the sink does.
    if let start = rangeStart { lines.append("Range: bytes=\(start)-\(rangeEnd.map { "\($0)" } ?? "")") }
    if let validator = ifRange { lines.append("If-Range: \(validator)") }
    lines += conditions
    // libcurl takes "Name:" for a field that it must not send (CURLOPT_HTTPHEADER(3)).
    return withCredentials ? lines + headers : lines
  }

  /// No control character but the tab (RFC 9110, 5.5).
  static func isFieldValue(_ text: String) -> Bool { text.utf8.allSatisfy { $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7f) } }
}

/// A byte of a token (RFC 9110, 5.6.2).
func isTokenByte(_ byte: UInt8) -> Bool {
  isDigit(byte) || isLowerCase(lowercasedASCII(byte)) || "!#$%&'*+-.^_`|~".utf8.contains(byte)
}

/// The least rate of a server; a slower transfer counts as stalled.
package struct RateFloor: Sendable, Equatable {
  /// Bytes of the body per second, on average.
  package var bytesPerSecond: UInt64
  /// Seconds that the average is taken over.
  package var seconds: Int

  package init(bytesPerSecond: UInt64, seconds: Int) { (self.bytesPerSecond, self.seconds) = (bytesPerSecond, seconds) }

  /// Bytes per second below which the server is too slow.
  /// - Parameter share: what the rate limits leave to the transfer, in bytes per second; nil without a limit. Half of
  ///   it is fast enough: another connection would hardly be faster.
  func least(share: Double?) -> Double { min(Double(bytesPerSecond), share.map { $0 / 2 } ?? .infinity) }
}

/// How fast a server was over the latest stretch of its own time: the time between two requests, and the time that we
/// pause it, do not count. Pure: times come from outside, in milliseconds.
package struct Pace: Sendable {
  /// Samples in a stretch.
  private static let resolution: Milliseconds = 20

  private let stretch: Milliseconds
  private var bytes: UInt64 = 0
  /// Counted time up to ``runningSince``.
  private var counted: Milliseconds = 0
  private var runningSince: Milliseconds?
  /// Oldest first; of the samples that are a stretch old or older, only the youngest.
  private var samples: [(time: Milliseconds, bytes: UInt64)] = [(0, 0)]

  package init(over seconds: Int) { stretch = Milliseconds(max(1, seconds)) * 1000 }

  mutating func run(at now: Milliseconds) { runningSince = runningSince ?? now }

  mutating func rest(at now: Milliseconds) {
    counted = time(at: now)
    runningSince = nil
  }

  mutating func take(_ count: Int) { bytes += UInt64(count) }

  /// Bytes per second over the latest stretch; nil until one has passed.
  mutating func rate(at now: Milliseconds) -> Double? {
    let time = time(at: now)
    if time - samples[samples.count - 1].time >= max(1, stretch / Self.resolution) { samples.append((time, bytes)) }
    while samples.count > 1, time - samples[1].time >= stretch { samples.removeFirst() }
    let elapsed = time - samples[0].time
    guard elapsed >= stretch else { return nil }
    return Double(bytes - samples[0].bytes) * 1000 / Double(elapsed)
  }

  private func time(at now: Milliseconds) -> Milliseconds { counted + (runningSince.map { now - $0 } ?? 0) }
}
