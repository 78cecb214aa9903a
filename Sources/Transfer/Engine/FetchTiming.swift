/// The times of a fetch: whether its server is silent for too long, too slow, or not done in time. Pure: times come
/// from outside.
struct FetchTiming {
  /// For bytes beyond those announced to show up, once all are here.
  private static let surplusWait: Milliseconds = 1000

  private let request: FetchRequest
  private let started: Milliseconds
  private var firstRequest: Milliseconds?
  private var lastRequest: Milliseconds?
  /// When the first line of the last request's response came.
  private var answered: Milliseconds?
  /// Nil until this hop's request is sent. Until then libcurl's connect timeout counts, which leaves out the time spent
  /// waiting for a free connection.
  private var lastActivity: Milliseconds?
  /// Since when we pause the transfer, to keep a rate limit or because the sink is full: the silence is not the
  /// server's.
  private(set) var pausedSince: Milliseconds?
  /// Runs from the first line of an answer on.
  private var pace: Pace

  init(_ request: FetchRequest, at now: Milliseconds) {
    self.request = request
    pace = request.pace ?? Pace(over: request.floor?.seconds ?? 0)
    started = now
  }

  var requestWasSent: Bool { lastActivity != nil }

  // MARK: Events

  mutating func sendRequest(at now: Milliseconds) {
    lastActivity = now
    firstRequest = firstRequest ?? now
    lastRequest = now
    answered = nil
  }

  /// A line or bytes came. The lines that an FTP server sends before the request, as it lets us log in, do not count.
  mutating func noteActivity(at now: Milliseconds) {
    guard requestWasSent else { return }
    lastActivity = now
    answered = answered ?? now
    pace.run(at: now)
  }

  mutating func take(_ count: Int) { pace.take(count) }

  mutating func pause(at now: Milliseconds) {
    pausedSince = now
    pace.rest(at: now)
  }

  mutating func resume(at now: Milliseconds) {
    pausedSince = nil
    noteActivity(at: now)
  }

  mutating func endHop(at now: Milliseconds) {
    pace.rest(at: now)
    lastActivity = nil
  }

  // MARK: Decisions

  /// What ends the fetch now; nil while it continues.
  /// - Parameter hasAll: all bytes are here that were announced.
  /// - Parameter share: what the rate limits leave to this fetch, in bytes per second; nil without a limit.
  mutating func end(at now: Milliseconds, host: String, hasAll: Bool, share: Double?) -> FetchResult.End? {
    if let lastActivity {
      let idle = request.idleTimeoutSeconds
      let silence = pausedSince == nil ? now - lastActivity : 0
      if hasAll, silence >= Self.surplusWait { return .complete }
      if idle > 0, silence >= Milliseconds(idle) * 1000 {
        return failure(.stalled, "no data for \(idle) s from \(host)")
      }
      if let floor = request.floor, let rate = pace.rate(at: now), rate < floor.least(share: share) {
        return failure(
          .stalled,
          "\(host) sent \(Int(rate)) bytes a second over \(floor.seconds) s, and min-rate is \(floor.bytesPerSecond)")
      }
    }
    let total = request.totalTimeoutSeconds
    guard let firstRequest, total > 0, now - firstRequest >= Milliseconds(total) * 1000 else { return nil }
    return failure(.timeout, "not complete after \(total) s from \(host)")
  }

  private func failure(_ code: TransferFailure.Code, _ message: String) -> FetchResult.End {
    .failed(TransferFailure(code: code, message: message))
  }

  // MARK: The result

  func seconds(at now: Milliseconds) -> Double { Double(now - started) / 1000 }

  func times(at now: Milliseconds) -> (wait: Double, body: Double)? {
    guard let lastRequest, let answered else { return nil }
    return (Double(answered - lastRequest) / 1000, Double(now - answered) / 1000)
  }

  mutating func finalPace(at now: Milliseconds) -> Pace {
    pace.rest(at: now)
    return pace
  }
}
