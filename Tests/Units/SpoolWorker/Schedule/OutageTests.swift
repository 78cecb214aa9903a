import Testing

@testable import SpoolWorker

/// A worker that keeps running bears with a spool that goes away.
@Suite struct OutageTests {
  @Test func itWaitsAndSaysSoOnce() {
    var outage = Outage()
    outage.looked(at: 0, isInPlace: true)
    #expect(outage.nextLook == Rescan.standardInterval)
    #expect(outage.failed(.gone, at: 1000) == .tell && outage.nextLook == 3000)
    #expect(outage.failed(.gone, at: 2500) == .wait && outage.nextLook == 3000, "errors do not put it off")
    #expect(outage.failed(.gone, at: 3000) == .wait && outage.nextLook == 5000)
    #expect(outage.failed(.gone, at: 1_000_000) == .wait)
    #expect(outage.ended() && !outage.ended())
    #expect(outage.failed(.gone, at: 1_000_001) == .tell)
  }

  /// sshfs(1) answers EIO once, and has connected again when the worker looks.
  @Test func anErrorThatIsOverWhenItIsExamined() {
    var outage = Outage()
    #expect(outage.failed(.doubtful, at: 0, awake: 0) == .tell)
    // The machine has slept.
    #expect(outage.failed(.doubtful, at: 5_000_000, awake: Outage.patience - 1) == .wait)
    var other = outage
    #expect(outage.failed(.doubtful, at: 5_000_001, awake: Outage.patience) == .end)
    #expect(other.ended() && other.failed(.doubtful, at: 5_000_001, awake: Outage.patience) == .tell)
  }

  @Test func theComebackOfAMountThatWasAwayIsDoubtfulToo() {
    var outage = Outage()
    #expect(outage.failed(.gone, at: 0, awake: 0) == .tell)
    #expect(outage.failed(.gone, at: 1, awake: 5 * Outage.patience) == .wait)
    #expect(outage.failed(.doubtful, at: 2, awake: 5 * Outage.patience + 1) == .wait)
    #expect(outage.failed(.doubtful, at: 3, awake: 6 * Outage.patience + 1) == .end)
  }

  /// Two moments without open files are two, however late the next look at all directories is.
  @Test func aShortageIsOverWithTheNextTurn() {
    var outage = Outage()
    #expect(!outage.ended(all: false) && outage.failed(.short, at: 0, awake: 0) == .tell)
    #expect(outage.ended(all: false) && !outage.ended(all: false))
    #expect(outage.failed(.short, at: 1, awake: Outage.patience) == .tell)
    #expect(outage.failed(.short, at: 2, awake: 2 * Outage.patience) == .end)
    #expect(outage.ended() && outage.failed(.doubtful, at: 3, awake: 0) == .tell && !outage.ended(all: false))
  }

  @Test func otherErrorsEndTheRun() {
    var outage = Outage()
    #expect(outage.failed(.other, at: 0) == .end)
    #expect(outage.failed(.gone, at: 1) == .tell && outage.failed(.other, at: 2) == .end)
  }
}
