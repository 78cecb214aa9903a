internal import CCurl
internal import Glibc

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
func proxyFailure(_ facts: ProxyFacts, of hop: HopFacts, with code: CURLcode) -> TransferFailure? {
  let name = facts.proxy.name
  func proxy(_ message: String, osErrno: Int32 = 0) -> TransferFailure {
    TransferFailure(code: .proxy, message: message, osErrno: osErrno, proxy: name)
  }
  func host(_ message: String) -> TransferFailure {
    TransferFailure(code: .connect, message: "no connection to \(hop.host) port \(hop.port): \(message)")
  }
  guard code != CURLE_OK, !hop.requestWasSent else { return nil }
  switch facts.connectStatus {
  case 0: break
  case 200..<300: return nil
  // tinyproxy answers 401 to a wrong password. It cannot be the host's answer: no host answers CONNECT.
  case 401, 407: return facts.proxy.refusal(facts.connectStatus)
  case let status: return host("the proxy \(name) answered \(status)")
  }
  switch code {
  case CURLE_COULDNT_RESOLVE_PROXY: return proxy("cannot resolve the proxy \(name)")
  case CURLE_PROXY where targetErrors.contains(facts.socksError): return host("the proxy \(name) cannot reach it")
  case CURLE_PROXY: return proxy("the proxy \(name) refused: \(printable(hop.detail))")
  case CURLE_COULDNT_CONNECT, CURLE_NO_CONNECTION_AVAILABLE, CURLE_INTERFACE_FAILED:
    let reason = hop.osErrno == 0 ? "" : ": " + String(cString: strerror(hop.osErrno))
    return proxy("cannot connect to the proxy \(name)\(reason)", osErrno: hop.osErrno)
  case CURLE_OPERATION_TIMEDOUT where facts.isConnected:
    // It may be waiting for the host.
    return host("no answer from the proxy \(name) within \(hop.connectTimeoutSeconds) s")
  case CURLE_OPERATION_TIMEDOUT:
    return proxy("no connection to the proxy \(name) within \(hop.connectTimeoutSeconds) s")
  case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_WEIRD_SERVER_REPLY:
    return proxy("the proxy \(name) closed the connection without a usable answer")
  case _ where isTLSFailure(code) && facts.proxy.scheme == "https":
    return proxy("TLS with the proxy \(name): \(printable(hop.detail))")
  default: return nil
  }
}

/// The errors of a SOCKS proxy that are about the host (RFC 1928, 6).
private let targetErrors: Set<Int> = Set(
  [
    CURLPX_REPLY_CONNECTION_REFUSED, CURLPX_REPLY_HOST_UNREACHABLE, CURLPX_REPLY_NETWORK_UNREACHABLE,
    CURLPX_REPLY_NOT_ALLOWED, CURLPX_REPLY_TTL_EXPIRED, CURLPX_RESOLVE_HOST,
  ].map { Int($0.rawValue) })
