internal import CCurl
internal import Glibc

extension Exchange {
  /// Begins the next hop: sets up a handle, fresh or reset. The exchange has to outlive the transfer.
  ///
  /// These defaults of libcurl are wanted: certificates verified, DNS and TLS sessions cached.
  func prepare(_ handle: EasyHandle, _ sockets: OpenSockets) -> CURLcode {
    beginHop(handle)
    handle.clearError()
    var setup = EasyOptions(handle)
    setTarget(&setup, options)
    setLogin(&setup, handle, options.network)
    setConnection(&setup, options.network, sockets)
    if url.scheme.isHTTP { setHTTP(&setup, handle) } else { setFile(&setup) }
    setCallbacks(&setup, handle)
    return setup.code
  }

  private func setTarget(_ setup: inout EasyOptions, _ options: TransferOptions) {
    setup.string(CURLOPT_URL, url.requestText)
    // Only this one of those that are allowed: libcurl refuses a list with a protocol that it lacks. Redirects are
    // followed here, as credentials have to be dropped when the port or the scheme changes, too.
    setup.string(CURLOPT_PROTOCOLS_STR, url.scheme.rawValue)
    setup.long(CURLOPT_FOLLOWLOCATION, 0)
    setup.string(CURLOPT_USERAGENT, request.userAgent ?? options.userAgent)
    setup.long(CURLOPT_BUFFERSIZE, options.bufferSize)
    // Empty: none, whatever the environment says.
    setup.string(CURLOPT_PROXY, proxy?.text ?? "")
    setup.string(CURLOPT_NOPROXY, "")
  }

  /// How this hop presents a login; nil if it has none, or the job's own field takes its place.
  var login: LoginManner? {
    let isGiven = route.withCredentials && route.origin.hasLogin
    let mayHave = isGiven || options.network.netrc != nil && route.mayUseOwnLogin
    return mayHave && !hasField("authorization:") ? route.login : nil
  }

  /// Whether the job itself has such a field for this hop.
  /// - Parameter start: its name and the colon, in lower case.
  private func hasField(_ start: String) -> Bool {
    route.withCredentials && request.headers.contains { $0.utf8.map(lowercasedASCII).starts(with: start.utf8) }
  }

  /// The login for this hop's host. libcurl looks it up, but never follows a redirect itself, and forgets it with the
  /// handle. So no entry's password can go to another host, as it did when libcurl followed (CVE-2024-11053,
  /// CVE-2025-0167).
  private func setLogin(_ setup: inout EasyOptions, _ handle: EasyHandle, _ network: NetworkOptions) {
    let (user, password) = route.withCredentials ? (route.origin.user, route.origin.password) : (nil, nil)
    if user != nil || password != nil {
      if let user { setup.string(CURLOPT_USERNAME, user) }
      if let password { setup.string(CURLOPT_PASSWORD, password) }
    } else if let netrc = network.netrc, route.mayUseOwnLogin {
      handle.hasOwnSecrets = true
      setup.long(CURLOPT_NETRC, Int(CURL_NETRC_OPTIONAL.rawValue))
      setup.string(CURLOPT_NETRC_FILE, netrc)
    }
  }

  /// The cookies for this hop's host, which the handle forgets as well.
  private func setCookies(_ setup: inout EasyOptions, _ handle: EasyHandle) {
    guard let jar = shared.jar, jar.isUsable else { return }
    // A job's own field takes their place: two would be sent.
    if hasField("cookie:") { return }
    handle.hasOwnSecrets = true
    jar.attach(&setup)
  }

  private func setTLS(_ setup: inout EasyOptions, _ network: NetworkOptions) {
    if let file = network.authorities {
      setup.string(CURLOPT_CAINFO, file)
      if proxy?.scheme == "https" { setup.string(CURLOPT_PROXY_CAINFO, file) }
    }
    guard let certificate = network.certificate else { return }
    setup.string(CURLOPT_SSLCERT, certificate)
    setup.string(CURLOPT_SSLKEY, network.certificateKey ?? certificate)
    // Otherwise OpenSSL asks for the password of an encrypted key on the terminal, and all transfers wait.
    setup.string(CURLOPT_KEYPASSWD, "")
  }

  private func setConnection(_ setup: inout EasyOptions, _ network: NetworkOptions, _ sockets: OpenSockets) {
    setTLS(&setup, network)
    setup.long(CURLOPT_NOSIGNAL, 1)
    // Otherwise a transfer that gives up on a name waits for the resolver's thread, and all others with it.
    setup.long(CURLOPT_QUICK_EXIT, 1)
    setup.long(CURLOPT_CONNECTTIMEOUT, request.effectiveConnectTimeoutSeconds)
    setup.long(CURLOPT_TCP_KEEPALIVE, 1)
    setup.flag(CURLOPT_FRESH_CONNECT, connection.mustBeFresh || request.needsFreshConnection)
    let family =
      switch network.addressFamily == .any ? request.addressFamily : network.addressFamily {
      case .any: CURL_IPRESOLVE_WHATEVER
      case .ipv4: CURL_IPRESOLVE_V4
      case .ipv6: CURL_IPRESOLVE_V6
      }
    setup.long(CURLOPT_IPRESOLVE, Int(family))
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
  }

  private func setHTTP(_ setup: inout EasyOptions, _ handle: EasyHandle) {
    let mayShare = !request.keepsToHTTP1 && !connection.wasRepeated
    setup.long(CURLOPT_HTTP_VERSION, Int(mayShare ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1))
    // Plain http has nothing to multiplex, and libcurl 7.88 would wait for the first transfer to end.
    setup.flag(CURLOPT_PIPEWAIT, url.scheme.channel == .tls && mayShare)
    setup.long(CURLOPT_HTTP09_ALLOWED, 0)
    setup.flag(CURLOPT_NOBODY, request.wantsHeadOnly)
    setup.flag(CURLOPT_HTTP_CONTENT_DECODING, request.decodes)
    if request.decodes {
      // All that libcurl knows. What is sent is the field below. While the transfer is paused, libcurl keeps what it
      // has decoded of one buffer, so that must be small.
      setup.string(CURLOPT_ACCEPT_ENCODING, "")
      setup.long(CURLOPT_BUFFERSIZE, 16 << 10)
    }
    setup.long(CURLOPT_HTTP_TRANSFER_DECODING, 1)
    setup.long(CURLOPT_HTTPAUTH, (login ?? .atOnce).schemes)
    // What a server said of Digest is not for the next transfer.
    if login == .whenAsked { handle.hasOwnSecrets = true }
    setup.long(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    setCookies(&setup, handle)
    setup.list(
      CURLOPT_HTTPHEADER, handle.list(RequestFields.lines(for: request, withCredentials: route.withCredentials)))
    if let page = request.referer.flatMap({ try? URLParts($0) }), let referer = route.referer(page) {
      setup.string(CURLOPT_REFERER, referer)
    }
    guard url.scheme.channel == .tls else { return }
    // For `HopConnection`; nothing else reads what libcurl reports there.
    setup.debugReceiver { _, type, bytes, count, this in
      if type == CURLINFO_SSL_DATA_IN {
        Exchange.from(this).receive(tlsMessage: UnsafeRawBufferPointer(start: bytes, count: count))
      }
      return 0
    }
    setup.pointer(CURLOPT_DEBUGDATA, Unmanaged.passUnretained(self).toOpaque())
    setup.long(CURLOPT_VERBOSE, 1)
  }

  private func setFile(_ setup: inout EasyOptions) {
    setup.offset(CURLOPT_RESUME_FROM_LARGE, curl_off_t(clamping: request.rangeStart ?? 0))
    // Without a tunnel an HTTP proxy would answer in HTTP.
    setup.long(CURLOPT_HTTPPROXYTUNNEL, 1)
    setup.long(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    guard url.scheme.channel == .ssh else { return }
    // Without a file of known hosts libcurl trusts every host.
    guard let home = getenv("HOME") else { return setup.fail(CURLE_SSH) }
    setup.string(CURLOPT_SSH_KNOWNHOSTS, String(cString: home) + "/.ssh/known_hosts")
    let this = Unmanaged.passUnretained(self).toOpaque()
    setup.openSocket { this, _, address in
      guard let address else { return curl_socket_t(-1) }
      return Exchange.from(this).connection.open(address.pointee)
    }
    setup.pointer(CURLOPT_OPENSOCKETDATA, this)
    // libcurl waits for the server to close the file, within curl_multi_perform(3) and curl_multi_remove_handle(3).
    setup.progress { this, _, _, _, _ in
      Exchange.from(this).checkWait()
      return 0
    }
    setup.pointer(CURLOPT_XFERINFODATA, this)
    setup.flag(CURLOPT_NOPROGRESS, false)
  }

  private func setCallbacks(_ setup: inout EasyOptions, _ handle: EasyHandle) {
    let this = Unmanaged.passUnretained(self).toOpaque()
    setup.pointer(CURLOPT_PRIVATE, this)
    setup.pointer(CURLOPT_ERRORBUFFER, handle.errorBuffer)
    setup.prerequest { this, _, _, remotePort, localPort in
      Exchange.from(this).requestStarts(over: .init(localPort: localPort, remotePort: remotePort))
        ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
    }
    setup.pointer(CURLOPT_PREREQDATA, this)
    // These two return the number of bytes taken; any other number stops the transfer.
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
  }

  /// The exchange behind a callback's or CURLOPT_PRIVATE's pointer, which `prepare` set.
  static func from(_ pointer: UnsafeMutableRawPointer?) -> Exchange {
    guard let pointer else { preconditionFailure("libcurl called back without its user data") }
    return Unmanaged.fromOpaque(pointer).takeUnretainedValue()
  }
}
