internal import Spool

/// Whether and when a failed job gets another attempt.
enum RetryDecision: Equatable {
  case wait(until: Timestamp)
  case giveUp

  static let shortestDelay: Int64 = 60
  static let longestDelay: Int64 = 4000
  static let longestRetryAfter: Int64 = 86_400
  /// Mismatches after which the job is given up.
  static let maximumMismatches = 3

  /// The time of the next attempt; nil if the job is given up.
  var next: Timestamp? { if case .wait(let until) = self { until } else { nil } }

  /// Returns `failure`, but as the permanent `mismatch` if there were too many mismatches.
  /// - Parameter mismatches: the number of mismatches in earlier attempts.
  static func believed(_ failure: Failure, mismatches: Int) -> Failure {
    guard failure.code.isMismatch, mismatches + 1 >= maximumMismatches else { return failure }
    var failure = failure
    failure.code = .mismatch
    failure.reason += " (mismatch \(mismatches + 1) of \(maximumMismatches))"
    return failure
  }

  /// - Parameters:
  ///   - failures: the number of attempts that count, including this one.
  ///   - jitter: random, from 0 to 1, so that jobs that failed together are not retried together.
  static func decide(_ failure: Failure, failures: Int, request: JobRequest, now: Timestamp, jitter: Double)
    -> RetryDecision
  {
    if failure.failureClass == .permanent { return .giveUp }
    if failure.code.burnsAttempt, failures >= request.attempts ?? JobRequest.defaultAttempts { return .giveUp }
    // A full disk, a missing network or a proxy says nothing about the server, so the delay does not grow.
    let doublings = failure.code.burnsAttempt ? min(max(failures - 1, 0), 10) : 0
    let delay = min(shortestDelay << Int64(doublings), longestDelay)
    // Retry-After (RFC 9110 section 10.2.3) only extends the delay: a server that says one second each time would use
    // up all attempts within seconds.
    let asked = min(Int64(failure.retryAfter ?? 0), longestRetryAfter)
    let seconds = max(Int64(Double(delay) * (0.8 + 0.4 * jitter)), asked)
    let next = now + seconds
    if let expires = request.expires, next >= expires { return .giveUp }
    return .wait(until: next)
  }
}
