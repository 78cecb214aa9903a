internal import CCurl
internal import Glibc

extension Exchange {
  /// Sets up `easy`, fresh or reset, for the next hop. The exchange has to outlive the transfer.
  ///
  /// Left as libcurl has it, on purpose: no netrc, no cookies, certificates verified, DNS and TLS sessions cached.
  func prepare(_ easy: UnsafeMutableRawPointer, _ options: TransferEngine.Options, _ sockets: OpenSockets) -> CURLcode {
    errorText[0] = 0
    let this = Unmanaged.passUnretained(self).toOpaque()
    var setup = EasySetup(easy: easy)

    setup.string(CURLOPT_URL, url.requestText)
    // Not all that are allowed: one that this libcurl lacks would make it refuse the list. The scheme was looked for in that before.
    setup.string(CURLOPT_PROTOCOLS_STR, url.scheme)
    setup.string(CURLOPT_REDIR_PROTOCOLS_STR, "http,https")
    // Redirects are the exchange's: it drops credentials when the port or the scheme changes, too.
    setup.long(CURLOPT_FOLLOWLOCATION, 0)
    setup.long(CURLOPT_NOSIGNAL, 1)
    // Who stops waiting for a name must not wait for the resolver's thread to end: all transfers would.
    setup.long(CURLOPT_QUICK_EXIT, 1)
    setup.long(CURLOPT_CONNECTTIMEOUT, connectTimeoutSeconds)
    setup.long(CURLOPT_TCP_KEEPALIVE, 1)
    setup.long(CURLOPT_BUFFERSIZE, options.bufferSize)
    setup.string(CURLOPT_USERAGENT, options.userAgent)
    if let file = options.caFile { setup.string(CURLOPT_CAINFO, file) }

    let mayShare = !request.keepsToHTTP1 && !wasRepeated
    setup.long(CURLOPT_HTTP_VERSION, Int(mayShare ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1))
    // Over http there is nothing to multiplex, and libcurl 7.88 would wait for the first transfer to end.
    setup.long(CURLOPT_PIPEWAIT, url.scheme == "https" && mayShare ? 1 : 0)
    setup.long(CURLOPT_HTTP09_ALLOWED, 0)
    setup.long(CURLOPT_HTTP_CONTENT_DECODING, 0)
    setup.long(CURLOPT_HTTP_TRANSFER_DECODING, 1)
    setup.long(CURLOPT_HTTPAUTH, 1)  // CURLAUTH_BASIC, a macro with a cast
    setup.long(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    curl_slist_free_all(fieldList)
    fieldList = nil
    for line in RequestFields.lines(for: request, withCredentials: withCredentials) {
      guard let longer = curl_slist_append(fieldList, line) else { return CURLE_OUT_OF_MEMORY }
      fieldList = longer
    }
    setup.list(CURLOPT_HTTPHEADER, fieldList)
    if withCredentials {
      if let user = origin.user { setup.string(CURLOPT_USERNAME, user) }
      if let password = origin.password { setup.string(CURLOPT_PASSWORD, password) }
    }

    proxy = options.proxies.proxy(for: url)
    // Empty: none, whatever the environment says.
    setup.string(CURLOPT_PROXY, proxy?.text ?? "")
    setup.string(CURLOPT_NOPROXY, "")
    if !url.isHTTP {
      setup.offset(CURLOPT_RESUME_FROM_LARGE, curl_off_t(clamping: request.rangeStart ?? 0))
      // An HTTP proxy without a tunnel would answer in HTTP.
      setup.long(CURLOPT_HTTPPROXYTUNNEL, 1)
    }
    if url.scheme == "https" {
      // Only for close_notify; what libcurl says there is shown to nobody.
      setup.debugReceiver { _, type, bytes, count, this in
        if type == CURLINFO_SSL_DATA_IN {
          Exchange.from(this).receive(tlsMessage: UnsafeRawBufferPointer(start: bytes, count: count))
        }
        return 0
      }
      setup.pointer(CURLOPT_DEBUGDATA, this)
      setup.long(CURLOPT_VERBOSE, 1)
    }
    if url.scheme == "sftp" {
      // Without a file of known hosts libcurl trusts every host.
      guard let home = getenv("HOME") else { return CURLE_SSH }
      setup.string(CURLOPT_SSH_KNOWNHOSTS, String(cString: home) + "/.ssh/known_hosts")
    }

    setup.pointer(CURLOPT_PRIVATE, this)
    setup.pointer(CURLOPT_ERRORBUFFER, errorText)
    setup.prerequest { this, _, _, remotePort, localPort in
      Exchange.from(this).requestStarts(localPort: localPort, remotePort: remotePort)
        ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
    }
    setup.pointer(CURLOPT_PREREQDATA, this)
    setup.long(CURLOPT_FRESH_CONNECT, needsFreshConnection || request.needsFreshConnection ? 1 : 0)
    let resolve = [FetchRequest.AddressFamily.ipv4: CURL_IPRESOLVE_V4, .ipv6: CURL_IPRESOLVE_V6][request.addressFamily]
    setup.long(CURLOPT_IPRESOLVE, Int(resolve ?? CURL_IPRESOLVE_WHATEVER))
    self.sockets = sockets
    // The connection outlives the exchange, so these callbacks get the table, which lives as long as the engine.
    let table = Unmanaged.passUnretained(sockets).toOpaque()
    setup.openSocket { table, _, address in
      guard let table, let address else { return curl_socket_t(-1) }
      return Unmanaged<OpenSockets>.fromOpaque(table).takeUnretainedValue().open(address.pointee)
    }
    setup.pointer(CURLOPT_OPENSOCKETDATA, table)
    setup.closeSocket { table, descriptor in
      guard let table else { return close(descriptor) }
      return Unmanaged<OpenSockets>.fromOpaque(table).takeUnretainedValue().close(descriptor)
    }
    setup.pointer(CURLOPT_CLOSESOCKETDATA, table)
    // The callbacks answer with the number of bytes taken; any other number stops the transfer.
    setup.receiver(CURLOPT_HEADERFUNCTION) { bytes, size, count, this in
      let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
      return Exchange.from(this).receive(line: line) ? line.count : line.count &+ 1
    }
    setup.pointer(CURLOPT_HEADERDATA, this)
    setup.receiver(CURLOPT_WRITEFUNCTION) { bytes, size, count, this in
      let body = UnsafeRawBufferPointer(start: bytes, count: size * count)
      return switch Exchange.from(this).receive(body: body) {
      case .taken: body.count
      case .stop: body.count &+ 1
      case .pause: Int(CURL_WRITEFUNC_PAUSE)
      }
    }
    setup.pointer(CURLOPT_WRITEDATA, this)
    return setup.code
  }

  /// The exchange behind a callback's or CURLOPT_PRIVATE's pointer, which `prepare` put there.
  static func from(_ pointer: UnsafeMutableRawPointer?) -> Exchange {
    guard let pointer else { preconditionFailure("libcurl lost its user data") }
    return Unmanaged.fromOpaque(pointer).takeUnretainedValue()
  }
}

/// Sets options until the first one that fails, and remembers its code.
private struct EasySetup {
  let easy: UnsafeMutableRawPointer
  var code = CURLE_OK

  mutating func long(_ option: CURLoption, _ value: Int) {
    if code == CURLE_OK { code = ccurl_set_long(easy, option, value) }
  }
  mutating func offset(_ option: CURLoption, _ value: curl_off_t) {
    if code == CURLE_OK { code = ccurl_set_offset(easy, option, value) }
  }
  mutating func string(_ option: CURLoption, _ value: String) {
    if code == CURLE_OK { code = ccurl_set_string(easy, option, value) }
  }
  mutating func pointer(_ option: CURLoption, _ value: UnsafeMutableRawPointer) {
    if code == CURLE_OK { code = ccurl_set_pointer(easy, option, value) }
  }
  mutating func list(_ option: CURLoption, _ value: UnsafeMutablePointer<curl_slist>?) {
    if code == CURLE_OK { code = ccurl_set_list(easy, option, value) }
  }
  mutating func receiver(_ option: CURLoption, _ function: @escaping curl_write_callback) {
    if code == CURLE_OK { code = ccurl_set_receiver(easy, option, function) }
  }
  mutating func debugReceiver(_ function: @escaping curl_debug_callback) {
    if code == CURLE_OK { code = ccurl_set_debug_receiver(easy, function) }
  }
  mutating func openSocket(_ function: @escaping curl_opensocket_callback) {
    if code == CURLE_OK { code = ccurl_set_open_socket(easy, function) }
  }
  mutating func closeSocket(_ function: @escaping curl_closesocket_callback) {
    if code == CURLE_OK { code = ccurl_set_close_socket(easy, function) }
  }
  mutating func prerequest(_ function: @escaping curl_prereq_callback) {
    if code == CURLE_OK { code = ccurl_set_prerequest(easy, function) }
  }
}
