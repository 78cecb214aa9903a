import Testing

@testable import Spool
@testable import SpoolWorker

/// How often the whole spool is read.
@Suite struct RescanTests {
  private func intervals(_ rescan: Rescan, _ isIdle: [Bool], took: Int64 = 0) -> [Int64] {
    var rescan = rescan
    return isIdle.map { rescan.next(isIdle: $0, took: took) }
  }

  @Test func whereInotifySeesAllItIsOnceAMinute() {
    #expect(intervals(.standard, [true, true, false, true], took: 30_000) == [60_000, 60_000, 60_000, 60_000])
    #expect(intervals(Rescan(isBlind: false, longest: 5000), [true, false, true]) == [5000, 5000, 5000])
  }

  @Test func whereItIsBlindItBacksOffWhileIdle() {
    let blind = Rescan(isBlind: true, longest: nil)
    #expect(
      intervals(blind, [true, true, true, true, true, false, true])
        == [2000, 4000, 8000, 10_000, 10_000, 2000, 4000])
    #expect(intervals(Rescan(isBlind: true, longest: 3000), [true, true, true]) == [2000, 3000, 3000])
    #expect(intervals(Rescan(isBlind: true, longest: 1000), [true, true, false]) == [1000, 1000, 1000])
  }

  @Test func aJobThatStartedIsWork() {
    var rescan = Rescan(isBlind: true, longest: nil)
    for _ in 0..<5 { _ = rescan.next(isIdle: true, took: 0) }
    rescan.noteStart()
    #expect(rescan.next(isIdle: true, took: 0) == 2000)
    #expect(rescan.next(isIdle: true, took: 0) == 4000)
  }

  /// A million names take a while to read.
  @Test func aLongPassIsNotRepeatedAtOnce() {
    let blind = Rescan(isBlind: true, longest: nil)
    #expect(intervals(blind, [false], took: 3000) == [30_000])
    #expect(intervals(blind, [false], took: 30_000) == [60_000])
  }
}
