import Spool
import Testing

@testable import SpoolWorker

/// Which failure of several mirrors is that of the attempt.
@Suite struct DecisiveFailureTests {
  private let dead = Failure(.connect, "dead")
  private let wrong = Failure(.mismatchDigest, "wrong", expected: "a", found: "b")
  private let gone = Failure(.badOutput, "gone")

  @Test func aMismatchIsRecorded() {
    for failures in [[wrong, dead], [dead, wrong], [wrong, gone], [wrong, dead, gone]] {
      #expect(Download.decisive(failures)?.code == .mismatchDigest)
    }
  }

  @Test func aTemporaryOneIsEnoughForAnotherAttempt() {
    #expect(Download.decisive([dead, gone])?.code == .connect)
    #expect(Download.decisive([gone, gone])?.code == .badOutput)
    #expect(Download.decisive([]) == nil)
  }

  @Test func whatAServerDidWrongSaysMoreThanThatAnotherOneWasNotReached() {
    let untrusted = Failure(.tls, "untrusted")
    #expect(Download.decisive([untrusted, dead])?.code == .tls)
    #expect(Download.decisive([dead, untrusted])?.code == .tls)
    #expect(Download.decisive([Failure(.resolve, "unknown"), dead])?.code == .connect)
  }

  @Test func theLongestWaitThatAServerAsksForHolds() {
    let busy = Failure(.http, "busy", status: 503, retryAfter: 7200)
    #expect(Download.decisive([busy, dead])?.retryAfter == 7200)
    #expect(Download.decisive([dead, busy])?.retryAfter == 7200)
    #expect(Download.decisive([busy, Failure(.http, "busy", status: 503, retryAfter: 5)])?.retryAfter == 7200)
  }
}
