internal import CCurl
internal import Glibc

/// The one place where libcurl's codes (libcurl-errors(3)) become ours. Pure.
func outcome(of hop: HopFacts, with code: CURLcode) -> FetchResult.End {
  func failure(_ kind: TransferFailure.Code, _ message: String) -> FetchResult.End {
    // Elsewhere the number is a leftover: libcurl sets it when a socket fails, and never clears it. Of an attempt that took too long, too.
    let number = (kind == .connect || kind == .cut) && code != CURLE_OPERATION_TIMEDOUT ? hop.osErrno : 0
    return .failed(TransferFailure(code: kind, message: message, osErrno: number))
  }
  let systemReason = hop.osErrno == 0 ? "" : ": " + String(cString: strerror(hop.osErrno))
  let tally = "after \(hop.bytesReceived) bytes of the body"
  if let proxy = hop.proxy, let failure = proxyFailure(proxy, of: hop, with: code) { return .failed(failure) }

  switch code {
  case CURLE_OK:
    // libcurl takes a connection closed within the head for a good end.
    guard hop.headCame || !hop.isHTTP else {
      return failure(.cut, "\(hop.host) closed the connection within the head")
    }
    // libcurl checks this itself; what is joined to a file later is worth a second look.
    if case .length(let length) = hop.framing, hop.bytesReceived != length {
      return failure(.shortBody, "\(hop.host) sent \(hop.bytesReceived) of \(length) bytes")
    }
    // Without close_notify anybody may have closed the connection (RFC 9112, 9.8).
    if hop.framing == .close, hop.closeWasAnnounced == false {
      return failure(.cut, "TLS connection to \(hop.host) ended unannounced, \(tally)")
    }
    return .complete

  case CURLE_COULDNT_RESOLVE_HOST: return failure(.resolve, "cannot resolve \(hop.host)")
  case CURLE_COULDNT_CONNECT, CURLE_NO_CONNECTION_AVAILABLE, CURLE_INTERFACE_FAILED:
    return failure(.connect, "cannot connect to \(hop.host) port \(hop.port)\(systemReason)")
  case CURLE_OPERATION_TIMEDOUT where hop.detail.hasPrefix("Resolving"):
    return failure(
      .resolve, "cannot resolve \(hop.host) within \(hop.connectTimeoutSeconds) s")
  case CURLE_OPERATION_TIMEDOUT where !hop.requestWasSent:
    return failure(
      .connect,
      "no connection to \(hop.host) port \(hop.port) within \(hop.connectTimeoutSeconds) s")
  case CURLE_OPERATION_TIMEDOUT:  // an FTP server's answer; CURLOPT_TIMEOUT is not set
    return failure(.stalled, "no answer from \(hop.host)")

  case _ where hop.isTLSFailure(code):
    let detail = hop.detail.isEmpty ? String(cString: curl_easy_strerror(code)) : hop.detail
    let layer = hop.scheme == "sftp" ? "SSH" : "TLS"
    // It may quote the server's certificate.
    return failure(.tls, "\(layer) with \(hop.host): \(printable(detail))")

  case CURLE_PARTIAL_FILE:
    if hop.framing == .chunked {
      return failure(.cut, "\(hop.host) closed the connection before the last chunk, \(tally)")
    }
    if case .length(let length) = hop.framing {
      return failure(.shortBody, "\(hop.host) sent \(hop.bytesReceived) of \(length) bytes")
    }
    return failure(.shortBody, "\(hop.host) sent too little: ended \(tally)")

  case CURLE_GOT_NOTHING:
    return failure(.cut, "\(hop.host) closed the connection without an answer")
  // The byte too many is not delivered: nghttp2 resets the stream at it.
  case CURLE_HTTP2_STREAM where hop.framing == .length(hop.bytesReceived):
    return failure(.surplus, "\(hop.host) sent more than the \(hop.bytesReceived) bytes that it announced")
  // libcurl has one code for a lost connection and for nonsense on one that stands.
  case CURLE_RECV_ERROR where hop.detail.contains("chunked-encoding"):
    return failure(.badResponse, "malformed chunk from \(hop.host), \(tally)")
  case CURLE_RECV_ERROR where hop.detail.contains("response headers"):
    return failure(.badResponse, "too many header fields from \(hop.host)")
  case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_SSH:
    guard hop.requestWasSent else {
      return failure(
        .connect, "connection to \(hop.host) port \(hop.port) lost before the request\(systemReason)")
    }
    return failure(.cut, "connection to \(hop.host) lost \(tally)\(systemReason)")

  case CURLE_OUT_OF_MEMORY where hop.requestWasSent && !hop.headCame:
    // What a line over libcurl's 100 KiB comes back as.
    return failure(.badResponse, "header field too long from \(hop.host)")
  case CURLE_OUT_OF_MEMORY: return failure(.outOfMemory, "out of memory")
  case CURLE_URL_MALFORMAT where !hop.requestWasSent:
    return failure(.badURL, "malformed URL")
  case CURLE_UNSUPPORTED_PROTOCOL where !hop.requestWasSent:
    return failure(.protocolNotEnabled, "libcurl was built without \(hop.scheme)")
  default:
    // HTTP/0.9 comes as CURLE_UNSUPPORTED_PROTOCOL, other nonsense as CURLE_WEIRD_SERVER_REPLY, FTP's as its own.
    let reason = String(cString: curl_easy_strerror(code))
    return hop.requestWasSent
      ? failure(.badResponse, "bad answer from \(hop.host): \(reason)")
      : failure(.connect, "cannot connect to \(hop.host) port \(hop.port): \(reason)")
  }
}
