internal import CCurl
internal import Glibc

/// One running fetch, over one hop or several. Passes on what libcurl's callbacks deliver, and performs what `Route`,
/// `HopConnection`, `ProtocolReader` and `FetchTiming` decide. Knows no multi handle.
///
/// The engine keeps it alive while libcurl has a pointer to it.
final class Exchange {
  let request: FetchRequest
  let sink: any FetchSink
  /// What the fetch began with; those of the engine may change.
  let options: TransferOptions
  /// What the rate limits still allow, and the cookies, if any: all fetches of a group share them.
  let allowance: RateAllowance
  private let jar: CookieJar?
  var caller: CheckedContinuation<FetchResult, Never>?

  private(set) var route: Route
  let connection: HopConnection
  private var timing: FetchTiming
  /// The handle of the current hop; nil while the fetch waits for the next poll.
  private(set) var handle: EasyHandle?
  private(set) var proxy: Proxy?
  private var reader: any ProtocolReader
  private var errnoAtRequest = 0
  /// The private addresses that the current hop was not let to, and whether it had others.
  private var refused = (addresses: [String](), isPartial: false)
  /// Why the current hop got no socket: errno(3); 0 if it got each.
  private var socketErrno: Int32 = 0

  private var response: Response?
  private var bytesReceived: UInt64 = 0
  /// What ends the fetch. It takes precedence over the code with which libcurl then stops.
  private(set) var verdict: FetchResult.End?

  init(
    _ request: FetchRequest, sink: any FetchSink, options: TransferOptions, allowance: RateAllowance, jar: CookieJar?,
    sockets: OpenSockets, now: Milliseconds
  ) {
    (self.request, self.sink, self.options) = (request, sink, options)
    (self.allowance, self.jar) = (allowance, jar)
    route = Route(
      request.url, limit: request.maxRedirects, schemes: options.protocols, isOffered: request.needsEncryptionForLogin)
    connection = HopConnection(sockets)
    timing = FetchTiming(request, at: now)
    reader = Transfer.reader(for: request.url, request: request, proxy: nil, login: nil)
  }

  var url: URLParts { route.url }
  var pausedSince: Milliseconds? { timing.pausedSince }
  var isPaused: Bool { pausedSince != nil }

  // MARK: Begin and end of a hop

  private func beginHop(_ handle: EasyHandle) {
    self.handle = handle
    proxy = options.network.proxies.proxy(for: url)
    (refused, socketErrno) = (([], false), 0)
    reader = Transfer.reader(
      for: url, request: request, proxy: proxy, login: login, netrc: isLoginGiven ? nil : options.network.netrc)
  }

  /// libcurl is done with this hop's handle, which can still be asked.
  /// - Returns: nil for another hop: a redirect, or the same request over a new connection.
  func hopEnded(_ code: CURLcode) -> FetchResult.End? {
    if let verdict { return verdict }
    guard let handle else { return outcome(of: HopFacts(url), with: code) }
    if code == CURLE_ABORTED_BY_CALLBACK, connection.mustBeFresh {
      timing.endHop(at: monotonicMilliseconds())
      return nil
    }
    // The target is known, whatever became of the body.
    if route.isRedirected { return follow() }
    if response == nil, let response = reader.response(at: code, of: handle) {
      return offer(response) ? .complete : verdict ?? .refused
    }
    if code != CURLE_OK, !refused.addresses.isEmpty, !refused.isPartial { return .failed(refusal) }
    // The resolver does not say that it got no socket or could not read a file.
    if code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY { socketErrno = OpenSockets.lack }
    return outcome(of: facts(handle), with: code)
  }

  /// The body of a redirect does not end.
  /// - Returns: as ``hopEnded(_:)``.
  func leaveRedirectBody() -> FetchResult.End? {
    connection.abandonAnswer()
    return follow()
  }

  private func follow() -> FetchResult.End? {
    do throws(TransferFailure) { try route.follow() } catch { return .failed(error) }
    connection.beginNextURL()
    timing.endHop(at: monotonicMilliseconds())
    return nil
  }

  private func facts(_ handle: EasyHandle) -> HopFacts {
    var facts = HopFacts(url)
    facts.requestWasSent = timing.requestWasSent
    facts.framing = reader.framing
    facts.headCame = response != nil
    facts.closeWasAnnounced = url.scheme.channel == .tls ? connection.sawCloseNotify : nil
    facts.bytesReceived = bytesReceived
    facts.connectTimeoutSeconds = request.effectiveConnectTimeoutSeconds
    facts.detail = handle.errorText
    // libcurl never clears the number: an address that was tried before the one that worked leaves its own.
    let osErrno = handle.osErrno
    facts.osErrno = facts.requestWasSent && osErrno == errnoAtRequest ? 0 : Int32(clamping: osErrno)
    facts.socketErrno = socketErrno
    if let proxy {
      (facts.proxy, facts.isProxyConnected) = (proxy, handle.isConnected)
      facts.connectStatus = handle.number(CURLINFO_HTTP_CONNECTCODE)
      facts.socksError = handle.number(CURLINFO_PROXY_ERROR)
    }
    return facts
  }

  /// Gives the handle back when no transfer is on it any more.
  /// - Parameter isEnded: libcurl is done with it, and may use the connection again.
  func releaseHandle(isEnded: Bool) -> EasyHandle? {
    guard let handle else { return nil }
    self.handle = nil
    if !isEnded, url.scheme.channel == .ssh { connection.cut() }
    connection.leave()
    return handle
  }

  // MARK: Called by libcurl

  private var refusesPrivate: Bool { options.network.refusesPrivate && proxy == nil }

  /// Opens a socket of this hop (CURLOPT_OPENSOCKETFUNCTION(3)); libcurl goes on with the next address if it gets none.
  private func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
    if refusesPrivate, let text = PrivateAddress.text(ifIn: address) {
      refused.addresses.append(text)
      return curl_socket_t(-1)
    }
    refused.isPartial = true
    let socket = connection.open(address.pointee)
    if socket < 0 { socketErrno = errno }
    return socket
  }

  private var refusal: TransferFailure {
    TransferFailure(
      code: .privateAddress,
      message: "\(url.host) leads to the private address \(refused.addresses.first ?? ""): `allow-private: no`")
  }

  /// The connection is ready and the request goes out (CURLOPT_PREREQFUNCTION(3)). False stops the transfer.
  private func requestStarts(to address: UnsafePointer<CChar>?, over ports: OpenSockets.Connection) -> Bool {
    // The connection may be from before private addresses were refused.
    if refusesPrivate, let address, PrivateAddress.contains(address) {
      refused.addresses.append(String(cString: address))
      verdict = .failed(refusal)
      return false
    }
    let isRepetition = timing.requestWasSent && !reader.beginsAgain()
    let decision =
      isRepetition
      ? connection.sendAgain(hasAnswer: response != nil || route.isRedirected)
      : connection.send(over: ports, url.scheme)
    switch decision {
    case .goesOut: break
    case .startsAgain: return false
    case .isUnasked: return fail(.badResponse, "bytes before any request from \(url.host)")
    case .isCut: return fail(.cut, "the connection to \(url.host) was lost, \(bytesReceived) bytes into the body")
    }
    timing.sendRequest(at: monotonicMilliseconds())
    errnoAtRequest = handle?.osErrno ?? 0
    return true
  }

  /// One line of a head, or of an FTP server's replies. False stops the transfer.
  func receive(line: UnsafeRawBufferPointer) -> Bool {
    guard verdict == nil, handle != nil else { return false }
    noteActivity()
    jar?.note(line)
    return perform(reader.take(line: line))
  }

  /// - Returns: nil if libcurl is to keep these bytes and deliver them again when the transfer is resumed
  ///   (CURLOPT_WRITEFUNCTION(3)); false stops the transfer.
  private func receive(body: UnsafeRawBufferPointer) -> Bool? {
    if verdict == nil {
      let now = noteActivity()
      if !route.isRedirected, mustWait {
        timing.pause(at: now)
        return nil
      }
      allowance.take(body.count)
      if take(body) { return true }
    }
    if url.scheme.channel == .ssh { connection.cut() }
    return false
  }

  var mustWait: Bool { allowance.isExhausted || sink.isFull }

  @discardableResult private func noteActivity() -> Milliseconds {
    connection.noteAnswer()
    let now = monotonicMilliseconds()
    timing.noteActivity(at: now)
    return now
  }

  private func take(_ body: UnsafeRawBufferPointer) -> Bool {
    if route.isRedirected { return route.takeBody(body.count) }
    if response == nil { guard let handle, perform(reader.beginBody(of: handle)) else { return false } }
    guard sink.append(body) else {
      verdict = verdict ?? .refused
      return false
    }
    bytesReceived += UInt64(body.count)
    timing.take(body.count)
    return verdict == nil
  }

  private func perform(_ event: ProtocolEvent) -> Bool {
    switch event {
    case .nothing: break
    case .response(let response): return offer(response)
    case .redirect(let location, let setsCookies):
      route.redirect(to: location, losingCookies: setsCookies && jar == nil, at: monotonicMilliseconds())
    case .again(let manner): route.ask(again: manner, at: monotonicMilliseconds())
    case .failed(let failure):
      verdict = .failed(failure)
      return false
    }
    return true
  }

  private func offer(_ response: Response) -> Bool {
    self.response = response
    if !sink.accept(response) { verdict = verdict ?? .refused }
    return verdict == nil
  }

  // MARK: Called by the engine

  func cancel() { verdict = .cancelled }

  /// - Returns: false, with which a callback stops the transfer.
  @discardableResult private func fail(_ code: TransferFailure.Code, _ message: String) -> Bool {
    verdict = .failed(TransferFailure(code: code, message: message))
    return false
  }

  /// Resumes a paused transfer. libcurl may deliver bytes before this returns.
  func resume() {
    guard isPaused, let handle else { return }
    connection.noteAnswer()
    timing.resume(at: monotonicMilliseconds())
    let code = curl_easy_pause(handle.pointer, CURLPAUSE_CONT)
    // Bytes refused meanwhile come back as the transfer's end.
    if code != CURLE_OK, verdict == nil, code != CURLE_WRITE_ERROR {
      fail(.cut, "the transfer from \(url.host) could not be resumed: \(String(cString: curl_easy_strerror(code)))")
    }
  }

  /// Sets the verdict if a timeout has passed, or the server is too slow.
  /// - Parameter share: what the rate limits leave to this exchange, in bytes per second; nil without a limit.
  func checkTimeouts(now: Milliseconds, share: Double?) {
    guard verdict == nil else { return }
    verdict = timing.end(at: now, host: url.host, hasAll: sink.hasAll, share: share)
  }

  /// The same while libcurl waits for a server and lets nobody else do anything. The rate limits are not known here.
  /// - Returns: whether libcurl is to give up. Over SSH it would wait again, to say goodbye.
  private func checkWait() -> Bool {
    checkTimeouts(now: monotonicMilliseconds(), share: 0)
    guard verdict != nil else { return false }
    // A reply that comes late would be taken for that to the next command.
    connection.cut()
    return url.scheme.channel != .ssh
  }

  /// To be called while the exchange still has its handle.
  func result(_ end: FetchResult.End, now: Milliseconds) -> FetchResult {
    FetchResult(
      end: end, response: response, bytesReceived: bytesReceived, addressFamily: handle?.addressFamily,
      isOfOtherServer: url.server != route.origin.server, seconds: timing.seconds(at: now),
      times: timing.times(at: now), pace: timing.finalPace(at: now))
  }

  /// Begins the next hop: sets up a handle, fresh or reset. The exchange has to outlive the transfer. These defaults of
  /// libcurl are wanted: certificates verified, DNS and TLS sessions cached.
  func prepare(_ handle: EasyHandle) -> CURLcode {
    beginHop(handle)
    handle.clearError()
    var setup = EasyOptions(handle)
    setTarget(&setup)
    setLogin(&setup, handle)
    setConnection(&setup)
    if url.scheme.isHTTP { setHTTP(&setup, handle) } else { setFile(&setup) }
    setCallbacks(&setup, handle)
    return setup.code
  }

  private func setTarget(_ setup: inout EasyOptions) {
    setup.string(CURLOPT_URL, url.requestText)
    // Only this one of those that are allowed: libcurl refuses a list with a protocol that it lacks. Redirects are
    // followed here, as credentials have to be dropped when the port or the scheme changes, too.
    setup.string(CURLOPT_PROTOCOLS_STR, url.scheme.rawValue)
    setup.long(CURLOPT_FOLLOWLOCATION, 0)
    setup.string(CURLOPT_USERAGENT, request.userAgent ?? options.userAgent)
    setup.long(CURLOPT_BUFFERSIZE, EasyHandle.bufferSize)
    // Empty: none, whatever the environment says.
    setup.string(CURLOPT_PROXY, proxy?.text ?? "")
    setup.string(CURLOPT_NOPROXY, "")
    setup.long(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
  }

  private var isLoginGiven: Bool { route.withCredentials && route.origin.hasLogin }

  /// How this hop presents a login; nil if it has none, or the job's own field takes its place.
  var login: LoginManner? {
    let mayHave = isLoginGiven || options.network.netrc != nil && route.mayUseOwnLogin
    return mayHave && !hasField("authorization:") ? route.login : nil
  }

  /// - Parameter start: its name and the colon, in lower case.
  private func hasField(_ start: String) -> Bool {
    route.withCredentials && request.headers.contains { $0.utf8.map(lowercasedASCII).starts(with: start.utf8) }
  }

  /// The login for this hop's host. libcurl looks it up, but never follows a redirect itself, and forgets it with the
  /// handle: no entry's password can go to another host (see README).
  private func setLogin(_ setup: inout EasyOptions, _ handle: EasyHandle) {
    if isLoginGiven {
      if let user = route.origin.user { setup.string(CURLOPT_USERNAME, user) }
      if let password = route.origin.password { setup.string(CURLOPT_PASSWORD, password) }
    } else if let netrc = options.network.netrc, route.mayUseOwnLogin {
      handle.hasOwnSecrets = true
      setup.long(CURLOPT_NETRC, Int(CURL_NETRC_OPTIONAL.rawValue))
      setup.string(CURLOPT_NETRC_FILE, netrc)
    }
  }

  private func setCookies(_ setup: inout EasyOptions, _ handle: EasyHandle) {
    guard let jar, jar.isUsable else { return }
    // A job's own field takes their place: two would be sent.
    if hasField("cookie:") { return }
    handle.hasOwnSecrets = true
    jar.attach(&setup)
  }

  private func setTLS(_ setup: inout EasyOptions) {
    let network = options.network
    if let file = network.authorities {
      // A libcurl that was built with a directory of authorities (CURLOPT_CAPATH(3)) trusts those as well.
      setup.string(CURLOPT_CAINFO, file)
      setup.string(CURLOPT_CAPATH, "/dev/null")
      if proxy?.scheme == "https" {
        setup.string(CURLOPT_PROXY_CAINFO, file)
        setup.string(CURLOPT_PROXY_CAPATH, "/dev/null")
      }
    }
    guard let certificate = network.certificate else { return }
    setup.string(CURLOPT_SSLCERT, certificate)
    setup.string(CURLOPT_SSLKEY, network.certificateKey ?? certificate)
    // Otherwise OpenSSL asks for the password of an encrypted key on the terminal, and all transfers wait.
    setup.string(CURLOPT_KEYPASSWD, "")
  }

  private func setConnection(_ setup: inout EasyOptions) {
    setTLS(&setup)
    setup.long(CURLOPT_NOSIGNAL, 1)
    // Otherwise a transfer that gives up on a name waits for the resolver's thread, and all others with it.
    setup.long(CURLOPT_QUICK_EXIT, 1)
    setup.long(CURLOPT_CONNECTTIMEOUT, request.effectiveConnectTimeoutSeconds)
    setup.long(CURLOPT_TCP_KEEPALIVE, 1)
    setup.flag(CURLOPT_FRESH_CONNECT, connection.mustBeFresh || request.needsFreshConnection)
    let network = options.network
    let family =
      switch network.addressFamily == .any ? request.addressFamily : network.addressFamily {
      case .any: CURL_IPRESOLVE_WHATEVER
      case .ipv4: CURL_IPRESOLVE_V4
      case .ipv6: CURL_IPRESOLVE_V6
      }
    setup.long(CURLOPT_IPRESOLVE, Int(family))
    setup.set {
      ccurl_set_open_socket($0) { this, _, address in
        guard let address else { return curl_socket_t(-1) }
        return Exchange.from(this).openSocket(address)
      }
    }
    // The connection outlives the exchange, so this callback gets the table, which lives as long as the engine.
    let table = Unmanaged.passUnretained(connection.sockets).toOpaque()
    setup.set {
      ccurl_set_close_socket($0) { table, descriptor in
        guard let table else { return close(descriptor) }
        return Unmanaged<OpenSockets>.fromOpaque(table).takeUnretainedValue().close(descriptor)
      }
    }
    setup.pointer(CURLOPT_CLOSESOCKETDATA, table)
  }

  private func setHTTP(_ setup: inout EasyOptions, _ handle: EasyHandle) {
    // HTTP/2 is slower (Benchmarks/NOTES.md), and with libcurl a stream that was cut may look whole.
    setup.long(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
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
    setCookies(&setup, handle)
    setup.list(CURLOPT_HTTPHEADER, handle.list(request.headerLines(withCredentials: route.withCredentials)))
    if let page = request.referer.flatMap({ try? URLParts($0) }), let referer = route.referer(page) {
      setup.string(CURLOPT_REFERER, referer)
    }
    guard url.scheme.channel == .tls else { return }
    // For `HopConnection`; nothing else reads what libcurl reports there.
    setup.set {
      ccurl_set_debug_receiver($0) { _, type, bytes, count, this in
        if type == CURLINFO_SSL_DATA_IN {
          let (this, message) = (Exchange.from(this), UnsafeRawBufferPointer(start: bytes, count: count))
          this.connection.receive(tlsMessage: message, isPaused: this.isPaused)
        }
        return 0
      }
    }
    setup.long(CURLOPT_VERBOSE, 1)
  }

  private func setFile(_ setup: inout EasyOptions) {
    let start = curl_off_t(clamping: request.rangeStart ?? 0)
    setup.set { ccurl_set_offset($0, CURLOPT_RESUME_FROM_LARGE, start) }
    // Without a tunnel an HTTP proxy would answer in HTTP.
    setup.long(CURLOPT_HTTPPROXYTUNNEL, 1)
    // libcurl waits for an FTP server to say that all is sent, and for an SSH server to close the file, within
    // curl_multi_perform(3) and curl_multi_remove_handle(3).
    setup.set { ccurl_set_progress($0) { this, _, _, _, _ in Exchange.from(this).checkWait() ? 1 : 0 } }
    setup.flag(CURLOPT_NOPROGRESS, false)
    guard url.scheme.channel == .ssh else { return }
    // Without a file of known hosts libcurl trusts every host.
    guard let home = getenv("HOME") else {
      fail(.local, "sftp finds the keys of hosts in ~/.ssh/known_hosts, and HOME is not set: set it")
      return setup.fail(CURLE_SSH)
    }
    setup.string(CURLOPT_SSH_KNOWNHOSTS, String(cString: home) + "/.ssh/known_hosts")
  }

  private func setCallbacks(_ setup: inout EasyOptions, _ handle: EasyHandle) {
    let this = Unmanaged.passUnretained(self).toOpaque()
    for option in [
      CURLOPT_PRIVATE, CURLOPT_OPENSOCKETDATA, CURLOPT_DEBUGDATA, CURLOPT_XFERINFODATA, CURLOPT_PREREQDATA,
      CURLOPT_HEADERDATA, CURLOPT_WRITEDATA,
    ] {
      setup.pointer(option, this)
    }
    setup.pointer(CURLOPT_ERRORBUFFER, handle.errorBuffer)
    setup.set {
      ccurl_set_prerequest($0) { this, address, _, remotePort, localPort in
        Exchange.from(this).requestStarts(to: address, over: .init(localPort: localPort, remotePort: remotePort))
          ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
      }
    }
    // These two return the number of bytes taken; any other number stops the transfer.
    setup.receiver(CURLOPT_HEADERFUNCTION) { bytes, size, count, this in
      let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
      return Exchange.from(this).receive(line: line) ? line.count : line.count &+ 1
    }
    setup.receiver(CURLOPT_WRITEFUNCTION) { bytes, size, count, this in
      let body = UnsafeRawBufferPointer(start: bytes, count: size * count)
      guard let isTaken = Exchange.from(this).receive(body: body) else { return Int(CURL_WRITEFUNC_PAUSE) }
      return isTaken ? body.count : body.count &+ 1
    }
  }

  /// The exchange behind a callback's or CURLOPT_PRIVATE's pointer, which `prepare` set.
  static func from(_ pointer: UnsafeMutableRawPointer?) -> Exchange {
    guard let pointer else { preconditionFailure("libcurl called back without its user data") }
    return Unmanaged.fromOpaque(pointer).takeUnretainedValue()
  }
}

package struct TransferOptions: Sendable {
  /// Schemes of URLs that may be fetched; a redirect may lead to `http` and `https` among them only.
  package var protocols: Set<Scheme>
  package var network: NetworkOptions
  /// The User-Agent field of requests that give none.
  package var userAgent: String

  package init(
    protocols: Set<Scheme> = [.http, .https], network: NetworkOptions = NetworkOptions(), userAgent: String = "spoolrun"
  ) { (self.protocols, self.network, self.userAgent) = (protocols, network, userAgent) }
}
