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
    #expect(fixture.names("tmp") == [])
  }

  /// How long ago a time from before is, nobody can say. The file system's clock may be set as well.
  @Test(arguments: [FileSystemKind.fuse, nil])
  func whatWasBeforeTheClockWasSet(kind: FileSystemKind?) throws {
    let host = MovedHost()
    try Host.$current.withValue(host) {
      let fixture = try Fixture(kind: kind)
      let spool = fixture.spool
      try spool.learnClock { .now() + 600 }
      let (time, now) = (spool.now(), host.milliseconds())
      #expect(abs(spool.moment(time + -60) - (now - 60_000)) < 5000)
      if kind == nil { host.set(by: 7 * 86_400) } else { try spool.learnClock { .now() + -600 } }
      #expect(spool.moment(time + -60) >= now && spool.moment(spool.now() + 60) >= now + 55_000)
      host.sleep(seconds: 1000)
      #expect(spool.moment(spool.now() + -900) >= now + 90_000, "a sleep is time")
    }
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
