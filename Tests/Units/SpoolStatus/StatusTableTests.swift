import Spool
import SpoolStatus
import Testing

@Suite struct StatusTableTests {
  private let look = Look(isColored: false)
  private let now = Timestamp(seconds: 1_800_000_000)

  private func snapshot(attempts: Int = 1) -> SpoolSnapshot {
    var snapshot = SpoolSnapshot(location: "spool", time: now)
    var running = JobStatus(FileName("日本語の名前.tar"), .running)
    (running.bytes, running.total, running.rate) = (1 << 20, 4 << 20, 1_048_576)
    (running.attempts, running.attemptLimit) = (attempts, attempts == 1 ? 12 : 1000)
    var failed = JobStatus(FileName("a\u{1B}]0;title\u{07}"), .failed)
    failed.problem = .init(code: "http-404", reason: "h answered 404: no such file\u{1B}[2J")
    var retrying = JobStatus(FileName(String(repeating: "n", count: 150) + ".iso"), .retrying)
    (retrying.next, retrying.problem) = (now + 250, .init(code: "stalled", reason: "no data for 60 s"))
    snapshot.jobs = [
      .running: [running], .failed: [failed], .retrying: [retrying], .waiting: [JobStatus(FileName("w"), .waiting)],
    ]
    snapshot.counts = [.running: 1, .failed: 1, .retrying: 1, .waiting: 99_996, .done: 1200]
    snapshot.stored = 1 << 20
    return snapshot
  }

  private func text(width: Int) -> [String] {
    StatusTable(snapshot(), look, width: width) { _ in 10 }.lines.map(\.trimmed)
  }

  @Test func `in a wide window remarks stand beside the figures`() {
    let lines = text(width: 199)
    #expect(lines[0] == "1 running, 1 failed, 1 retrying, 99996 waiting, 1200 done")
    #expect(lines[1] == "1.00M of 4.00M (25%), 1.00M/s, 3s left")
    #expect(lines[4] == "cur/: 1 running")
    #expect(lines[5].hasPrefix("  日本語の名前.tar") && lines[5].hasSuffix("1.00M/4.00M   25%  1.00M/s      3s   1/12"))
    #expect(lines[7].hasSuffix("http-404: h answered 404: no such file\\x1b[2J"))
    #expect(lines[9].contains("next in 4m10s; stalled: no data for 60 s"))
    #expect(lines.suffix(3) == ["new/: 99996 waiting", "  w", "  … and 99995 more"])
  }

  @Test func `at 80 columns they stand below`() {
    let lines = text(width: 79)
    #expect(lines[7...8] == ["  a\\x1b]0;title\\x07", "    http-404: h answered 404: no such file\\x1b[2J"])
    #expect(lines[10].hasPrefix("  nnnn") && lines[10].contains("….") == false && lines[10].contains("…"))
  }

  @Test func `at 40 columns the rate goes`() {
    let lines = text(width: 39)
    #expect(lines[0] == "1 running, 1 failed, 1 retrying, " || lines[0] == "1 running, 1 failed, 1 retrying,")
    #expect(lines.contains { $0.hasPrefix("  日本語") && $0.contains("25%") && $0.contains("3s") && !$0.contains("/s") })
  }

  @Test(arguments: [1, 5, 12, 20, 30, 39, 50, 59, 60, 79, 100, 119, 199])
  func `no line is wider than the window, and none steers the terminal`(width: Int) {
    var snapshot = snapshot(attempts: 100)
    let done = Array("http://h/x\ndone: \(now) output=a bytes-fetched=1 seconds=1\n".utf8)
    snapshot.counts[.done] = 1 << 40
    snapshot.recent = done.withUnsafeBytes { DoneStatus(FileName("a"), $0) }.map { [$0] }
    for line in StatusTable(snapshot, look, width: width, limit: { _ in 10 }).lines {
      #expect(line.width <= max(width, 20), "\(line.text)")
      #expect(line.text.unicodeScalars.allSatisfy { $0.value >= 0x20 })
    }
  }

  @Test func `what was done lately is below the jobs`() throws {
    var snapshot = snapshot()
    let verified = "verified: 2026-11-21T03:02:40Z size=104857600 crc32=1c291ca3 part=7\n"
    let done = "done: \(now + -200) attempts=2 output=a.tar bytes-fetched=104857600 milliseconds=50001\n"
    let receipt = Array("http://h/x\n\(verified)\(done)".utf8)
    snapshot.recent = [try #require(receipt.withUnsafeBytes { DoneStatus(FileName("a"), $0) })]
    let lines = StatusTable(snapshot, look, width: 79) { _ in 10 }.lines.map(\.trimmed)
    #expect(lines.suffix(3) == ["done/: 1200 done", "  a  100M in 50.0s, 2.00M/s, 3m20s ago", "  … and 1199 more"])
  }

  @Test func `an empty spool says so`() {
    let table = StatusTable(SpoolSnapshot(location: "s", time: now), look, width: 79) { _ in 10 }
    #expect(table.lines.map(\.text) == ["no jobs"])
  }

  @Test func `colours come only when asked for`() {
    #expect(text(width: 79).allSatisfy { !$0.contains("\u{1B}") })
    let colored = StatusTable(snapshot(), Look(isColored: true), width: 79) { _ in 10 }.lines
    #expect(colored.contains { $0.text.contains("\u{1B}[31m") })
  }
}
