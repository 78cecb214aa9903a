/// The scheme of a URL that can be fetched: the one place that knows what each protocol has.
package enum Scheme: String, Sendable, CaseIterable, CustomStringConvertible {
  case http, https, ftp, ftps, sftp

  package var description: String { rawValue }

  /// HTTP (RFC 9110): the answer has a status and header fields. FTP and SFTP have no validators, conditions or
  /// redirects.
  var isHTTP: Bool { self == .http || self == .https }

  /// What protects the connection.
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

  /// A path that ends in a slash is a directory, which comes as a listing.
  var listsDirectories: Bool { !isHTTP }

  /// The environment variables that name its proxy, by precedence (curl(1), ENVIRONMENT).
  var proxyVariables: [String] {
    // A CGI program gets the field `Proxy:` of any client in HTTP_PROXY.
    self == .http ? ["http_proxy"] : ["\(self)_proxy", "\(self)_proxy".uppercased()]
  }
}
