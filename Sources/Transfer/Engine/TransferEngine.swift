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
    /// As the environment said at the start.
    var proxies = ProxyRules.ofEnvironment

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
  /// The time that one deal of the rates is for at most.
  static let longestDeal = RateDealer.interval * 4
  /// Idle easy handles kept.
  private static let poolLimit = 16

  /// The once of curl_global_init(3).
  private static let globalInit = curl_global_init(ccurl_global_default())

  let options: Options
  private let multi: UnsafeMutableRawPointer
  /// Kept until the multi handle is gone, which closes the last of them.
  private let sockets = OpenSockets()
  private var pool: [UnsafeMutableRawPointer] = []
  var running: [FetchRequest.ID: Running] = [:]
  /// Exchanges whose next hop begins at the next poll.
  private var toStart: [Exchange] = []
  var isPerforming = false
  private var cancelledInCallback: [Exchange] = []
  private var nextTimerCheck: Milliseconds = 0
  var lastDeal: Milliseconds = 0
  /// What fetches took of the common rate beyond their share, and ended before they paid it back: bytes, 0 or less.
  var debt = 0.0
  /// The same for the own rate of each group that has no fetch under way: when all is paid back.
  var paidUp: [FetchRequest.ID: Milliseconds] = [:]

  struct Running {
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
    exchange.allowance = allowance(ofGroup: request.group) ?? newAllowance(for: request, now: now)
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

  func finishCancelled() {
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
      take(exchange.hopEnded(code), of: exchange, reusable: code == CURLE_OK)
    }
  }

  private func take(_ step: Exchange.Step, of exchange: Exchange, reusable: Bool) {
    switch step {
    case .finished(let end): finish(exchange, end, reusable: reusable)
    case .followsRedirect, .startsAgain:
      release(exchange, reusable: reusable)
      toStart.append(exchange)
    }
  }

  private func checkTimers() {
    let now = monotonicMilliseconds()
    guard now >= nextTimerCheck, !running.isEmpty else { return }
    nextTimerCheck = now + Self.timerInterval
    for (exchange, share) in shares() {
      exchange.checkTimeouts(now: now, share: share)
      if let verdict = exchange.verdict {
        finish(exchange, verdict)
      } else if let step = exchange.leaveRedirectBody(now: now) {
        take(step, of: exchange, reusable: false)
      }
    }
  }

  // MARK: The end of a fetch

  private func finish(_ exchange: Exchange, _ end: FetchResult.End, reusable: Bool = false) {
    let connection = exchange.connection
    release(exchange, reusable: reusable)
    guard let entry = running.removeValue(forKey: exchange.request.id) else { return }
    toStart.removeAll { $0 === exchange }
    let now = monotonicMilliseconds()
    let isLast = !running.values.contains { $0.exchange.allowance === exchange.allowance }
    if isLast { noteDebt(of: exchange, now: now) }
    entry.continuation.resume(returning: exchange.result(end, over: connection, now: now))
  }

  /// Takes the handle from libcurl, which closes the connection if a transfer was on it.
  private func release(_ exchange: Exchange, reusable: Bool) {
    guard let easy = exchange.easy else { return }
    exchange.easy = nil
    exchange.leaveConnection()
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
