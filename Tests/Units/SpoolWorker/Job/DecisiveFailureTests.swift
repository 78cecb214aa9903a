import Spool
import SystemPackage
import Testing

@testable import SpoolWorker

/// Which failure of several mirrors is that of the attempt.
@Suite struct DecisiveFailureTests {
  private let dead = Failure(.connect, "dead")
  private let wrong = Failure(.mismatchDigest, "wrong", expected: "a", found: "b")
  private let gone = Failure(.badOutput, "gone")

  @Test func aMismatchIsRecorded() {
    for failures in [[wrong, dead], [dead, wrong], [wrong, gone], [wrong, dead, gone]] {
      #expect(JobFetch.decisive(failures)?.code == .mismatchDigest)
    }
  }

  @Test func aTemporaryOneIsEnoughForAnotherAttempt() {
    #expect(JobFetch.decisive([dead, gone])?.code == .connect)
    #expect(JobFetch.decisive([gone, gone])?.code == .badOutput)
    #expect(JobFetch.decisive([]) == nil)
  }

  @Test func whatAServerDidWrongSaysMoreThanThatAnotherOneWasNotReached() {
    let untrusted = Failure(.tls, "untrusted")
    #expect(JobFetch.decisive([untrusted, dead])?.code == .tls)
    #expect(JobFetch.decisive([dead, untrusted])?.code == .tls)
    #expect(JobFetch.decisive([Failure(.resolve, "unknown"), dead])?.code == .connect)
  }

  @Test func aNameThatTheFileSystemDoesNotTakeIsTheJobsMistake() {
    let error = SpoolError(call: .rename, path: "a:b", errno: .invalidArgument)
    let failure = Failure(error, writingTo: "/media/stick")
    #expect(failure.code == .badOutput && failure.reason.contains("/media/stick"))
  }

  /// The one that rests may have the piece. One that answers nobody keeps no job.
  @Test func piecesAreWrongOnlyIfNoMirrorSaysLater() {
    let wrong = Failure(.wrongPiece, "wrong")
    var later = Failure(.http, "busy", status: 503)
    later.rest = 60
    for failures in [[wrong, later], [later, wrong]] { #expect(JobFetch.decisive(failures)?.code == .http) }
    later.isServerAway = true
    #expect(JobFetch.decisive([wrong, later])?.code == .wrongPiece)
    #expect(JobFetch.decisive([wrong, gone])?.code == .wrongPiece)
  }

  /// A mismatch is looked at again when the mirror may be asked that rests, and says nothing of what that has sent.
  @Test func aMismatchWaitsForAMirrorThatRests() throws {
    var later = Failure(.http, "busy", status: 503)
    later.rest = 3600
    let decisive = try #require(JobFetch.decisive([wrong, later]))
    #expect(decisive.code == .mismatchDigest && decisive.retryAfter == 3600 && decisive.burnsAttempt)
    #expect(decisive.keepsData && decisive.mayBeElsewhere)
    #expect(RetryDecision.believed(decisive, mismatches: 9, last: Fields().with("found", "b")).code == .mismatchDigest)
    let alone = try #require(JobFetch.decisive([wrong, wrong]))
    #expect(alone.retryAfter == nil && !alone.mayBeElsewhere)
    #expect(RetryDecision.believed(alone, mismatches: 2, last: nil).code == .mismatch)
  }

  /// Nobody waits for one that answers nobody, whichever comes first.
  @Test func aServerThatIsAwayDecidesNothingBesideAnother() throws {
    var rests = Failure(.http, "busy", status: 503)
    rests.rest = 30
    // As it is judged after a request, and before one.
    for code in [FailureCode.serverAway, .connect] {
      var away = Failure(code, "away")
      (away.rest, away.isServerAway) = (60, true)
      for other in [Failure(.http, "no such file", status: 404), gone, wrong, rests] {
        for failures in [[other, away], [away, other]] {
          let decisive = try #require(JobFetch.decisive(failures))
          #expect(decisive.label == other.label && decisive.rest == other.rest && !decisive.isServerAway)
          #expect(!decisive.mayBeElsewhere || other.label == rests.label)
        }
      }
      #expect(JobFetch.decisive([away, away])?.isServerAway == true)
    }
  }

  @Test func theLongestWaitThatAServerAsksForHolds() {
    let busy = Failure(.http, "busy", status: 503, retryAfter: 7200)
    #expect(JobFetch.decisive([busy, dead])?.retryAfter == 7200)
    #expect(JobFetch.decisive([dead, busy])?.retryAfter == 7200)
    #expect(JobFetch.decisive([busy, Failure(.http, "busy", status: 503, retryAfter: 5)])?.retryAfter == 7200)
  }
}
