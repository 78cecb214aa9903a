internal import CCurl
internal import Glibc

/// Any number of fetches on one libcurl multi handle, driven from one thread: the one that calls `poll` runs every
/// callback and must be the one on which `fetch` is called. Hence no locks.
package final class TransferEngine {
  package struct Options: Sendable {
    /// 0 for no limit. Fetches past it wait for their turn; no timeout runs meanwhile.
    package var maxConnectionsPerHost: Int
    /// Schemes of URLs that may be fetched; a redirect may lead to `http` and `https` among them only.
    package var protocols: Set<String>
    /// Certificates to trust instead of the system's, PEM (CURLOPT_CAINFO(3)).
    package var caFile: String?
    package var userAgent: String
    /// Bytes to receive in one system call; the sink still gets at most 16 KiB at a time.
    package var bufferSize: Int
    /// Bytes per second of all bodies together, on average; nil for no limit.
    package var bytesPerSecond: UInt64?

    package init(
      maxConnectionsPerHost: Int = 0, protocols: Set<String> = ["http", "https"],
      caFile: String? = nil, userAgent: String = "spoolrun", bufferSize: Int = 512 * 1024, bytesPerSecond: UInt64? = nil
    ) {
      self.maxConnectionsPerHost = maxConnectionsPerHost
      self.protocols = protocols
      self.caFile = caFile
      self.userAgent = userAgent
      self.bufferSize = bufferSize
      self.bytesPerSecond = bytesPerSecond
    }
  }

  /// Timeouts have whole seconds; they are looked at this often while something runs.
  private static let timerInterval: Milliseconds = 250
  /// Idle easy handles kept.
  private static let poolLimit = 16

  /// The once of curl_global_init(3).
  private static let globalInit = curl_global_init(ccurl_global_default())

  private let options: Options
  private let multi: UnsafeMutableRawPointer
  /// Kept until the multi handle is gone, which closes the last of them.
  private let sockets = OpenSockets()
  private var pool: [UnsafeMutableRawPointer] = []
  private var running: [FetchRequest.ID: Running] = [:]
  /// Exchanges whose next hop begins at the next poll.
  private var toStart: [Exchange] = []
  private var isPerforming = false
  private var cancelledInCallback: [Exchange] = []
  private var nextTimerCheck: Milliseconds = 0
  private var lastDeal: Milliseconds = 0
  /// What fetches took of the common rate beyond their share, and ended before they paid it back: bytes, 0 or less.
  private var debt = 0.0

  private struct Running {
    let exchange: Exchange
    let continuation: CheckedContinuation<FetchResult, Never>
  }

  /// - Throws: if libcurl cannot be set up, or an option names a protocol that it does not know.
  package init(_ options: Options) throws(TransferError) {
    try Libcurl.load()
    guard Self.globalInit == CURLE_OK else {
      throw TransferError(description: "libcurl: \(String(cString: curl_easy_strerror(Self.globalInit)))")
    }
    if let unknown = options.protocols.first(where: { !URLParts.knownSchemes.contains($0) }) {
      throw TransferError(description: "unknown protocol \(printable(unknown))")
    }
    guard !options.protocols.isEmpty else { throw TransferError(description: "no protocol enabled") }
    guard let multi = curl_multi_init() else { throw TransferError(description: "out of memory") }
    let code = ccurl_multi_set_long(
      multi, CURLMOPT_MAX_HOST_CONNECTIONS, options.maxConnectionsPerHost)
    guard code == CURLM_OK else {
      curl_multi_cleanup(multi)
      throw TransferError(description: "libcurl: \(String(cString: curl_multi_strerror(code)))")
    }
    self.options = options
    self.multi = multi
  }

  /// A fetch that runs keeps the engine alive, so there is none left.
  deinit {
    for easy in pool { curl_easy_cleanup(easy) }
    curl_multi_cleanup(multi)
  }

  package var activeCount: Int { running.count }

  /// Runs one request to its end, redirects followed. Reports every failure in the result.
  ///
  /// Takes no notice of the task's cancellation, which may come on any thread: see `cancel`.
  package func fetch(_ request: FetchRequest, into sink: any FetchSink) async -> FetchResult {
    precondition(running[request.id] == nil, "two fetches with one id")
    let now = monotonicMilliseconds()
    func failed(_ code: TransferFailure.Code, _ message: String) -> FetchResult {
      FetchResult(
        end: .failed(TransferFailure(code: code, message: message)), head: nil, bytesReceived: 0, seconds: 0)
    }
    let url: URLParts
    do {
      url = try URLParts(request.url)
    } catch {
      return failed(.badURL, error.reason)
    }
    guard options.protocols.contains(url.scheme) else {
      return failed(.protocolNotEnabled, "protocol \(url.scheme) is not enabled")
    }
    if let problem = request.headers.lazy.compactMap(RequestFields.problem(in:)).first {
      return failed(.badURL, problem)
    }
    guard RequestFields.isFieldValue(request.ifRange ?? "") else {
      return failed(.badURL, "validator has a control character")
    }
    let exchange = Exchange(
      request, url: url, sink: sink,
      redirectSchemes: options.protocols.intersection(["http", "https"]), now: now)
    // Nothing before the first deal, which comes within an interval.
    exchange.allowance =
      allowance(ofGroup: request.group)
      ?? RateAllowance(shared: options.bytesPerSecond.map { _ in 0 }, own: request.bytesPerSecond.map { _ in 0 })
    return await withCheckedContinuation { continuation in
      running[request.id] = Running(exchange: exchange, continuation: continuation)
      toStart.append(exchange)
    }
  }

  /// Ends the fetch with that id at once with `.cancelled`: its sink is not called any more. Nothing happens if it
  /// is not running. May be called from a sink.
  package func cancel(_ id: FetchRequest.ID) {
    guard let exchange = running[id]?.exchange else { return }
    exchange.verdict = .cancelled
    // libcurl does not let handles go within a callback (CURLM_RECURSIVE_API_CALL): `poll` does it right after.
    if isPerforming { cancelledInCallback.append(exchange) } else { finish(exchange, .cancelled) }
  }

  /// Waits up to `milliseconds` for traffic or for one of `descriptors` to be readable, moves the transfers on, and
  /// resumes the callers of finished fetches.
  package func poll(milliseconds: Int32, descriptors: [Int32]) {
    startHops()
    wait(milliseconds, descriptors)
    perform()
    dealRates()
    reapEndedHops()
    checkTimers()
  }

  // MARK: The steps of a poll

  private func startHops() {
    let exchanges = toStart
    toStart = []
    for exchange in exchanges where exchange.easy == nil {
      guard let easy = pool.popLast() ?? curl_easy_init() else {
        finish(exchange, .failed(TransferFailure(code: .outOfMemory, message: "out of memory")))
        continue
      }
      exchange.easy = easy
      let code = exchange.prepare(easy, options, sockets)
      guard code == CURLE_OK else {
        let facts = HopFacts(
          host: exchange.url.host, port: exchange.url.port, scheme: exchange.url.scheme)
        finish(exchange, outcome(of: facts, with: code))
        continue
      }
      let added = curl_multi_add_handle(multi, easy)
      if added != CURLM_OK { finish(exchange, Self.failure(added)) }
    }
  }

  private func wait(_ milliseconds: Int32, _ descriptors: [Int32]) {
    var limit = milliseconds
    if !running.isEmpty {
      let now = monotonicMilliseconds()
      limit = min(limit, Int32(clamping: max(0, nextTimerCheck - now)))
      if isRateLimited { limit = min(limit, Int32(clamping: max(0, lastDeal + RateDealer.interval - now))) }
    }
    var extra = descriptors.map { curl_waitfd(fd: $0, events: Int16(CURL_WAIT_POLLIN), revents: 0) }
    var count: Int32 = 0
    let code = extra.withUnsafeMutableBufferPointer {
      curl_multi_poll(multi, $0.baseAddress, UInt32($0.count), limit, &count)
    }
    if code != CURLM_OK {
      failAll(code)
      // Whatever it was, most likely memory: a caller in a loop must not spin on it.
      usleep(100_000)
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

  private var isRateLimited: Bool {
    options.bytesPerSecond != nil || running.values.contains { $0.exchange.request.bytesPerSecond != nil }
  }

  private func allowance(ofGroup group: FetchRequest.ID?) -> RateAllowance? {
    guard let group else { return nil }
    return running.values.first { $0.exchange.request.group == group }?.exchange.allowance
  }

  /// Renews what each fetch or group may receive, and lets those go on that have something again.
  private func dealRates() {
    guard !running.isEmpty, isRateLimited else { return }
    let now = monotonicMilliseconds()
    guard now - lastDeal >= RateDealer.interval else { return }
    // After a pause without fetches nothing has been saved up.
    let (began, elapsed) = (lastDeal, min(now - lastDeal, RateDealer.interval * 4))
    lastDeal = now
    let exchanges = running.values.map(\.exchange)
    let groups = Dictionary(grouping: exchanges) { ObjectIdentifier($0.allowance) }.values.map { members in
      (
        allowance: members[0].allowance, rate: members[0].request.bytesPerSecond,
        isWaiting: members.contains(where: \.isPaused)
      )
    }
    if let rate = options.bytesPerSecond {
      let dealt = payDebt(rate: Double(rate), since: began, within: elapsed)
      var allowances = groups.map { (allowance: $0.allowance.shared ?? 0, isWaiting: $0.isWaiting) }
      RateDealer.deal(rate: dealt, elapsed: elapsed, to: &allowances)
      for (group, share) in zip(groups, allowances) { group.allowance.shared = share.allowance }
    }
    for group in groups {
      if let rate = group.rate {
        var single = [(allowance: group.allowance.own ?? 0, isWaiting: group.isWaiting)]
        RateDealer.deal(rate: Double(rate), elapsed: elapsed, to: &single)
        group.allowance.own = single[0].allowance
      }
    }
    isPerforming = true
    // The one that waits longest first: the first to go on may take all that a group was dealt, and it would be the same each time.
    let paused = exchanges.filter(\.isPaused).sorted { ($0.pausedSince ?? 0) < ($1.pausedSince ?? 0) }
    for exchange in paused where !exchange.allowance.isExhausted { exchange.resume() }
    isPerforming = false
    finishCancelled()
  }

  /// - Returns: the rate that is left to deal when the ``debt`` has been paid of all that came since `began`.
  private func payDebt(rate: Double, since began: Milliseconds, within elapsed: Milliseconds) -> Double {
    let left = debt + rate * Double(lastDeal - began) / 1000
    debt = min(0, left)
    return min(rate, max(0, left) * 1000 / Double(elapsed))
  }

  private func finishCancelled() {
    for exchange in cancelledInCallback { finish(exchange, .cancelled) }
    cancelledInCallback = []
  }

  private func reapEndedHops() {
    var left: Int32 = 0
    while let message = curl_multi_info_read(multi, &left) {
      guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else {
        continue
      }
      // Read before the handle is removed: the message goes with it (curl_multi_info_read(3)).
      let code = ccurl_message_result(message)
      var pointer: UnsafeMutableRawPointer?
      ccurl_get_pointer(easy, CURLINFO_PRIVATE, &pointer)
      let exchange = Exchange.from(pointer)
      switch exchange.hopEnded(code) {
      case .finished(let end): finish(exchange, end, reusable: code == CURLE_OK)
      case .followsRedirect, .startsAgain:
        release(exchange, reusable: code == CURLE_OK)
        toStart.append(exchange)
      }
    }
  }

  private func checkTimers() {
    let now = monotonicMilliseconds()
    guard now >= nextTimerCheck, !running.isEmpty else { return }
    nextTimerCheck = now + Self.timerInterval
    for exchange in running.values.map(\.exchange) {
      exchange.checkTimeouts(now: now)
      if let verdict = exchange.verdict { finish(exchange, verdict) }
    }
  }

  // MARK: The end of a fetch

  private func finish(_ exchange: Exchange, _ end: FetchResult.End, reusable: Bool = false) {
    let connection = exchange.connection
    release(exchange, reusable: reusable)
    guard let entry = running.removeValue(forKey: exchange.request.id) else { return }
    toStart.removeAll { $0 === exchange }
    let isLast = !running.values.contains { $0.exchange.allowance === exchange.allowance }
    if isLast { debt += min(0, exchange.allowance.shared ?? 0) }
    entry.continuation.resume(returning: exchange.result(end, over: connection, now: monotonicMilliseconds()))
  }

  /// Takes the handle from libcurl, which closes the connection if a transfer was on it.
  private func release(_ exchange: Exchange, reusable: Bool) {
    guard let easy = exchange.easy else { return }
    exchange.easy = nil
    let code = curl_multi_remove_handle(multi, easy)
    // A reset keeps the last errno (CURLINFO_OS_ERRNO(3)), so a handle that failed is not used again.
    if reusable, code == CURLM_OK, pool.count < Self.poolLimit {
      curl_easy_reset(easy)
      // A handle keeps its buffer where others are still on its HTTP/2 connection (libcurl 7.88), and is refused another size from then on.
      if ccurl_set_long(easy, CURLOPT_BUFFERSIZE, options.bufferSize) == CURLE_OK { return pool.append(easy) }
    }
    curl_easy_cleanup(easy)
  }

  private func failAll(_ code: CURLMcode) {
    for exchange in running.values.map(\.exchange) { finish(exchange, Self.failure(code)) }
  }

  private static func failure(_ code: CURLMcode) -> FetchResult.End {
    let message = "libcurl: \(String(cString: curl_multi_strerror(code)))"
    return .failed(TransferFailure(code: .outOfMemory, message: message))
  }
}
