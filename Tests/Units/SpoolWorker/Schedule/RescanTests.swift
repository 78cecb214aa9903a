import Testing

@testable import Spool
@testable import SpoolWorker

/// How often the whole spool is read, and how often its directories are looked at.
@Suite struct RescanTests {
  private func next(_ rescan: Rescan, took: Int64 = 0) -> (pass: Bool, look: Bool, until: Int64) {
    var rescan = rescan
    rescan.passes(at: 100_000, took: took)
    let until = rescan.untilNext(at: 100_000)
    return (rescan.isPassDue(at: 100_000 + until), rescan.isLookDue(at: 100_000 + until), until)
  }

  @Test func whereInotifySeesAllItIsOnceAMinute() {
    #expect(next(Rescan(isBlind: false, interval: nil), took: 30_000) == (true, false, 60_000))
    #expect(next(Rescan(isBlind: false, interval: 5000)) == (true, false, 5000))
  }

  @Test func whereItIsBlindTheDirectoriesAreLookedAt() {
    var rescan = Rescan(isBlind: true, interval: nil)
    #expect(rescan.isPassDue(at: 0))
    rescan.passes(at: 0, took: 0)
    for time in stride(from: Rescan.lookInterval, to: 10_000, by: Int(Rescan.lookInterval)) {
      #expect(rescan.untilNext(at: time - 1) == 1 && rescan.isLookDue(at: time) && !rescan.isPassDue(at: time))
      rescan.looks(at: time)
    }
    #expect(rescan.isPassDue(at: 10_000) && rescan.untilNext(at: 10_000) == 0)
    #expect(next(Rescan(isBlind: true, interval: 1000)) == (true, false, 1000))
  }

  /// A million names take a while to read.
  @Test func aLongPassIsNotRepeatedAtOnce() {
    let blind = Rescan(isBlind: true, interval: nil)
    #expect(next(blind, took: 3000) == (true, true, 30_000))
    #expect(next(blind, took: 30_000) == (true, true, 60_000))
  }
}
