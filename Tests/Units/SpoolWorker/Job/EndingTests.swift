import SystemPackage
import Testing

@testable import Spool
@testable import SpoolWorker

/// How an attempt ends: every cause × ownership × trust.
@Suite struct EndingTests {
  private let error = SpoolError(call: .fsync, path: "p", errno: .ioError)

  private func name(_ cause: any Error, _ ownership: Claim.Ownership?, _ trust: Trust = .sound) -> String {
    switch Ending.decide(cause, ownership, trust) {
    case .fail(let failure): "fail \(failure.label)"
    case .park: "park"
    case .wait: "wait"
    case .letGo(let owner): "\(owner)"
    case .doubtMove: "doubtMove"
    case .leaveReceipt: "leaveReceipt"
    }
  }

  private var causes: [any Error] {
    [
      JobStop.shutdown, JobStop.noSpace("x"), OutputRootProblem.missing(error), JobStop.failed(error),
      Failure(.cut, "x"), error, JobStop.waits(JobWait(forOutput: "o", of: FileName("a"), now: .now())),
    ]
  }

  /// The payload is published and the receipt written: the next run makes the move.
  @Test func aReceiptThatCannotBeMovedIsNoFailure() {
    let cause = Ending.Unmoved(error: error)
    #expect(name(cause, .ours) == "leaveReceipt" && name(cause, .moved) == "moved")
  }

  /// What a person or another worker did goes before all that went wrong.
  @Test func whoHasTheClaimDecidesFirst() {
    for cause in causes {
      #expect(name(cause, .moved) == "moved")
      #expect(name(cause, .changed) == "changed")
      #expect(name(cause, .takenOver) == "takenOver")
      #expect(name(cause, .removed) == "removed")
      #expect(name(cause, nil) == "doubtMove")
      #expect(name(cause, .removed, .lost(error)) == "removed")
    }
  }

  @Test func ofOurOwnClaim() {
    #expect(causes.map { name($0, .ours) } == ["park", "park", "park", "fail io", "fail cut", "fail io", "wait"])
    #expect(
      causes.map { name($0, .ours, .doubtful) } == ["park", "park", "park", "fail io", "fail cut", "fail io", "wait"])
    // Whoever takes the job up has to know what an fsync lost.
    #expect(
      causes.map { name($0, .ours, .lost(error)) } == [
        "fail io", "fail io", "fail io", "fail io", "fail cut", "fail io", "fail io",
      ])
  }

  /// What was seen to be lost counts, though the file is back in its place.
  @Test func whatATickSaw() {
    #expect(name(JobStop.notOurs(.moved), .ours) == "moved")
    #expect(name(JobStop.notOurs(.takenOver), .ours) == "takenOver")
    #expect(name(JobStop.notOurs(.removed), .ours) == "removed")
    #expect(name(JobStop.notOurs(.changed), .ours) == "changed")
  }
}
