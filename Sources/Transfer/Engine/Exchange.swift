internal import CCurl

/// One fetch on its way: what libcurl's callbacks fill in and what they decide. Knows no multi handle.
///
/// The engine keeps it alive while libcurl holds a pointer to it.
final class Exchange {
  /// The body of a redirect is read only to keep the connection; past this, or after this time, it isn't worth it.
  private static let redirectBodyLimit = 64 * 1024
  private static let redirectBodyWait: Milliseconds = 500

  let request: FetchRequest
  let sink: any FetchSink
  /// The first URL: what the job's credentials are for.
  let origin: URLParts
  private(set) var url: URLParts
  private(set) var withCredentials = true
  private let redirectSchemes: Set<String>
  private var redirects = 0

  var sockets: OpenSockets?
  /// The connection that was to be reused must not be: it had unread bytes on it, or was left in the middle of an answer.
  private(set) var needsFreshConnection = false
  /// libcurl was about to send this hop's request a second time.
  private(set) var wasRepeated = false
  /// The connection that this hop's request went to.
  private var entered: OpenSockets.Connection?
  /// Whether the connection that was made for the next request is of HTTP/2; nil where none was, or the TLS library doesn't
  /// show it.
  private var negotiatedHTTP2: Bool?

  private var reader: HeadReader
  private(set) var head: ResponseHead?
  private(set) var bytesReceived: UInt64 = 0
  /// The redirect that this hop's answer asks for, since when that is known, and the bytes of its body.
  private var redirect: (location: String, since: Milliseconds, body: Int)?
  /// Set by whatever wants libcurl to stop; outweighs the code with which libcurl then does.
  var verdict: FetchResult.End?

  /// The handle of the current hop; nil while the fetch waits for the next poll.
  var easy: UnsafeMutableRawPointer?
  var fieldList: UnsafeMutablePointer<curl_slist>?
  /// The one that the current hop goes through.
  var proxy: Proxy?
  let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

  /// What the rate limits still allow.
  var allowance = RateAllowance()
  /// Since when it is paused by us for want of an ``allowance``; the silence is then not the server's.
  private(set) var pausedSince: Milliseconds?
  var isPaused: Bool { pausedSince != nil }
  /// How fast the server is; runs from the first line of an answer.
  private var pace: Pace

  let started: Milliseconds
  private var firstRequest: Milliseconds?
  /// Nil until this hop's request is sent; until then libcurl's connect timeout is in charge, which leaves out the
  /// time spent waiting for a free connection.
  private var lastActivity: Milliseconds?
  private var errnoAtRequest: Int = 0
  private var sawCloseNotify = false

  init(
    _ request: FetchRequest, url: URLParts, sink: any FetchSink, redirectSchemes: Set<String>,
    now: Milliseconds
  ) {
    self.request = request
    self.redirectSchemes = redirectSchemes
    self.sink = sink
    origin = url
    self.url = url
    reader = HeadReader(scheme: url.scheme)
    pace = request.pace ?? Pace(over: request.floor?.seconds ?? 0)
    started = now
    errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
  }

  deinit {
    curl_slist_free_all(fieldList)
    errorText.deallocate()
  }

  func fail(_ code: TransferFailure.Code, _ message: String, osErrno: Int32 = 0) {
    verdict = .failed(TransferFailure(code: code, message: message, osErrno: osErrno))
  }

  // MARK: Called by libcurl

  /// The connection stands and the request goes out (CURLOPT_PREREQFUNCTION(3)). False where the connection must not be used.
  func requestStarts(localPort: Int32, remotePort: Int32) -> Bool {
    if lastActivity != nil { return requestRepeats() }
    // In TLS there may be session tickets waiting, and no way to tell from here.
    if url.scheme == "http", sockets?.hasUnreadBytes(localPort: localPort, remotePort: remotePort) == true {
      if needsFreshConnection { fail(.badResponse, "bytes before any request from \(url.host)") }
      needsFreshConnection = true
      return false
    }
    if url.scheme == "https", let sockets {
      let next = OpenSockets.Connection(localPort: localPort, remotePort: remotePort)
      // A fresh one is shared with nobody, whoever had its ports before.
      guard sockets.enter(next, self, isShareable: negotiatedHTTP2) || needsFreshConnection else {
        needsFreshConnection = true
        return false
      }
      entered = next
    }
    let now = monotonicMilliseconds()
    lastActivity = now
    firstRequest = firstRequest ?? now
    errnoAtRequest = osErrno
    sawCloseNotify = false
    return true
  }

  /// libcurl repeats a request by itself where a reused connection turns out to be dead, or a stream was refused. What it brings then would be taken
  /// for the first answer's rest; and after HTTP_1_1_REQUIRED (RFC 9113 section 7) libcurl 7.88 lets several transfers share one HTTP/1.1 connection at a time, and
  /// mixes their bodies. So it is stopped, and the hop begins again, over HTTP/1.1 on a connection of its own.
  private func requestRepeats() -> Bool {
    if wasRepeated || head != nil || redirect != nil {
      fail(.cut, "the connection to \(url.host) was lost, \(bytesReceived) bytes into the body")
    }
    (wasRepeated, needsFreshConnection) = (true, true)
    return false
  }

  /// A TLS record that is not data, decrypted (CURLOPT_DEBUGFUNCTION(3), CURLINFO_SSL_DATA_IN).
  ///
  /// libcurl 7.88 reports a TLS connection closed without close_notify as a good end: its BIO tells OpenSSL of no
  /// end of file. So the alert itself is looked for: the only message of two bytes, level and description, the
  /// description being 0 (RFC 8446, 6.1).
  func receive(tlsMessage: UnsafeRawBufferPointer) {
    // While we pause it, what comes is kept for later.
    if let entered, let sockets, !isPaused { sockets.noteRecord(on: entered) }
    if tlsMessage.count == 2, tlsMessage[1] == 0 { sawCloseNotify = true }
    // The last one of them that comes has the say.
    if let isHTTP2 = TLSHandshake.choosesHTTP2(tlsMessage) { negotiatedHTTP2 = isHTTP2 }
  }

  /// Lets others have the connection of this hop.
  func leaveConnection() {
    if let entered { sockets?.leave(entered, self) }
    (entered, negotiatedHTTP2) = (nil, nil)
  }

  /// One line of a head, or of an FTP server's talk. False stops the transfer.
  func receive(line: UnsafeRawBufferPointer) -> Bool {
    guard verdict == nil else { return false }
    noteActivity()
    guard url.isHTTP else { return true }
    switch reader.take(line) {
    case .nothing: return true
    case .malformed(let reason):
      fail(.badResponse, "\(reason) from \(url.host)")
      return false
    case .head(let head): return receive(head)
    }
  }

  enum BodyAnswer {
    case taken, stop
    /// libcurl keeps these bytes and brings them again once the transfer goes on (CURLOPT_WRITEFUNCTION(3)).
    case pause
  }

  /// The next bytes of the body.
  func receive(body: UnsafeRawBufferPointer) -> BodyAnswer {
    guard verdict == nil else { return .stop }
    let now = noteActivity()
    if redirect == nil, allowance.isExhausted {
      pausedSince = now
      pace.rest(at: now)
      return .pause
    }
    allowance.take(body.count)
    return take(body) ? .taken : .stop
  }

  @discardableResult private func noteActivity() -> Milliseconds {
    if let entered, let sockets { sockets.noteAnswer(on: entered) }
    let now = monotonicMilliseconds()
    lastActivity = now
    pace.run(at: now)
    return now
  }

  private func take(_ body: UnsafeRawBufferPointer) -> Bool {
    if let redirect {
      self.redirect?.body += body.count
      return redirect.body + body.count <= Self.redirectBodyLimit
    }
    if head == nil {
      guard !url.isHTTP else {
        fail(.badResponse, "body without a head from \(url.host)")
        return false
      }
      guard offer(fileHead()) else { return false }
    }
    guard sink.append(body) else {
      verdict = verdict ?? .refused
      return false
    }
    bytesReceived += UInt64(body.count)
    pace.take(body.count)
    return verdict == nil
  }

  private func receive(_ head: ResponseHead) -> Bool {
    var head = head
    head.isMultiplexed = isHTTP2
    let isRedirect = [301, 302, 303, 307, 308].contains(head.status)
    if isRedirect, let target = head.first("location"), !target.isEmpty {
      redirect = (target, monotonicMilliseconds(), 0)
      return true
    }
    // Over https it comes from beyond the tunnel.
    if head.status == 407, url.scheme == "http", let proxy, proxy.isHTTP {
      verdict = .failed(proxy.refusal(head.status))
      return false
    }
    if case .invalid(let reason) = head.framing {
      self.head = head
      fail(.badResponse, "\(reason) from \(url.host)")
      return false
    }
    return offer(head)
  }

  private func offer(_ head: ResponseHead) -> Bool {
    var head = head
    head.url = url
    self.head = head
    guard sink.accept(head) else {
      verdict = verdict ?? .refused
      return false
    }
    return verdict == nil
  }

  // MARK: The end of a hop

  enum Step {
    case finished(FetchResult.End)
    case followsRedirect
    /// The same request once more, on a new connection.
    case startsAgain
  }

  /// Called when libcurl has finished with this hop's handle, which is still there to be asked.
  func hopEnded(_ code: CURLcode) -> Step {
    if let verdict { return .finished(verdict) }
    if code == CURLE_ABORTED_BY_CALLBACK, needsFreshConnection {
      reader = HeadReader(scheme: url.scheme)
      lastActivity = nil
      return .startsAgain
    }
    // Whatever became of its body: where to go is known.
    if let redirect { return follow(redirect.location) }
    if !url.isHTTP, head == nil, let head = bodilessHead(code) {
      // May be refused; and whatever is said of a file that isn't there, that was all of it.
      return .finished(offer(head) ? .complete : verdict ?? .refused)
    }
    var facts = HopFacts(host: url.host, port: url.port, scheme: url.scheme)
    facts.requestWasSent = lastActivity != nil
    facts.framing = url.isHTTP ? head?.framing : nil
    facts.headCame = head != nil
    facts.closeWasAnnounced = url.scheme == "https" && !isHTTP2 ? sawCloseNotify : nil
    facts.bytesReceived = bytesReceived
    facts.connectTimeoutSeconds = connectTimeoutSeconds
    facts.detail = String(cString: errorText)
    // libcurl never clears the number: an address that was tried before the one that worked leaves its own.
    let osErrno = osErrno
    facts.osErrno = facts.requestWasSent && osErrno == errnoAtRequest ? 0 : Int32(clamping: osErrno)
    facts.proxy = proxy.map { proxy in
      ProxyFacts(
        proxy: proxy, connectStatus: number(CURLINFO_HTTP_CONNECTCODE), isConnected: connectTime > 0,
        socksError: number(CURLINFO_PROXY_ERROR))
    }
    return .finished(outcome(of: facts, with: code))
  }

  private func follow(_ location: String) -> Step {
    func refused(_ reason: String) -> Step {
      .finished(.failed(TransferFailure(code: .redirect, message: "\(reason) from \(url.host)")))
    }
    guard redirects < request.maxRedirects else {
      return refused("more than \(request.maxRedirects) redirects, the last one")
    }
    let target: URLParts
    do {
      target = try url.resolving(location)
    } catch {
      return refused("redirect to where it must not go (\(error.reason))")
    }
    guard redirectSchemes.contains(target.scheme) else {
      return refused("redirect to scheme \(target.scheme), which is not allowed,")
    }
    redirects += 1
    url = target
    // For good: what a foreign host sends back to the origin comes without them too.
    if !target.hasSameOrigin(as: origin) { withCredentials = false }

    redirect = nil
    wasRepeated = false
    reader = HeadReader(scheme: target.scheme)
    pace.rest(at: monotonicMilliseconds())
    lastActivity = nil
    return .followsRedirect
  }

  /// Streams of HTTP/2 have an end of their own.
  private var isHTTP2: Bool {
    number(CURLINFO_HTTP_VERSION) >= CURL_HTTP_VERSION_2_0
  }

  /// The family of the address that this hop's connection leads to, or was to lead to (CURLINFO_PRIMARY_IP(3)).
  private var currentFamily: FetchRequest.AddressFamily? {
    var pointer: UnsafeMutableRawPointer?
    guard let easy, ccurl_get_pointer(easy, CURLINFO_PRIMARY_IP, &pointer) == CURLE_OK, let pointer else { return nil }
    let address = String(cString: pointer.assumingMemoryBound(to: CChar.self))
    return address.isEmpty ? nil : address.contains(":") ? .ipv6 : .ipv4
  }

  private var osErrno: Int { number(CURLINFO_OS_ERRNO) }

  private func number(_ info: CURLINFO) -> Int {
    var number = 0
    guard let easy, ccurl_get_long(easy, info, &number) == CURLE_OK else { return 0 }
    return number
  }

  /// Microseconds until TCP connected, to the proxy where there is one; 0 if it has not.
  private var connectTime: curl_off_t {
    var time: curl_off_t = 0
    guard let easy, ccurl_get_offset(easy, CURLINFO_CONNECT_TIME_T, &time) == CURLE_OK else { return 0 }
    return time
  }

  // MARK: Time

  /// Lets a paused transfer go on. libcurl may bring bytes before this returns.
  func resume() {
    guard isPaused, let easy else { return }
    pausedSince = nil
    noteActivity()
    let code = curl_easy_pause(easy, CURLPAUSE_CONT)
    // Bytes refused while it goes on come back as the transfer's end.
    if code != CURLE_OK, verdict == nil, code != CURLE_WRITE_ERROR {
      fail(.cut, "the transfer from \(url.host) could not go on: \(String(cString: curl_easy_strerror(code)))")
    }
  }

  /// A server that is silent from the start is left when one that falls silent later would be.
  var connectTimeoutSeconds: Int {
    let idle = request.idleTimeoutSeconds
    return max(1, idle > 0 ? min(request.connectTimeoutSeconds, idle) : request.connectTimeoutSeconds)
  }

  /// Sets the verdict if a timeout has passed, or the server is too slow.
  /// - Parameter share: what the rate limits leave to this exchange, in bytes per second; nil without a limit.
  func checkTimeouts(now: Milliseconds, share: Double?) {
    guard let lastActivity, verdict == nil else { return checkTotal(now: now) }
    let idle = request.idleTimeoutSeconds
    // Time enough for bytes beyond those, which would make the answer a lie.
    if sink.hasAll, !isPaused, now - lastActivity >= 1000 {
      verdict = .complete
    } else if idle > 0, !isPaused, now - lastActivity >= Milliseconds(idle) * 1000 {
      fail(.stalled, "no data for \(idle) s from \(url.host)")
    } else if let floor = request.floor, let rate = pace.rate(at: now), rate < floor.least(share: share) {
      fail(
        .stalled,
        "\(url.host) sent \(Int(rate)) bytes a second over \(floor.seconds) s, and min-rate is \(floor.bytesPerSecond)")
    } else {
      checkTotal(now: now)
    }
  }

  /// What to do about a redirect whose body does not come to its end; nil while there is time, and without one.
  func leaveRedirectBody(now: Milliseconds) -> Step? {
    guard let redirect, verdict == nil, now - redirect.since >= Self.redirectBodyWait else { return nil }
    needsFreshConnection = true
    return follow(redirect.location)
  }

  private func checkTotal(now: Milliseconds) {
    guard let firstRequest, verdict == nil else { return }
    let total = request.totalTimeoutSeconds
    if total > 0, now - firstRequest >= Milliseconds(total) * 1000 {
      fail(.timeout, "not complete after \(total) s from \(url.host)")
    }
  }

  /// - Parameter connection: what ``connection`` said before libcurl let go of the handle.
  func result(
    _ end: FetchResult.End, over connection: (family: FetchRequest.AddressFamily?, isMultiplexed: Bool),
    now: Milliseconds
  ) -> FetchResult {
    pace.rest(at: now)
    return FetchResult(
      end: end, head: head, bytesReceived: bytesReceived, addressFamily: connection.family,
      isMultiplexed: connection.isMultiplexed, seconds: Double(now - started) / 1000, pace: pace)
  }

  /// What the current hop's connection is.
  var connection: (family: FetchRequest.AddressFamily?, isMultiplexed: Bool) { (currentFamily, isHTTP2) }
}
