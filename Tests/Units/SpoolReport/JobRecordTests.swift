import Spool
import SpoolReport
import Testing

/// - Parameter changed: in seconds since the epoch.
func record(
  _ job: String, _ name: String = "a", in directory: Directory = .done, changed: Int64 = 2_000_000_000
) -> JobRecord {
  Array(job.utf8).withUnsafeBytes {
    JobRecord(FileName(name), in: directory, bytes: $0, changed: Timestamp(seconds: changed))
  }
}

@Suite struct JobRecordTests {
  private func time(_ minute: Int) -> String { "2026-11-21T03:0\(minute):00Z" }

  private func started(_ attempt: Int, _ minute: Int, _ url: String = "https://h.example/x") -> String {
    "started: \(time(minute)) attempt=\(attempt) worker=a.1.2 boot=b mirror=1 url=\(url)\n"
  }

  @Test func `attempts have their times, hosts, bytes and ends`() throws {
    let job = record(
      """
      https://h.example/x
      \(started(1, 1))response: mirror=1 at=0 part=1 size=100
      failed: \(time(2)) attempt=1 class=temporary code=cut at=10 fetched=10 retry=\(time(3)) reason="no \\"data\\""
      \(started(2, 3, "https://m.example:8080?x"))interrupted: \(time(4)) attempt=2 at=30 fetched=20 reason=stopped
      \(started(2, 5))verified: \(time(6)) size=100 crc32=00000000 part=1
      done: \(time(6)) attempts=2 output="a b" bytes-fetched=100 seconds=9

      """)
    #expect(job.attempts.map(\.bytes) == [10, 20, 70])
    #expect(job.attempts.map(\.end) == [.failed(code: "cut"), .interrupted, .done])
    #expect(job.attempts.map(\.host) == ["h.example", "m.example:8080", "h.example"])
    #expect(job.attempts.map { $0.ended.seconds - $0.begun.seconds } == [60, 60, 60])
    #expect(job.size == 100 && job.output == "a b" && job.reason == "no \"data\"")
    #expect(job.since == Timestamp(time(1)))
  }

  @Test func `mirrors of one attempt are one, and a worker that died leaves one open`() {
    let job = record(
      started(1, 1) + started(1, 2, "https://m.example/x") + started(2, 3) + "done: \(time(4)) bytes-fetched=5\n")
    #expect(job.attempts.map(\.host) == ["m.example", "h.example"])
    #expect(job.attempts.map(\.end) == [.open, .done])
  }

  @Test func `the time in which no worker ran is no attempt's`() {
    let killed = started(1, 1)
    let job = record(killed + started(1, 8).replacing("a.1.2", with: "a.2.3") + "done: \(time(9)) bytes-fetched=5\n")
    #expect(job.attempts.map { $0.ended.seconds - $0.begun.seconds } == [0, 60])
  }

  @Test func `a receipt that is written again is one, and a job that runs again has both lives`() {
    let life = started(1, 1) + "done: \(time(2)) bytes-fetched=5\ndone: \(time(3)) bytes-fetched=5\n"
    #expect(record(life).attempts.map(\.bytes) == [5])
    #expect(record(life + "requeued: \(time(4))\n" + life).attempts.map(\.bytes) == [5, 5])
  }

  @Test func `what was no job has its failure`() {
    let job = record("failed: \(time(1)) attempt=0 class=permanent code=malformed line=1 reason=x\n", in: .failed)
    #expect(job.attempts.map(\.end) == [.failed(code: "malformed")])
    #expect(record("https://h/x\n", in: .new, changed: 5).since == Timestamp(seconds: 5))
  }

}
