internal import CCurl

/// One running fetch, over one hop or several. Passes on what libcurl's callbacks deliver, and performs what `Route`,
/// `HopConnection`, `Backend` and `FetchTiming` decide. Knows no multi handle.
///
/// The engine keeps it alive while libcurl has a pointer to it.
final class Exchange {
  let request: FetchRequest
  let sink: any FetchSink
  /// What the fetch began with; those of the engine may change.
  let options: TransferOptions
  let shared: GroupShare

  private(set) var route: Route
  let connection: HopConnection
  private var timing: FetchTiming
  /// The handle of the current hop; nil while the fetch waits for the next poll.
  private(set) var handle: EasyHandle?
  /// The proxy of the current hop.
  private(set) var proxy: Proxy?
  private var backend: any Backend
  private var errnoAtRequest = 0

  private var response: Response?
  private var bytesReceived: UInt64 = 0
  /// What ends the fetch. It takes precedence over the code with which libcurl then stops.
  private(set) var verdict: FetchResult.End?

  init(
    _ request: FetchRequest, url: URLParts, sink: any FetchSink, options: TransferOptions, shared: GroupShare,
    sockets: OpenSockets, now: Milliseconds
  ) {
    self.request = request
    self.sink = sink
    self.shared = shared
    self.options = options
    route = Route(
      url, limit: request.maxRedirects, schemes: options.protocols, isOffered: request.needsEncryptionForLogin)
    connection = HopConnection(sockets)
    timing = FetchTiming(request, at: now)
    backend = Transfer.backend(for: url, request: request, proxy: nil, login: nil)
  }

  var url: URLParts { route.url }
  var pausedSince: Milliseconds? { timing.pausedSince }
  var isPaused: Bool { pausedSince != nil }

  // MARK: Begin and end of a hop

  /// The next hop begins, on this handle.
  func beginHop(_ handle: EasyHandle) {
    self.handle = handle
    proxy = options.network.proxies.proxy(for: url)
    backend = Transfer.backend(for: url, request: request, proxy: proxy, login: login)
  }

  enum Step {
    case finished(FetchResult.End)
    /// Another hop: a redirect, or the same request over a new connection.
    case goesOn
  }

  /// libcurl is done with this hop's handle, which can still be asked.
  func hopEnded(_ code: CURLcode) -> Step {
    if let verdict { return .finished(verdict) }
    guard let handle else { return .finished(outcome(of: HopFacts(url), with: code)) }
    if code == CURLE_ABORTED_BY_CALLBACK, connection.mustBeFresh {
      timing.endHop(at: monotonicMilliseconds())
      return .goesOn
    }
    // The target is known, whatever became of the body.
    if route.isRedirected { return follow() }
    if response == nil, let response = backend.response(at: code, of: handle) {
      return .finished(offer(response) ? .complete : verdict ?? .refused)
    }
    return .finished(outcome(of: facts(handle), with: code))
  }

  /// What to do about a redirect whose body does not end; nil while there is time, and without one.
  func leaveRedirectBody(now: Milliseconds) -> Step? {
    guard verdict == nil, route.isBodyOverdue(at: now) else { return nil }
    connection.abandonAnswer()
    return follow()
  }

  private func follow() -> Step {
    do throws(TransferFailure) {
      try route.follow()
    } catch {
      return .finished(.failed(error))
    }
    connection.beginNextURL()
    timing.endHop(at: monotonicMilliseconds())
    return .goesOn
  }

  private func facts(_ handle: EasyHandle) -> HopFacts {
    var facts = HopFacts(url)
    facts.requestWasSent = timing.requestWasSent
    facts.framing = backend.framing
    facts.headCame = response != nil
    let mayEndByClose = url.scheme.channel == .tls && !handle.isMultiplexed
    facts.closeWasAnnounced = mayEndByClose ? connection.sawCloseNotify : nil
    facts.bytesReceived = bytesReceived
    facts.connectTimeoutSeconds = request.effectiveConnectTimeoutSeconds
    facts.detail = handle.errorText
    // libcurl never clears the number: an address that was tried before the one that worked leaves its own.
    let osErrno = handle.osErrno
    facts.osErrno = facts.requestWasSent && osErrno == errnoAtRequest ? 0 : Int32(clamping: osErrno)
    facts.proxy = proxy.map { proxy in
      ProxyFacts(
        proxy: proxy, connectStatus: handle.number(CURLINFO_HTTP_CONNECTCODE), isConnected: handle.isConnected,
        socksError: handle.number(CURLINFO_PROXY_ERROR))
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

  /// The connection is ready and the request goes out (CURLOPT_PREREQFUNCTION(3)). False stops the transfer.
  func requestStarts(over ports: OpenSockets.Connection) -> Bool {
    let isRepetition = timing.requestWasSent && !backend.beginsAgain()
    let decision =
      isRepetition
      ? connection.sendAgain(hasAnswer: response != nil || route.isRedirected)
      : connection.send(over: ports, url.scheme)
    switch decision {
    case .goesOut: break
    case .startsAgain: return false
    case .isUnasked:
      fail(.badResponse, "bytes before any request from \(url.host)")
      return false
    case .isCut:
      fail(.cut, "the connection to \(url.host) was lost, \(bytesReceived) bytes into the body")
      return false
    }
    timing.sendRequest(at: monotonicMilliseconds())
    errnoAtRequest = handle?.osErrno ?? 0
    return true
  }

  /// A TLS message that is not data (CURLOPT_DEBUGFUNCTION(3)).
  func receive(tlsMessage: UnsafeRawBufferPointer) {
    connection.receive(tlsMessage: tlsMessage, isPaused: isPaused)
  }

  /// One line of a head, or of an FTP server's replies. False stops the transfer.
  func receive(line: UnsafeRawBufferPointer) -> Bool {
    guard verdict == nil, let handle else { return false }
    noteActivity()
    shared.jar?.note(line)
    return perform(backend.take(line: line, from: handle))
  }

  enum BodyAnswer {
    case taken, stop
    /// libcurl keeps these bytes and delivers them again when the transfer is resumed (CURLOPT_WRITEFUNCTION(3)).
    case pause
  }

  /// The next bytes of the body.
  func receive(body: UnsafeRawBufferPointer) -> BodyAnswer {
    guard verdict == nil else { return stop() }
    let now = noteActivity()
    if !route.isRedirected, mustWait {
      timing.pause(at: now)
      return .pause
    }
    shared.allowance.take(body.count)
    return take(body) ? .taken : stop()
  }

  private func stop() -> BodyAnswer {
    if url.scheme.channel == .ssh { connection.cut() }
    return .stop
  }

  /// Whether no more of the body may be taken for now.
  var mustWait: Bool { shared.allowance.isExhausted || sink.isFull }

  @discardableResult private func noteActivity() -> Milliseconds {
    connection.noteAnswer()
    let now = monotonicMilliseconds()
    timing.noteActivity(at: now)
    return now
  }

  private func take(_ body: UnsafeRawBufferPointer) -> Bool {
    if route.isRedirected { return route.takeBody(body.count) }
    if response == nil {
      guard let handle, perform(backend.beginBody(of: handle)) else { return false }
    }
    guard sink.append(body) else {
      verdict = verdict ?? .refused
      return false
    }
    bytesReceived += UInt64(body.count)
    if backend.framing == .length(bytesReceived) { connection.noteWholeAnswer() }
    timing.take(body.count)
    return verdict == nil
  }

  /// False stops the transfer.
  private func perform(_ event: BackendEvent) -> Bool {
    switch event {
    case .nothing: return true
    case .response(let response): return offer(response)
    case .redirect(let location, let setsCookies):
      route.redirect(to: location, losingCookies: setsCookies && shared.jar == nil, at: monotonicMilliseconds())
      return true
    case .again(let manner):
      route.ask(again: manner, at: monotonicMilliseconds())
      return true
    case .failed(let failure):
      verdict = .failed(failure)
      return false
    }
  }

  private func offer(_ response: Response) -> Bool {
    self.response = response
    guard sink.accept(response) else {
      verdict = verdict ?? .refused
      return false
    }
    return verdict == nil
  }

  // MARK: Called by the engine

  func cancel() { verdict = .cancelled }

  private func fail(_ code: TransferFailure.Code, _ message: String) {
    verdict = .failed(TransferFailure(code: code, message: message))
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

  /// The same while libcurl waits for an SSH server and lets nobody else do anything. The rate limits are not known
  /// here.
  func checkWait() {
    checkTimeouts(now: monotonicMilliseconds(), share: 0)
    if verdict != nil { connection.cut() }
  }

  /// To be called while the exchange still has its handle.
  func result(_ end: FetchResult.End, now: Milliseconds) -> FetchResult {
    FetchResult(
      end: end, response: response, bytesReceived: bytesReceived, addressFamily: handle?.addressFamily,
      isMultiplexed: handle?.isMultiplexed ?? false, seconds: timing.seconds(at: now),
      times: timing.times(at: now), pace: timing.finalPace(at: now))
  }
}
