import Testing

@testable import Spool
@testable import SpoolWorker

/// When a failed job is tried again, and when not.
@Suite struct RetryDecisionTests {
  private let now = Timestamp(seconds: 1_000_000)

  private func delay(_ failure: Failure, failures: Int = 1, jitter: Double = 0.5, _ request: JobRequest = JobRequest())
    -> Int64?
  {
    RetryDecision.decide(failure, failures: failures, request: request, now: now, jitter: jitter)
      .map { $0.seconds - now.seconds }
  }

  @Test func exponential() {
    let expected: [Int64] = [60, 120, 240, 480, 960, 1920, 3840, 4000, 4000, 4000, 4000]
    for (index, seconds) in expected.enumerated() {
      #expect(delay(Failure(.cut, ""), failures: index + 1) == seconds, "attempt \(index + 1)")
    }
    var request = JobRequest()
    request.attempts = 1000
    #expect(delay(Failure(.cut, ""), failures: 999, request) == 4000, "no overflow")
  }

  @Test func jitterIsTwentyPerCent() {
    for (failures, middle) in [(1, 60.0), (3, 240.0), (11, 4000.0)] {
      #expect(delay(Failure(.cut, ""), failures: failures, jitter: 0) == Int64(middle * 0.8))
      #expect(delay(Failure(.cut, ""), failures: failures, jitter: 1) == Int64((middle * 1.2).rounded()))
      for step in 0...100 {
        let seconds = delay(Failure(.cut, ""), failures: failures, jitter: Double(step) / 100) ?? 0
        #expect((Int64(middle * 0.8)...Int64((middle * 1.2).rounded())).contains(seconds))
      }
    }
  }

  /// It says how long to wait at least: what is shorter than the delay would only use up the attempts.
  @Test(
    arguments: [(0, 960), (1, 960), (959, 960), (961, 961), (86_400, 86_400), (86_401, 86_400), (Int.max, 86_400)]
      as [(Int, Int64)])
  func retryAfterIsHonouredAndClamped(asked: Int, seconds: Int64) {
    #expect(delay(Failure(.http, "", status: 503, retryAfter: asked), failures: 5) == seconds)
  }

  @Test func attemptsAreCounted() {
    let failure = Failure(.cut, "")
    #expect(delay(failure, failures: 11) != nil && delay(failure, failures: 12) == nil, "12 by default")
    for attempts in [1, 2, 1000] {
      var request = JobRequest()
      request.attempts = attempts
      #expect(delay(failure, failures: attempts, request) == nil)
      if attempts > 1 { #expect(delay(failure, failures: attempts - 1, request) != nil) }
    }
    // Retry-After does not add attempts.
    #expect(delay(Failure(.http, "", status: 503, retryAfter: 5), failures: 12) == nil)
  }

  /// No network, or a full disk: not the server's doing, so it costs no attempt and the delay does not grow.
  @Test(arguments: [FailureCode.noNetwork, .diskFull])
  func whatBurnsNoAttempt(_ code: FailureCode) {
    for failures in [1, 12, 5000] { #expect(delay(Failure(code, ""), failures: failures) == 60) }
  }

  /// A failure of the server counts for no job, which waits until the rest ends; and longer each time, once the server
  /// has put it off again and again.
  @Test func whatIsTheServersDoing() {
    var failure = Failure(.http, "", status: 429)
    failure.rest = 7
    for failures in [1, 12, 5000] { #expect(delay(failure, failures: failures) == 7) }
    let delays = (0..<9).map { RetryDecision.delay(failure, failures: 1, deferrals: $0, jitter: 0.5) }
    #expect(delays == [7, 7, 7, 60, 120, 240, 480, 960, 1920])
    failure.retryAfter = 500
    #expect(delay(failure) == 500, "as it asked")
    failure.isServerAway = true
    failure.code = .serverAway
    #expect(delay(failure) == nil)
  }

  @Test func expiry() {
    var request = JobRequest()
    request.expires = now + 60
    #expect(delay(Failure(.cut, ""), request) == nil, "the next attempt would come too late")
    request.expires = now + 61
    #expect(delay(Failure(.cut, ""), request) == 60)
    request.expires = now + 30
    #expect(delay(Failure(.noNetwork, ""), request) == nil)
  }

  @Test func permanentFailuresEndIt() {
    for code in FailureCode.allCases where code != .http {
      #expect((delay(Failure(code, "")) == nil) == (code.failureClass == .permanent), "\(code)")
    }
    for status in [400, 401, 403, 404, 410, 416, 451] { #expect(delay(Failure(.http, "", status: status)) == nil) }
    for status in [408, 425, 429, 500, 502, 503, 504] { #expect(delay(Failure(.http, "", status: status)) == 60) }
    #expect(delay(Failure(.http, "", status: 404, retryAfter: 90)) == 90, "the server says that it may pass")
    #expect(delay(Failure(.badResponse, "", retryAfter: 7200)) == 7200)
  }
}
