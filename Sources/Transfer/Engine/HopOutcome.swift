internal import CCurl
internal import Glibc

struct HopFacts {
  var host: String
  var port: UInt16
  var scheme: Scheme
  /// The connection, TLS included, was ready, and the request went out.
  var requestWasSent = false
  var headCame = false
  /// Whether the peer announced the end (close_notify), over TLS; nil elsewhere.
  var closeWasAnnounced: Bool?
  /// Nil for FTP and SFTP, and without a head.
  var framing: ResponseHead.Framing?
  var bytesReceived: UInt64 = 0
  var connectTimeoutSeconds = 0
  /// CURLOPT_ERRORBUFFER(3). May quote a URL: shown for TLS only, where it quotes certificates and host names.
  var detail = ""
  /// errno(3), 0 if no system call failed.
  var osErrno: Int32 = 0
  /// The same of socket(2), or of what the resolver lacks.
  var socketErrno: Int32 = 0
  var proxy: Proxy?
  /// The status of the proxy's answer to CONNECT (CURLINFO_HTTP_CONNECTCODE(3)); 0 without one.
  var connectStatus = 0
  var isProxyConnected = false
  /// What a SOCKS proxy reported (CURLINFO_PROXY_ERROR(3)).
  var socksError = 0

  /// What a person can do about ``detail``, if that is a word of OpenSSL's only, or about the key of an SSH server, of
  /// which libcurl says nothing.
  fileprivate var hint: String {
    if scheme.channel == .ssh { return "; its key has to be in ~/.ssh/known_hosts" }
    if detail.utf8.contains("wrong version number".utf8) { return "; it speaks no TLS there: is it http://?" }
    let isOwn = detail.utf8.contains("self-signed".utf8) || detail.utf8.contains("local issuer".utf8)
    return isOwn ? "; --cacert FILE trusts the authority in FILE" : ""
  }
}

/// The one place that turns libcurl's codes (libcurl-errors(3)) into outcomes. Pure.
func outcome(of hop: HopFacts, with code: CURLcode) -> FetchResult.End {
  let isAboutSockets = [CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY].contains(code)
  if isAboutSockets, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(hop.socketErrno) {
    let reason = String(cString: strerror(hop.socketErrno))
    return .failed(TransferFailure(code: .local, message: "no socket for a connection to \(hop.host): \(reason)"))
  }
  if let proxy = hop.proxy, let failure = proxyFailure(proxy, of: hop, with: code) { return .failed(failure) }
  guard code == CURLE_OK else {
    return .failed(connectionFailure(of: hop, with: code) ?? answerFailure(of: hop, with: code))
  }
  return goodEndFailure(of: hop).map { .failed($0) } ?? .complete
}

/// What libcurl takes for a good end, although it may be none.
private func goodEndFailure(of hop: HopFacts) -> TransferFailure? {
  // libcurl takes a connection that was closed within the head for a good end. Protocols without a head have a response
  // at each good end.
  guard hop.headCame else { return hop.failure(.cut, "\(hop.host) closed the connection within the head") }
  // libcurl checks this, too; the bytes may be joined to a file, so it is checked twice.
  if case .length(let length) = hop.framing, hop.bytesReceived != length { return hop.shortBody(of: length) }
  // Without close_notify an attacker may have closed the connection (RFC 9112, 9.8).
  if hop.framing == .close, hop.closeWasAnnounced == false {
    return hop.failure(.cut, "TLS connection to \(hop.host) ended unannounced, \(hop.tally)")
  }
  return nil
}

/// What keeps a request from being sent, and what our own side lacks; nil for all else.
private func connectionFailure(of hop: HopFacts, with code: CURLcode) -> TransferFailure? {
  switch code {
  case CURLE_COULDNT_RESOLVE_HOST: hop.failure(.resolve, "cannot resolve \(hop.host)")
  case CURLE_COULDNT_CONNECT, CURLE_NO_CONNECTION_AVAILABLE, CURLE_INTERFACE_FAILED:
    hop.failure(.connect, "cannot connect to \(hop.host) port \(hop.port)\(hop.systemReason)")
  case CURLE_OPERATION_TIMEDOUT: hop.timeout
  case _ where isTLSFailure(code):
    // The detail may quote the server's certificate.
    hop.failure(
      .tls,
      "\(hop.scheme.channel == .ssh ? "SSH" : "TLS") with \(hop.host): "
        + printable(hop.detail.isEmpty ? String(cString: curl_easy_strerror(code)) : hop.detail) + hop.hint)
  case CURLE_OUT_OF_MEMORY where hop.requestWasSent && !hop.headCame:
    // libcurl's code for a line over its 100 KiB.
    hop.failure(.badResponse, "header field too long from \(hop.host)")
  case CURLE_OUT_OF_MEMORY: hop.failure(.outOfMemory, "out of memory")
  case CURLE_URL_MALFORMAT where !hop.requestWasSent: hop.failure(.badURL, "malformed URL")
  case CURLE_UNSUPPORTED_PROTOCOL where !hop.requestWasSent:
    hop.failure(.protocolNotEnabled, "libcurl was built without \(hop.scheme)")
  default: nil
  }
}

private func answerFailure(of hop: HopFacts, with code: CURLcode) -> TransferFailure {
  switch code {
  case CURLE_PARTIAL_FILE:
    if hop.framing == .chunked {
      return hop.failure(.cut, "\(hop.host) closed the connection before the last chunk, \(hop.tally)")
    }
    if case .length(let length) = hop.framing { return hop.shortBody(of: length) }
    return hop.failure(.shortBody, "\(hop.host) sent too little: ended \(hop.tally)")
  case CURLE_GOT_NOTHING: return hop.failure(.cut, "\(hop.host) closed the connection without an answer")
  case CURLE_BAD_CONTENT_ENCODING where hop.bytesReceived == 0:
    return hop.failure(.undecodable, "the body from \(hop.host) cannot be decoded")
  // libcurl has one code for a broken connection and for nonsense on one that works.
  case CURLE_RECV_ERROR where hop.detail.utf8.contains("chunked-encoding".utf8):
    return hop.failure(.badResponse, "malformed chunk from \(hop.host), \(hop.tally)")
  case CURLE_RECV_ERROR where hop.detail.utf8.contains("response headers".utf8):
    return hop.failure(.badResponse, "too many header fields from \(hop.host)")
  case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_SSH:
    guard hop.requestWasSent else {
      return hop.failure(
        .connect, "connection to \(hop.host) port \(hop.port) lost before the request\(hop.systemReason)")
    }
    return hop.failure(.cut, "connection to \(hop.host) lost \(hop.tally)\(hop.systemReason)")
  default:
    // HTTP/0.9 is CURLE_UNSUPPORTED_PROTOCOL, other nonsense CURLE_WEIRD_SERVER_REPLY; FTP has codes of its own.
    let reason = String(cString: curl_easy_strerror(code))
    return hop.requestWasSent
      ? hop.failure(.badResponse, "bad answer from \(hop.host): \(reason)")
      : hop.failure(.connect, "cannot connect to \(hop.host) port \(hop.port): \(reason)")
  }
}

private func isTLSFailure(_ code: CURLcode) -> Bool {
  [
    CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER,
    CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS,
    CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_CLIENTCERT, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,
    CURLE_SSL_ENGINE_INITFAILED, CURLE_USE_SSL_FAILED,
  ].contains(code)
}

extension HopFacts {
  init(_ url: URLParts) { self.init(host: url.host, port: url.port, scheme: url.scheme) }

  fileprivate func failure(_ code: TransferFailure.Code, _ message: String) -> TransferFailure {
    // With other codes the number is left over from an earlier failure: libcurl never clears it.
    TransferFailure(code: code, message: message, osErrno: code == .connect || code == .cut ? osErrno : 0)
  }

  fileprivate func shortBody(of length: UInt64) -> TransferFailure {
    failure(.shortBody, "\(host) sent \(bytesReceived) of \(length) bytes")
  }

  /// The time for the connection is over, or an FTP server does not answer (CURLOPT_TIMEOUT is not set). The errno is
  /// left over, too.
  fileprivate var timeout: TransferFailure {
    if detail.utf8.starts(with: "Resolving".utf8) {
      return TransferFailure(code: .resolve, message: "cannot resolve \(host) within \(connectTimeoutSeconds) s")
    }
    if requestWasSent { return TransferFailure(code: .stalled, message: "no answer from \(host)") }
    return TransferFailure(
      code: .connect, message: "no connection to \(host) port \(port) within \(connectTimeoutSeconds) s")
  }

  fileprivate var systemReason: String { osErrno == 0 ? "" : ": " + String(cString: strerror(osErrno)) }

  fileprivate var tally: String { "after \(bytesReceived) bytes of the body" }
}

extension Proxy {
  /// The failure if this proxy asks for credentials (RFC 9110, 15.5.8), or refuses ours.
  func refusal(_ status: Int) -> TransferFailure {
    let what = hasCredentials ? "refuses its user name and password" : "asks for a user name and password"
    return TransferFailure(code: .proxy, message: "the proxy \(name) \(what) (\(status))", proxy: name)
  }
}

/// The failure of a hop before its request was sent, if the proxy caused or reported it; nil for all else. Pure.
///
/// What the proxy reports of one host (no such host, no connection, not allowed) counts as that host's failure, as it
/// would without the proxy. Otherwise a job for a host that is gone would be tried for ever.
private func proxyFailure(_ proxy: Proxy, of hop: HopFacts, with code: CURLcode) -> TransferFailure? {
  let name = proxy.name
  func own(_ message: String, osErrno: Int32 = 0) -> TransferFailure {
    TransferFailure(code: .proxy, message: message, osErrno: osErrno, proxy: name)
  }
  func host(_ message: String) -> TransferFailure {
    TransferFailure(code: .connect, message: "no connection to \(hop.host) port \(hop.port): \(message)")
  }
  guard code != CURLE_OK, !hop.requestWasSent else { return nil }
  switch hop.connectStatus {
  case 0: break
  case 200..<300: return nil
  // tinyproxy answers 401 to a wrong password. It cannot be the host's answer: no host answers CONNECT.
  case 401, 407: return proxy.refusal(hop.connectStatus)
  case let status: return host("the proxy \(name) answered \(status)")
  }
  switch code {
  case CURLE_COULDNT_RESOLVE_PROXY: return own("cannot resolve the proxy \(name)")
  case CURLE_PROXY where targetErrors.contains(hop.socksError): return host("the proxy \(name) cannot reach it")
  case CURLE_PROXY: return own("the proxy \(name) refused: \(printable(hop.detail))")
  case CURLE_COULDNT_CONNECT, CURLE_NO_CONNECTION_AVAILABLE, CURLE_INTERFACE_FAILED:
    return own("cannot connect to the proxy \(name)\(hop.systemReason)", osErrno: hop.osErrno)
  case CURLE_OPERATION_TIMEDOUT where hop.isProxyConnected:
    // It may be waiting for the host.
    return host("no answer from the proxy \(name) within \(hop.connectTimeoutSeconds) s")
  case CURLE_OPERATION_TIMEDOUT: return own("no connection to the proxy \(name) within \(hop.connectTimeoutSeconds) s")
  case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_WEIRD_SERVER_REPLY:
    return own("the proxy \(name) closed the connection without a usable answer")
  case _ where isTLSFailure(code) && proxy.scheme == "https":
    return own("TLS with the proxy \(name): \(printable(hop.detail))")
  default: return nil
  }
}

/// The errors of a SOCKS proxy that are about the host (RFC 1928, 6).
private let targetErrors: Set<Int> = Set(
  [
    CURLPX_REPLY_CONNECTION_REFUSED, CURLPX_REPLY_HOST_UNREACHABLE, CURLPX_REPLY_NETWORK_UNREACHABLE,
    CURLPX_REPLY_NOT_ALLOWED, CURLPX_REPLY_TTL_EXPIRED, CURLPX_RESOLVE_HOST,
  ].map { Int($0.rawValue) })
