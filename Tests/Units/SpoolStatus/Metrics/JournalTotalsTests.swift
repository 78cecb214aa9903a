import Spool
import SpoolStatus
import Testing

@Suite struct JournalTotalsTests {
  private func totals(_ job: String, data: UInt64? = nil) -> JournalTotals {
    var totals = JournalTotals()
    Array(job.utf8).withUnsafeBytes { totals.add(job: $0, data: data) }
    return totals
  }

  private let failure = "failed: 2026-11-21T03:00:41Z attempt=1 class=temporary"
  private let started = "started: 2026-11-21T03:00:00Z attempt=1 worker=h.1.0000000a boot=b mirror=1 url=https://h/x\n"

  @Test func `a job counts its failures, its bytes and its end`() {
    let job = """
      https://h/x
      response: mirror=1 at=0 part=1
      \(failure) code=cut fetched=10 retry=2026-11-21T03:05:41Z reason=x
      response: mirror=1 at=10 part=1
      interrupted: 2026-11-21T03:06:41Z attempt=2 at=30 fetched=20 reason=x
      response: mirror=1 at=30 part=1
      done: 2026-11-21T03:07:41Z attempts=2 output=x bytes-fetched=100 seconds=9

      """
    #expect(totals(job).counts == ["failed/cut": 1, "bytes": 100, "done": 1])
    // A receipt that is written again says the same.
    #expect(totals(job + "done: 2026-11-21T03:07:42Z bytes-fetched=100\n")["bytes"] == 100)
    // A job that runs again.
    let again = job + "requeued: 2026-11-22T03:00:00Z\n\(failure) code=cut fetched=5 reason=x\n"
    #expect(totals(again).counts == ["failed/cut": 2, "bytes": 105, "done": 1, "given-up": 1])
  }

  @Test func `of a job that came back from done, lives that are counted elsewhere do not count`() {
    let border = Timestamp("2026-11-21T04:00:00Z")?.seconds ?? 0
    func totals(_ job: String, isDone: Bool = false) -> [String: UInt64] {
      var totals = JournalTotals()
      Array(job.utf8).withUnsafeBytes { totals.add(job: $0, since: border, isDone: isDone) }
      return totals.counts
    }
    let life = "\(failure) code=cut fetched=10 retry=x\ndone: 2026-11-21T03:07:41Z bytes-fetched=100\n"
    #expect(totals(life) == [:])
    #expect(totals(life, isDone: true) == ["failed/cut": 1, "bytes": 100, "done": 1])
    let again = life + "requeued: 2026-11-22T03:00:00Z\n\(failure) code=cut fetched=5 retry=x\n"
    #expect(totals(again) == ["failed/cut": 1, "bytes": 5])
    let later = again + "done: 2026-11-22T03:07:41Z bytes-fetched=7\n"
    #expect(totals(later) == totals(later, isDone: true))
    #expect(totals(later) == ["failed/cut": 1, "bytes": 7, "done": 1])
  }

  @Test func `what a transfer has brought so far counts`() {
    let job = "https://h/x\n\(started)response: mirror=1 at=40 part=1\n"
    #expect(totals(job, data: 100)["bytes"] == 60)
    #expect(totals(job, data: 30)["bytes"] == 0)
    #expect(totals(job)["bytes"] == 0)
  }

  @Test func `data that was copied does not count`() {
    let copied = "response: mirror=1 at=0 part=1\n"
    let answered = "response: mirror=1 at=0 part=1 resource=https://h/x\n"
    let end = "\(failure) code=io fetched=0 retry=x"
    for job in [answered, started + copied, "\(started)\(end)\n\(answered)"] {
      #expect(totals(job, data: 100)["bytes"] == 0, "\(job)")
    }
    for job in [started + answered, started + copied + answered, "\(started)\(end) doubt=yes\n\(answered)"] {
      #expect(totals(job, data: 100)["bytes"] == 100, "\(job)")
    }
  }

  @Test func `codes that no worker writes are one`() {
    for code in ["\"x{y}\"", "http-9", "http-abc", "http-40\u{661}", "http-NNN", "a"] {
      #expect(totals("\(failure) code=\(code) retry=x\n").counts == ["failed/other": 1], "\(code)")
    }
    #expect(totals("\(failure) code=http-503 retry=x\n").counts == ["failed/http-503": 1])
    #expect(totals("\(failure) retry=x\n").counts == ["failed/other": 1])
  }
}
