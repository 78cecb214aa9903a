import Glibc
import TestSupport
import Testing

@testable import Spool
@testable import SpoolWorker

/// When a worker writes its file in `workers/`, and sweeps those of the dead.
@Suite struct PresenceKeeperTests {
  /// A worker that runs short jobs has something new to say each second, and would never be due for a mere heartbeat.
  @Test func aBusyWorkerSweepsToo() throws {
    let fixture = try Fixture()
    let dead = fixture.files.path("workers/beta.1.00000001")
    let keeper = PresenceKeeper()
    for second in 0...Leases(fixture.spool).heartbeatInterval / 1000 {
      var report = WorkerReport(started: Timestamp(seconds: 1))
      report.runs = Int(second)
      #expect(!keeper.say(report, in: fixture.spool, at: second * 1000))
      if second == 0 {
        try writeFile(dead, [])
        try setModificationTime(dead, secondsFromNow: -1000)
      }
    }
    #expect(fixture.names("workers") == [fixture.spool.owner.text])
  }

  /// It waits as long as it is told. Then it has to have something to do, or it would be told to wait no longer, again
  /// and again, for a second.
  @Test(arguments: [0, 1, 500, 999, 1000])
  func aWorkerThatWaitsIsDueThen(before: Int64) throws {
    let fixture = try Fixture()
    let keeper = PresenceKeeper()
    let report = WorkerReport(started: Timestamp(seconds: 1))
    #expect(!keeper.say(report, in: fixture.spool, at: 0))
    // Something else wakes it shortly before its heartbeat.
    let woken = Leases(fixture.spool).heartbeatInterval - before
    #expect(keeper.isDue(at: woken) && !keeper.say(report, in: fixture.spool, at: woken))
    let due = woken + keeper.untilBeat(at: woken, in: fixture.spool)
    #expect(due > woken && keeper.isDue(at: due))
    try setModificationTime(fixture.files.path("workers/\(fixture.spool.owner.text)"), to: 1000)
    #expect(!keeper.say(report, in: fixture.spool, at: due))
    let status = try #require(fixture.status("workers/\(fixture.spool.owner.text)"))
    #expect(status.st_mtim.tv_sec > 1000, "it has given a sign of life")
  }
}
