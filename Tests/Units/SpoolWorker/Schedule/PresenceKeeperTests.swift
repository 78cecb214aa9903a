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
    for second in 0...fixture.spool.heartbeatInterval / 1000 {
      var report = WorkerReport(started: Timestamp(seconds: 1))
      report.runs = Int(second)
      #expect(!keeper.say(report, in: fixture.spool, at: second * 1000))
      if second == 0 {
        try writeFile(dead, [])
        try setModificationTime(dead, secondsFromNow: -1000)
      }
    }
    #expect(fixture.files.names("workers") == [fixture.spool.owner.text])
  }
}
