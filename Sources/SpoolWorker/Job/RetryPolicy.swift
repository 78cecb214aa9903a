internal import Spool

/// When a failed job is tried again.
enum RetryDecision: Equatable {
  case wait(until: Timestamp)
  case giveUp

  static let shortestDelay: Int64 = 60
  static let longestDelay: Int64 = 4000
  static let longestRetryAfter: Int64 = 86_400
  /// Mismatches after which the server, or what the job declares, is not believed any more.
  static let maximumMismatches = 3

  /// When the next attempt is; nil for a job that is given up.
  var next: Timestamp? { if case .wait(let until) = self { until } else { nil } }

  /// The failure, as a mismatch that has come too often: then it is for good.
  /// - Parameter mismatches: those of the attempts before.
  static func believed(_ failure: Failure, mismatches: Int) -> Failure {
    guard failure.code.isMismatch, mismatches + 1 >= maximumMismatches else { return failure }
    var failure = failure
    failure.code = .mismatch
    failure.reason += " (mismatch \(mismatches + 1) of \(maximumMismatches))"
    return failure
  }

  /// - Parameters:
  ///   - failures: attempts that count, this one included.
  ///   - jitter: from 0 to 1, at random, so that many jobs that failed together don't come back together.
  static func decide(_ failure: Failure, failures: Int, request: JobRequest, now: Timestamp, jitter: Double)
    -> RetryDecision
  {
    if failure.failureClass == .permanent { return .giveUp }
    if failure.code.burnsAttempt, failures >= request.attempts ?? JobRequest.defaultAttempts { return .giveUp }
    // A full disk, a missing network or a proxy is not the server's doing: no reason to stay away longer each time.
    let doublings = failure.code.burnsAttempt ? min(max(failures - 1, 0), 10) : 0
    let delay = min(shortestDelay << Int64(doublings), longestDelay)
    // How long to wait at least (RFC 9110 section 10.2.3): a server that says a second each time would use up all attempts within seconds.
    let asked = min(Int64(failure.retryAfter ?? 0), longestRetryAfter)
    let seconds = max(Int64(Double(delay) * (0.8 + 0.4 * jitter)), asked)
    let next = now + seconds
    if let expires = request.expires, next >= expires { return .giveUp }
    return .wait(until: next)
  }
}
