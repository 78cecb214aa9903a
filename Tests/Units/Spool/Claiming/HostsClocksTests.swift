import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Spool

/// File systems whose times of files are by the hosts' own clocks: all of them (GlusterFS), or those of a touch
/// (SSHFS).
@Suite struct HostsClocksTests {
  private let gluster = FileSystemKind.fuse.mounted(as: "fuse.glusterfs")

  @Test func whichAre() {
    #expect(gluster.timesAreOfHosts && !gluster.isLocal && gluster.leases == .refused)
    #expect(!FileSystemKind.fuse.mounted(as: "fuse.sshfs").timesAreOfHosts)
  }

  /// Its owner's clock is ten minutes off; it has the lock.
  @Test(arguments: [-600, 600])
  func aHeldClaimIsJudgedByWhatIsSeenOfIt(ahead: Int) throws {
    let fixture = try Fixture(kind: gluster)
    try fixture.files.drop("a", "https://host/a\n# complete\n")
    let claim = try fixture.claim("a")
    let name = FileName(fixture.names("cur")[0])
    try setModificationTime(fixture.files.path("cur/\(name.display)"), secondsFromNow: ahead)
    let rival = try fixture.another(host: "beta", kind: gluster)
    for _ in 0..<2 {
      // The first look at a time from the future sets it to now.
      #expect(try Claims(rival).claim(name, from: .cur, now: .now() + Leases(rival).length).label == "leased")
    }
    #expect(try claim.ownership() == .ours)
  }

  /// Or a worker that is stopped would be followed only a lease after its lease.
  @Test func itsSilenceBeginsWithTheFirstLook() throws {
    let fixture = try Fixture(kind: gluster)
    let name = FileName("a:beta.1.00000009")
    try fixture.write("cur/\(name.display)", "https://host/a\n")
    let spool = fixture.spool
    let status = try #require(try spool.status(.cur, name))
    #expect(Leases(spool).endOfLease(of: name, status, now: .now()) == status.modified + Leases(spool).length)
    let later = secondsSinceBoot() + 50
    #expect(spool.sights.withLock { $0.silence(of: name, status.stamp, at: later) } >= 50)
  }

  @Test func whatDoesNotChangeIsSilent() {
    func stamp(_ time: Int) -> FileStatus.Stamp {
      .init(size: 1, modified: .init(timespec(tv_sec: time, tv_nsec: 0)), changed: .init(timespec()))
    }
    var sights = ClaimSights()
    let name = FileName("a:beta.1.2")
    let silences = [(5, 100), (5, 130), (7, 131), (7, 191), (6, 192)].map {
      sights.silence(of: name, stamp($0.0), at: $0.1)
    }
    #expect(silences == [0, 30, 0, 60, 0])
  }

  /// A touch sets the time that this host would say, ten minutes behind.
  @Test func aTouchSaysTheTimeOfTheFileSystem() throws {
    let files = try TemporarySpool()
    let isLate = Switch()
    let spool = try Fixture.open(files, hook: LateTouches(files, isLate), kind: .fuse)
    try spool.learnClock()
    let before = spool.touchesNeedTime.load(ordering: .relaxed)
    isLate.turnOn()
    try spool.learnClock()
    let after = spool.touchesNeedTime.load(ordering: .relaxed)
    #expect(!before && after && files.names("tmp") == [])
  }
}

/// Sets the time of each file in `tmp/` ten minutes back after it was touched, as a client with such a clock does.
private final class LateTouches: CallHook {
  private let files: TemporarySpool
  private let isOn: Switch

  init(_ files: TemporarySpool, _ isOn: Switch) { (self.files, self.isOn) = (files, isOn) }

  func before(_ call: Call) -> Fault? { nil }

  func after(_ call: Call) {
    guard isOn.isOn, call.kind == .utimens else { return }
    for name in TestSupport.names(in: files.path("tmp"), isHiddenToo: true) {
      try? setModificationTime(files.path("tmp/\(name)"), secondsFromNow: -600)
    }
  }
}
