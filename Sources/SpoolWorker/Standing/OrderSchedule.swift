internal import Spool

/// When a standing order's list is looked at. Pure.
enum OrderSchedule {
  /// The time of the next check.
  /// - Parameters:
  ///   - began: when this check began.
  ///   - every: seconds from one check to the next.
  static func next(after began: Timestamp, every: Int, now: Timestamp) -> Timestamp {
    max(began + Int64(every), now + 1)
  }

  /// What a failed check leads to. An order waits as long as a job does after a temporary failure, however often the
  /// check has failed; after a failure that a job would not survive, it waits for at least its own interval. It is
  /// given up only if its text has to be changed, if its time is over, or if it kills workers.
  /// - Parameters:
  ///   - failures: the number of checks that failed in a row, including this one.
  ///   - jitter: random, from 0 to 1.
  static func afterFailure(_ failure: Failure, failures: Int, every: Int, now: Timestamp, jitter: Double)
    -> RetryDecision
  {
    if failure.code.endsOrder { return .giveUp }
    let doublings = failure.code.burnsAttempt ? min(max(failures - 1, 0), 10) : 0
    let delay = min(RetryDecision.shortestDelay << Int64(doublings), RetryDecision.longestDelay)
    let asked = min(Int64(failure.retryAfter ?? 0), RetryDecision.longestRetryAfter)
    let least = failure.failureClass == .permanent ? Int64(every) : 0
    return .wait(until: now + max(Int64(Double(delay) * (0.8 + 0.4 * jitter)), asked, least))
  }
}

extension Attempt {
  /// What a failure of the job, or of the standing order, leads to.
  /// - Parameter failures: how often it has failed, including this time.
  func retryDecision(after failure: Failure, failures: Int) -> RetryDecision {
    var random = HostRandom()
    let jitter = Double.random(in: 0...1, using: &random)
    var request = claim.text.request
    if let every = request.standing.every {
      return OrderSchedule.afterFailure(
        failure, failures: failures, every: every, now: claim.spool.now(), jitter: jitter)
    }
    request = request.inheriting(environment.options.defaults)
    // What is published is delivered, however late.
    if failure.code == .deliver { request.expires = nil }
    return RetryDecision.decide(failure, failures: failures, request: request, now: claim.spool.now(), jitter: jitter)
  }
}
