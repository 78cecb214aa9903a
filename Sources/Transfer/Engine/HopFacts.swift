internal import CCurl

/// What is known of a hop when libcurl ends it.
struct HopFacts {
  var host: String
  var port: UInt16
  var scheme: String
  var isHTTP: Bool { URLParts.isHTTP(scheme) }
  /// The connection, TLS included, stood.
  var requestWasSent = false
  var headCame = false
  /// TLS only, for HTTP/1: whether the peer said that it would close (close_notify); nil where nothing depends on it.
  var closeWasAnnounced: Bool?
  /// Nil for FTP and SFTP, and without a head.
  var framing: ResponseHead.Framing?
  var bytesReceived: UInt64 = 0
  var connectTimeoutSeconds = 0
  /// CURLOPT_ERRORBUFFER(3). May quote a URL: shown for TLS only, where it quotes certificates and host names.
  var detail = ""
  var osErrno: Int32 = 0
  /// Nil without a proxy.
  var proxy: ProxyFacts?

  init(host: String, port: UInt16, scheme: String) {
    self.host = host
    self.port = port
    self.scheme = scheme
  }

  func isTLSFailure(_ code: CURLcode) -> Bool {
    [
      CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER,
      CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS,
      CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_CLIENTCERT, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,
      CURLE_SSL_ENGINE_INITFAILED, CURLE_USE_SSL_FAILED,
    ].contains(code)
  }
}

/// What is known of the way through a proxy when libcurl ends a hop.
struct ProxyFacts {
  var proxy: Proxy
  /// The status of its answer to CONNECT (CURLINFO_HTTP_CONNECTCODE(3)); 0 without one.
  var connectStatus = 0
  /// A connection to the proxy stood.
  var isConnected = false
  /// What a SOCKS proxy said (CURLINFO_PROXY_ERROR(3)).
  var socksError = 0
}
