import TestSupport
import Testing

@testable import Spool

/// The clock that sets the times of files, where it is not this host's.
@Suite struct SpoolClockTests {
  @Test(arguments: [600, -600, 0] as [Int64])
  func hostsClocksDiffer(ahead: Int64) throws {
    let fixture = try Fixture(kind: .fuse)
    try fixture.spool.learnClock { .now() + ahead }
    let ours = fixture.spool.now().seconds + ahead
    #expect(abs(ours - Timestamp.now().seconds) <= 2)
    try fixture.spool.learnClock()
    #expect(abs(fixture.spool.now().seconds - Timestamp.now().seconds) <= 1, "it is learnt anew")
    #expect(fixture.files.names("tmp") == [])
  }

  /// The host sleeps, or the server hangs, while the clocks are compared.
  @Test func aLongComparisonIsMadeAgain() throws {
    let fixture = try Fixture(kind: .fuse)
    var looks = 0
    try fixture.spool.learnClock {
      looks += 1
      // Its clock is an hour ahead, and it sleeps for two minutes at its first look.
      return .now() + (looks == 1 ? 3480 : 3600)
    }
    #expect(abs(fixture.spool.now().seconds + 3600 - Timestamp.now().seconds) <= 2 && looks == 4)
  }

  @Test func aLocalOneCostsNothing() throws {
    let hook = Probe()
    let fixture = try Fixture(hook: hook)
    let before = hook.calls.count
    try fixture.spool.learnClock { .now() + 600 }
    #expect(hook.calls.count == before && fixture.spool.now() <= .now())
  }
}
