internal import CCurl

/// What is known of a hop when libcurl ends it.
struct HopFacts {
  var host: String
  var port: UInt16
  var scheme: Scheme
  /// The connection, TLS included, was ready, and the request went out.
  var requestWasSent = false
  /// There was a response.
  var headCame = false
  /// Whether the peer announced the end (close_notify), where a body may end with the connection: over TLS, but not
  /// over HTTP/2; nil elsewhere.
  var closeWasAnnounced: Bool?
  /// Nil for FTP and SFTP, and without a head.
  var framing: ResponseHead.Framing?
  var bytesReceived: UInt64 = 0
  var connectTimeoutSeconds = 0
  /// CURLOPT_ERRORBUFFER(3). May quote a URL: shown for TLS only, where it quotes certificates and host names.
  var detail = ""
  /// errno(3), 0 if no system call failed.
  var osErrno: Int32 = 0
  /// Nil without a proxy.
  var proxy: ProxyFacts?

  init(_ url: URLParts) { self.init(host: url.host, port: url.port, scheme: url.scheme) }

  init(host: String, port: UInt16, scheme: Scheme) {
    self.host = host
    self.port = port
    self.scheme = scheme
  }
}

/// What is known about the proxy of a hop when libcurl ends the hop.
struct ProxyFacts {
  var proxy: Proxy
  /// The status of its answer to CONNECT (CURLINFO_HTTP_CONNECTCODE(3)); 0 without one.
  var connectStatus = 0
  /// A connection to the proxy was made.
  var isConnected = false
  /// What a SOCKS proxy reported (CURLINFO_PROXY_ERROR(3)).
  var socksError = 0
}
