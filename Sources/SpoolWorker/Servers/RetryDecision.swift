internal import Spool

/// When a failed job gets another attempt; nil if it is given up.
enum RetryDecision {
  static let shortestDelay: Int64 = 60
  static let longestDelay: Int64 = 4000
  static let longestRetryAfter: Int64 = 86_400
  /// Mismatches after which the job is given up.
  static let maximumMismatches = 3

  /// Returns `failure`, but as the permanent `mismatch` if there were too many mismatches, or the file was wrong in the
  /// same way before: then it is no damage. Not as long as another mirror may have the right one.
  /// - Parameter mismatches: the number of mismatches in earlier attempts.
  /// - Parameter last: the record of the last failure.
  static func believed(_ failure: Failure, mismatches: Int, last: Fields?) -> Failure {
    guard failure.code.isMismatch, !failure.mayBeElsewhere else { return failure }
    let isSame =
      mismatches > 0 && failure.found != nil && last?["found"]?.exact == failure.found?.exact
      && last?["code"]?.exact == failure.label.exact
    guard isSame || mismatches + 1 >= maximumMismatches else { return failure }
    var failure = failure
    failure.code = .mismatch
    failure.reason += isSame ? " (the same twice)" : " (mismatch \(mismatches + 1))"
    return failure
  }

  /// - Parameter failures: the number of attempts that count, including this one.
  /// - Parameter deferrals: failures of its servers in a row before this one.
  /// - Parameter countsEach: ``WorkerOptions/countsEachFailure``.
  /// - Parameter jitter: random, from 0 to 1, so that jobs that failed together are not retried together.
  static func decide(
    _ failure: Failure, failures: Int, deferrals: Int = 0, countsEach: Bool = false, request: JobRequest,
    now: Timestamp, jitter: Double
  ) -> Timestamp? {
    if failure.rest == nil || failure.isServerAway, failure.failureClass == .permanent { return nil }
    let counted = countsEach ? failures + deferrals : failures
    let counts = failure.burnsAttempt || countsEach && failure.rest != nil
    if counts, counted >= request.attempts ?? JobRequest.defaultAttempts { return nil }
    let next = now + delay(failure, failures: failures, deferrals: deferrals, jitter: jitter)
    if let expires = request.expires, next >= expires { return nil }
    return next
  }

  /// Seconds until the next attempt.
  static func delay(_ failure: Failure, failures: Int, deferrals: Int, jitter: Double) -> Int64 {
    let spread = 0.8 + 0.4 * jitter
    let asked = asked(by: failure)
    if let rest = failure.rest {
      // While others are served, what a server says to one job again and again is about that job.
      let own =
        deferrals < freeDeferrals ? 0 : min(shortestDelay << Int64(min(deferrals - freeDeferrals, 10)), longestDelay)
      return max(rest, Int64(Double(own) * spread), asked, 1)
    }
    // A full disk or a missing network says nothing about the server, so the delay does not grow.
    let doublings = failure.code.burnsAttempt ? min(max(failures - 1, 0), 10) : 0
    // A second look shows whether the file was damaged on its way.
    let isFirstMismatch = failure.code.isMismatch && !failure.mayBeElsewhere && failures <= 1
    let delay = isFirstMismatch ? 5 : min(shortestDelay << Int64(doublings), longestDelay)
    // Retry-After (RFC 9110 section 10.2.3) only extends the delay: a server that says one second each time would use
    // up all attempts within seconds.
    return max(Int64(Double(delay) * spread), asked)
  }

  /// Seconds for which a server asks, as far as anybody heeds it.
  static func asked(by failure: Failure) -> Int64 { min(Int64(failure.retryAfter ?? 0), longestRetryAfter) }

  /// What a failed check leads to. An order waits as long as a job does after a temporary failure, however often the
  /// check has failed; after a failure that a job would not survive, it waits for at least its own interval. It is
  /// given up only if its text has to be changed, if its time is over, or if it kills workers.
  /// - Parameter failures: the number of checks that failed in a row, including this one.
  /// - Parameter jitter: random, from 0 to 1.
  static func ofOrder(
    _ failure: Failure, failures: Int, deferrals: Int = 0, every: Int, now: Timestamp, jitter: Double
  ) -> Timestamp? {
    if failure.code.endsOrder { return nil }
    let delay = delay(failure, failures: failures, deferrals: deferrals, jitter: jitter)
    let least = failure.rest == nil && failure.failureClass == .permanent ? Int64(every) : 0
    return now + max(delay, least)
  }

  /// So many failures of its servers in a row make a job wait only until these may be asked.
  static let freeDeferrals = 3
}

/// How a job is treated during whose attempts workers died, as it may be the cause. Other jobs always go first. After
/// two deaths it runs alone, until it is cleared. After more it is given up.
struct Probation {
  /// The number of deaths from which a job runs alone, so that only this job is suspected of the next death.
  private static let alone = 2
  /// No job is given up with fewer deaths, because power cuts count as deaths, too.
  private static let fewest = 3

  /// How many workers died during attempts of the job.
  let deaths: Int
  private let period: Int64
  /// In milliseconds for which the machine was awake; nil before the attempt begins, and if there were no deaths.
  private var endsAt: Int64?

  /// - Parameter period: the milliseconds that it has to run before it is cleared.
  init(deaths: Int, period: Int64) { (self.deaths, self.period) = (deaths, period) }

  /// How many deaths count.
  /// - Parameter isByLease: whether only the end of its lease tells that the last worker died. It was most likely lost
  ///   with its host, or cut off, and its jobs should not wait behind a long backlog. If a job is the cause, the second
  ///   death says so.
  static func counted(_ deaths: Int, isByLease: Bool) -> Int { isByLease && deaths == 1 ? 0 : deaths }

  static func wantsToBeAlone(_ deaths: Int) -> Bool { deaths >= alone }

  /// The failure that the job is given up with, if too many workers died.
  /// - Parameter attempts: the job's own `attempts:`.
  func failure(attempts: Int?) -> Failure? {
    guard deaths >= max(Self.fewest, attempts ?? JobRequest.defaultAttempts) else { return nil }
    let advice = "find the cause, for example lack of memory (journalctl, dmesg), then run spoolrun retry"
    return Failure(.killsWorker, "\(deaths) workers in a row died while they ran this job: \(advice)")
  }

  mutating func begin(at now: Int64) { if deaths > 0, endsAt == nil { endsAt = now + period } }

  /// Whether the job is to be cleared now. Returns true once.
  mutating func isOver(at now: Int64) -> Bool {
    guard let endsAt, now >= endsAt else { return false }
    self.endsAt = .max
    return true
  }
}
