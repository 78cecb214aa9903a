import TestSupport
import Testing

@testable import Spool

/// What workers say of themselves.
@Suite struct WorkerReportTests {
  private func report() -> WorkerReport {
    var report = WorkerReport(started: Timestamp(seconds: 1_700_000_000))
    (report.program, report.mode, report.runs) = ("spoolrun/0.2.0", "watch", 3)
    report.options = Fields().with("jobs", 8).with("directory", "/a b\n")
    report.waits = [.init("gate", "exit 1: \u{1B}[31m\nstarted: x"), .init("space", "")]
    (report.claims, report.lost, report.missed) = (100, 4, 2)
    return report
  }

  @Test func itIsReadBack() {
    let report = report()
    #expect(WorkerReport(Array(report.text.utf8)) == report)
    #expect(report.text.split(separator: "\n").count == 6, "no value begins a line")
  }

  @Test(arguments: ["", "started: 2026-01-01T00:00:00Z", "runs: 3\n", "started: soon\n", "\u{0}\n"])
  func whatIsNone(text: String) { #expect(WorkerReport(Array(text.utf8)) == nil) }

  @Test func whatIsNotKnownIsSkipped() {
    let text =
      "new: 1\nstarted: 2026-01-01T00:00:00Z\nruns: -1\nclaims: 99999999999999999999 lost=x\n"
      + "waits: gate reason=\"x\n\u{FF}\nru"
    let report = WorkerReport(Array(text.utf8))
    #expect(report?.runs == 0 && report?.lost == 0 && report?.waits == [])
  }

  @Test func anyonesFiles() throws {
    let fixture = try Fixture()
    try fixture.spool.provide(Path(.workers))
    for name in ["alpha.1.00000001", "x", "a.b.c.d", ".alpha.1.1", "a b.1.2"] {
      try fixture.write("workers/\(name)", "started: 2026-01-01T00:00:00Z\n")
    }
    #expect(try WorkerFiles(fixture.spool).all().map(\.owner.text) == ["alpha.1.00000001"])
    // Of another host: only when its lease is over.
    try fixture.write("workers/beta.1.00000001", "")
    try WorkerFiles(fixture.spool).sweep()
    #expect(fixture.names("workers").contains("beta.1.00000001"))
    #expect(!fixture.names("workers").contains("alpha.1.00000001") && fixture.names("workers").count == 4)
    try setModificationTime(fixture.files.path("workers/beta.1.00000001"), secondsFromNow: -100)
    let presence = try Presence(of: fixture.spool, report())
    try WorkerFiles(fixture.another()).sweep()
    #expect(!fixture.names("workers").contains("beta.1.00000001"))
    #expect(try presence.beat(report()) && WorkerFiles(fixture.spool).all().first?.report == report())
    try presence.end()
    #expect(try WorkerFiles(fixture.spool).all().isEmpty)
  }
}
