internal import CCurl
internal import Glibc

/// Runs any number of fetches on one libcurl multi handle (libcurl-multi(3)). One thread drives it: `advance` runs
/// every callback, and `fetch` must be called on the same thread. Hence no locks.
package final class TransferEngine {
  /// Timeouts have whole seconds; they are checked this often while something runs.
  private static let timerInterval: Milliseconds = 250
  /// Milliseconds between two looks at a sink that is full. It empties within a few.
  private static let sinkInterval: Int32 = 1

  private var options: TransferOptions
  private let multi: UnsafeMutableRawPointer
  /// Kept until the multi handle is gone, which closes the last of them.
  private let sockets = OpenSockets()
  private var idleHandles: [EasyHandle] = []
  private static let mostIdle = 16
  private var jars: [FetchRequest.ID: CookieJar] = [:]
  private(set) var running: [FetchRequest.ID: Exchange] = [:]
  private var mostRunning = 0
  package private(set) var lastWait = 0.0
  /// Exchanges whose next hop begins at the next wait.
  private var toStart: [Exchange] = []
  var isPerforming = false
  private var isWaitingForSink = false
  private var cancelledInCallback: [Exchange] = []
  private var nextTimerCheck: Milliseconds = 0
  var limiter = RateLimiter()

  package init(_ options: TransferOptions) throws(TransferError) {
    try Libcurl.start()
    guard !options.protocols.isEmpty else { throw TransferError(description: "no protocol enabled") }
    guard let multi = curl_multi_init() else { throw TransferError(description: "out of memory") }
    (self.options, self.multi) = (options, multi)
  }

  /// A fetch that runs keeps the engine alive, so none is left.
  deinit {
    idleHandles = []
    curl_multi_cleanup(multi)
  }

  /// Runs one request to its end, redirects followed. Reports every failure in the result. The request is sent by the
  /// next ``wait(milliseconds:descriptors:)``, which the loop calls.
  ///
  /// Ignores the cancellation of the task, which may come on any thread: see `cancel`.
  package func fetch(_ request: FetchRequest, into sink: any FetchSink) async -> FetchResult {
    precondition(running[request.id] == nil, "two fetches with one id")
    let jar: CookieJar?
    do throws(TransferFailure) {
      try request.check(allowing: options.protocols)
      if let problem = options.network.problem { throw problem }
      jar = try self.jar(for: request)
    } catch {
      return FetchResult(end: .failed(error))
    }
    let now = monotonicMilliseconds()
    let exchange = Exchange(
      request, sink: sink, options: options, allowance: allowance(of: request, at: now), jar: jar, sockets: sockets,
      now: now)
    return await withCheckedContinuation { continuation in
      exchange.caller = continuation
      running[request.id] = exchange
      toStart.append(exchange)
      keepConnections()
    }
  }

  private func jar(for request: FetchRequest) throws(TransferFailure) -> CookieJar? {
    guard case .session(let file) = options.network.cookies else { return nil }
    if let jar = request.group.flatMap({ jars[$0] }) { return jar }
    let jar = try CookieJar(file: file)
    if let group = request.group { jars[group] = jar }
    return jar
  }

  /// Lets four connections stay open for each fetch of the most that ran at once. By itself libcurl counts those that
  /// run now: when many end together, it closes connections that the next ones need.
  private func keepConnections() {
    guard running.count > mostRunning else { return }
    mostRunning = running.count
    // The option is older than any libcurl that is loaded, and takes every number.
    _ = ccurl_keep_connections(multi, 4 * mostRunning)
  }

  /// Reaches servers differently from the next fetch on. Those that run, and their cookies, are not changed.
  package func use(_ network: NetworkOptions) { options.network = network }

  /// Forgets the cookies that servers set in fetches of a group. None of them runs any more.
  package func forget(_ group: FetchRequest.ID) { jars[group] = nil }

  /// Ends the fetch with that id at once with `.cancelled`: its sink is not called any more. Does nothing if it is not
  /// running. May be called from a sink.
  package func cancel(_ id: FetchRequest.ID) {
    guard let exchange = running[id] else { return }
    exchange.cancel()
    // libcurl does not release handles within a callback (CURLM_RECURSIVE_API_CALL): `advance` does it right after.
    if isPerforming { cancelledInCallback.append(exchange) } else { finish(exchange, .cancelled) }
  }

  /// Begins the fetches that wait, and waits up to `milliseconds` for traffic or for one of `descriptors` to be
  /// readable.
  /// - Returns: those of `descriptors` that are readable.
  @discardableResult package func wait(milliseconds: Int32, descriptors: [Int32]) -> [Int32] {
    startHops()
    var limit = milliseconds
    if isWaitingForSink { limit = min(limit, Self.sinkInterval) }
    if !running.isEmpty {
      let now = monotonicMilliseconds()
      limit = min(limit, Int32(clamping: max(0, nextTimerCheck - now)))
      if limiter.isLimited { limit = min(limit, Int32(clamping: max(0, limiter.nextDeal - now))) }
    }
    var extra = descriptors.map { curl_waitfd(fd: $0, events: Int16(CURL_WAIT_POLLIN), revents: 0) }
    var count: Int32 = 0
    let code = extra.withUnsafeMutableBufferPointer {
      curl_multi_poll(multi, $0.baseAddress, UInt32($0.count), limit, &count)
    }
    if code != CURLM_OK {
      failAll(code)
      // Most likely there is no memory. A caller in a loop must not spin.
      usleep(100_000)
    }
    return extra.filter { $0.revents != 0 }.map(\.fd)
  }

  /// Moves the transfers on, and resumes the callers of finished fetches.
  package func advance() {
    perform()
    dealRates()
    resumeThoseWithRoom()
    reapEndedHops()
    checkTimers()
  }

  // MARK: The steps of wait and advance

  private func startHops() {
    let exchanges = toStart
    toStart = []
    for exchange in exchanges where exchange.handle == nil {
      guard let handle = idleHandles.popLast() ?? EasyHandle() else {
        finish(exchange, .failed(TransferFailure(code: .outOfMemory, message: "out of memory")))
        continue
      }
      let code = exchange.prepare(handle)
      guard code == CURLE_OK else {
        finish(exchange, exchange.verdict ?? outcome(of: HopFacts(exchange.url), with: code))
        continue
      }
      let added = curl_multi_add_handle(multi, handle.pointer)
      if added != CURLM_OK { finish(exchange, Self.failure(added)) }
    }
  }

  private func perform() {
    var handles: Int32 = 0
    isPerforming = true
    let code = curl_multi_perform(multi, &handles)
    isPerforming = false
    finishCancelled()
    if code != CURLM_OK { failAll(code) }
  }

  private func finishCancelled() {
    for exchange in cancelledInCallback { finish(exchange, .cancelled) }
    cancelledInCallback = []
  }

  private func reapEndedHops() {
    var left: Int32 = 0
    while let message = curl_multi_info_read(multi, &left) {
      guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
      // Read before the handle is removed, which frees the message (curl_multi_info_read(3)).
      let code = ccurl_message_result(message)
      var pointer: UnsafeMutableRawPointer?
      ccurl_get_pointer(easy, CURLINFO_PRIVATE, &pointer)
      let exchange = Exchange.from(pointer)
      goOn(exchange, exchange.hopEnded(code), reusable: code == CURLE_OK)
    }
  }

  private func goOn(_ exchange: Exchange, _ end: FetchResult.End?, reusable: Bool) {
    if let end { return finish(exchange, end, reusable: reusable) }
    release(exchange, reusable: reusable)
    toStart.append(exchange)
  }

  private func checkTimers() {
    let now = monotonicMilliseconds()
    guard now >= nextTimerCheck, !running.isEmpty else { return }
    nextTimerCheck = now + Self.timerInterval
    let exchanges = Array(running.values)
    let shares = limiter.shares(of: rateMembers(exchanges))
    for exchange in exchanges {
      exchange.checkTimeouts(now: now, share: shares[ObjectIdentifier(exchange.allowance)] ?? nil)
      if let verdict = exchange.verdict {
        finish(exchange, verdict)
      } else if exchange.route.isBodyOverdue(at: now) {
        goOn(exchange, exchange.leaveRedirectBody(), reusable: false)
      }
    }
  }

  private func resumeThoseWithRoom() {
    let paused = running.values.filter { $0.isPaused && !$0.allowance.isExhausted }
    isWaitingForSink = !paused.isEmpty
    resume(paused)
  }

  private func resume(_ paused: [Exchange]) {
    isPerforming = true
    for exchange in paused where !exchange.mustWait { exchange.resume() }
    isPerforming = false
    finishCancelled()
  }

  // MARK: The end of a fetch

  private func finish(_ exchange: Exchange, _ end: FetchResult.End, reusable: Bool = false) {
    let now = monotonicMilliseconds()
    let result = exchange.result(end, now: now)
    if let times = result.times { lastWait = times.wait }
    release(exchange, reusable: reusable)
    guard running.removeValue(forKey: exchange.request.id) != nil else { return }
    toStart.removeAll { $0 === exchange }
    noteDebt(of: exchange, at: now)
    exchange.caller?.resume(returning: result)
  }

  /// Takes the handle from libcurl, which closes the connection if a transfer was on it.
  private func release(_ exchange: Exchange, reusable: Bool) {
    guard let handle = exchange.releaseHandle(isEnded: reusable) else { return }
    let code = curl_multi_remove_handle(multi, handle.pointer)
    // A reset keeps the last errno (CURLINFO_OS_ERRNO(3)), so a handle that failed is not used again.
    guard reusable, code == CURLM_OK, idleHandles.count < Self.mostIdle, !handle.hasOwnSecrets else { return }
    curl_easy_reset(handle.pointer)
    idleHandles.append(handle)
  }

  private func failAll(_ code: CURLMcode) { for exchange in running.values { finish(exchange, Self.failure(code)) } }

  private static func failure(_ code: CURLMcode) -> FetchResult.End {
    let message = "libcurl: \(String(cString: curl_multi_strerror(code)))"
    return .failed(TransferFailure(code: .outOfMemory, message: message))
  }
}

/// The rate limits of an engine, which may change while fetches run.
extension TransferEngine {
  /// Sets the rates that fetches share. A fetch takes its share of the first one that covers its class, or has no such
  /// limit.
  package func share(_ rates: [SharedRate]) {
    guard rates != limiter.sharedRates else { return }
    limiter.share(rates)
    adjustAllowances()
  }

  /// Sets the limits of a group of fetches, also of those that run.
  /// - Parameter rate: of the group, in bytes per second; nil for no limit.
  /// - Parameter rateClass: decides which of the shared rates it takes its share of; nil for a group that is no more.
  package func limit(group: FetchRequest.ID, to rate: UInt64?, of rateClass: Int?) {
    let isSame = rate == limiter.rate(of: group)
    if isSame, rateClass == limiter.rateClass(of: group), limiter.isKnown(group) { return }
    limiter.limit(group, to: rate, of: rateClass)
    // A class only says which shared rate counts.
    if !isSame || !limiter.sharedRates.isEmpty { adjustAllowances() }
  }

  /// A transfer that waits for a limit which is no more goes on with the next poll.
  private func adjustAllowances() {
    for exchange in running.values { limiter.adjust(exchange.allowance, of: exchange.request.group) }
  }

  private func rateMembers(_ exchanges: some Sequence<Exchange>) -> [RateLimiter.Member] {
    exchanges.map { .init(allowance: $0.allowance, group: $0.request.group, isPaused: $0.isPaused) }
  }

  private func allowance(of request: FetchRequest, at now: Milliseconds) -> RateAllowance {
    if let group = request.group, let other = running.values.first(where: { $0.request.group == group }) {
      return other.allowance
    }
    return limiter.newAllowance(for: request.group, at: now)
  }

  private func noteDebt(of exchange: Exchange, at now: Milliseconds) {
    guard !running.values.contains(where: { $0.allowance === exchange.allowance }) else { return }
    limiter.noteDebt(of: exchange.allowance, group: exchange.request.group, at: now)
  }

  private func dealRates() {
    guard !running.isEmpty, limiter.isLimited else { return }
    let exchanges = running.values
    guard limiter.deal(to: rateMembers(exchanges), at: monotonicMilliseconds()) else { return }
    // The one that waits longest first: the first may take all that its group was dealt, and would be the same each
    // time.
    resume(exchanges.filter(\.isPaused).sorted { ($0.pausedSince ?? 0) < ($1.pausedSince ?? 0) })
  }
}

/// What runs fetches: a ``TransferEngine``, or a simulated network in its place. All calls come on one thread.
package protocol Fetcher: AnyObject {
  /// Seconds that the response to the latest request took to come.
  var lastWait: Double { get }
  func fetch(_ request: FetchRequest, into sink: any FetchSink) async -> FetchResult
  func cancel(_ id: FetchRequest.ID)
  func use(_ network: NetworkOptions)
  func forget(_ group: FetchRequest.ID)
  func share(_ rates: [SharedRate])
  func limit(group: FetchRequest.ID, to rate: UInt64?, of rateClass: Int?)
}

extension TransferEngine: Fetcher {}

extension FetchRequest {
  /// Whether all that it asks for can be sent.
  /// - Throws: a failure that quotes no value.
  func check(allowing protocols: Set<Scheme>) throws(TransferFailure) {
    guard protocols.contains(url.scheme) else {
      throw TransferFailure(code: .protocolNotEnabled, message: "protocol \(url.scheme) is not enabled")
    }
    if let problem = headers.lazy.compactMap(Self.problem(ofHeader:)).first {
      throw TransferFailure(code: .badURL, message: problem)
    }
    for (name, value) in [("validator", ifRange), ("user agent", userAgent)] {
      guard Self.isFieldValue(value ?? "") else {
        throw TransferFailure(code: .badURL, message: "\(name) has a control character")
      }
    }
    guard let referer else { return }
    do throws(URLProblem) { _ = try URLParts(referer) } catch {
      throw TransferFailure(code: .badURL, message: "referer: \(error.reason)")
    }
  }
}
