import Glibc
import Spool
import SpoolStatus
import TestSupport
import Testing

/// Why jobs wait, as `status` says it, of spools whose files were written by hand.
@Suite struct WaitReasonTests: HandmadeSpoolSuite {
  let made: HandmadeSpool

  init() throws { made = try HandmadeSpool() }

  /// Not so new that it may still be written.
  private func write(_ path: String, _ text: String) throws { try write(path, text, age: 100) }

  private func addWorker(_ lines: String = "", jobs: Int = 4, perHost: Int = 2, runs: Int = 0) throws {
    _ = mkdir(directory.path("workers"), 0o755)
    let text = "started: \(now) program=x mode=watch\noptions: jobs=\(jobs) per-host=\(perHost)\nruns: \(runs)\n"
    try write("workers/\(own.text)", text + lines, age: 0)
  }

  private func addRunning(_ name: String, _ job: String) throws {
    try write("cur/\(name):\(own.text)", job, age: 0)
  }

  private func wait(_ name: String = "a") throws -> WaitReason? {
    let jobs = try SnapshotReader(spool, limit: 1000, now: now).read().jobs.values.joined()
    return try #require(jobs.first { $0.name == FileName(name) }).waits
  }

  @Test(arguments: ["new/a", "partial/a", "urgent/a"])
  func `a job that is due says what its worker waits for`(place: String) throws {
    _ = mkdir(directory.path("urgent"), 0o755)
    try write(place, "http://h/x\n")
    #expect(try wait() == WaitReason(.worker, "no worker runs"))
    for (cause, expected) in [
      ("gate", WaitReason.Cause.gate), ("space", .space), ("output", .output), ("proxy", .proxy), ("moon", .other),
    ] {
      try addWorker("waits: \(cause) reason=\"so \\\"it\\\" is\\x1b\"\n")
      #expect(try wait() == WaitReason(expected, "so \"it\" is\\x1b"))
    }
    try addWorker()
    #expect(try wait() == nil)
  }

  @Test func `one of two workers is enough to start it`() throws {
    try write("new/a", "http://h/x\n")
    try addWorker("waits: gate reason=closed\n")
    #expect(try wait()?.cause == .gate)
    try write("workers/other.1.0000000a", "started: \(now)\noptions: jobs=4 per-host=2\nruns: 0\n", age: 0)
    #expect(try wait() == nil)
  }

  @Test func `a dead worker serves nobody`() throws {
    try write("new/a", "http://h/x\n")
    try addWorker("waits: gate reason=closed\n")
    try setModificationTime(directory.path("workers/\(own.text)"), to: Int(now.seconds) - 3600)
    #expect(try wait()?.cause == .worker)
  }

  @Test func `the next attempt comes first, and the network before it`() throws {
    let failure = "failed: \(now) attempt=1 class=temporary code=no-network at=0 reason=x\n"
    try write("partial/a", "http://h/x\n" + failure, age: -500)
    try addWorker("waits: gate reason=closed\n")
    #expect(try wait() == WaitReason(.time, "until \(now + 500)"))
    try addWorker("waits: network reason=\"1 jobs wait\"\n")
    #expect(try wait()?.cause == .network)
  }

  /// The next worker, such as that of cron, asks no server before its rest ends.
  @Test func `a server rests without a worker, too`() throws {
    func rest(_ left: Int64) throws {
      let rest = ServerNote.Rest(
        since: now + -300, failed: now + -10, until: now + left, cause: "unreachable", code: "connect", reason: "x",
        failures: 3, host: nil)
      try ServerFiles(spool).write(ServerNote(server: "http://h:80", rests: [rest]), end: now.seconds + left)
    }
    try write("partial/a", "http://h/x\n", age: 1)
    try rest(77)
    #expect(
      try wait() == WaitReason(.server, "h has rested for 5m00s, and is asked again in 1m17s (connect)"))
    let story = try #require(try JobStoryReader(spool).lines(of: FileName("a"), in: nil))
    #expect(story.first?.hasPrefix("a: h has rested for ") == true, "\(story)")
    #expect(story.last == "  `spoolrun retry --spool \(directory.root) --server h` asks now.", "\(story)")
    try rest(-1)
    #expect(try wait()?.cause == .worker)
  }

  @Test func `the job of a dead worker whose lease is not over waits for that`() throws {
    let seat = spool.owner.text.split(separator: ".").last.map { String($0.dropFirst(8)) } ?? ""
    // No process has this number: it is above the kernel's limit.
    try write("cur/a:\(own.host)-2.4194305.0000000a\(seat)", "http://h/x\n", age: 8)
    let reason = "taken over in 52s, when the lease of \(own.host)-2 ends"
    #expect(try wait() == WaitReason(.lease, reason))
    let story = try #require(try JobStoryReader(spool).lines(of: FileName("a"), in: nil))
    #expect(story.first?.hasPrefix("a: taken over in ") == true && !story.joined().contains("--once"), "\(story)")
    try write("cur/a:\(own.host)-2.4194305.0000000a\(seat)", "http://h/x\n", age: 61)
    #expect(try wait()?.cause == .worker)
  }

  @Test func `a held job is held`() throws {
    try write("hold/a", "http://h/x\n")
    #expect(try wait()?.cause == .held)
  }

  @Test func `the limits of the worker`() throws {
    try write("new/a", "https://user@H.example/b\n")
    try addRunning("r", "https://h.example/c\n")
    try addWorker(jobs: 4, perHost: 1, runs: 1)
    #expect(try wait() == WaitReason(.host, "h.example has as many transfers as allowed (1)"))
    try addWorker(jobs: 1, perHost: 2, runs: 1)
    #expect(try wait()?.cause == .slots)
    try addWorker(jobs: 4, perHost: 2, runs: 1)
    #expect(try wait() == nil)
    try write("defaults", "per-host@h.example: 1\n")
    #expect(try wait() == WaitReason(.host, "h.example has as many transfers as allowed (1)"))
    try write("defaults", "per-host@h.example: 3\n")
    try addWorker(jobs: 4, perHost: 1, runs: 1)
    #expect(try wait() == nil, "it takes the place of the worker's own")
    try write("new/a", "url: https://other.example/b\npriority: low\n")
    try addWorker(jobs: 2, perHost: 2, runs: 1)
    #expect(try wait()?.cause == .priority)
  }

  @Test func `a server gets more transfers only if they bring more`() throws {
    try write("new/a", "https://h.example/b\n")
    for name in ["q", "r", "s"] { try addRunning(name, "https://h.example/\(name)\n") }
    try addWorker(jobs: 16, perHost: 16, runs: 4)
    #expect(try wait() == nil)
    try addRunning("t", "https://h.example/t\n")
    #expect(try wait() == WaitReason(.host, "h.example has 4 transfers, and more only if they bring more"))
    try write("defaults", "per-host@h.example: 8\n")
    #expect(try wait() == nil)
  }

  @Test func `a job that is larger than the room`() throws {
    try write("new/a", "url: https://b.example/y\nsize: 9000000000000000000\n")
    try addWorker()
    #expect(try wait() == nil)
    _ = mkdir(directory.path("workers"), 0o755)
    try write("workers/\(own.text)", "started: \(now)\noptions: jobs=4 per-host=2 min-free=1000\nruns: 0\n", age: 0)
    #expect(try wait()?.cause == .space)
    try write("new/a", "url: https://b.example/y\nsize: 1000\n")
    #expect(try wait() == nil)
  }

  @Test func `the same output, by its name or by the URL's`() throws {
    try addWorker(runs: 1)
    try addRunning("first", "https://a.example/dir/data.tar?x=1\n")
    try write("new/a", "url: https://b.example/y\noutput: data.tar\n")
    #expect(try wait() == WaitReason(.order, "first runs, which has its output"))
    try write("new/a", "url: https://b.example/y\noutput: other.tar\n")
    #expect(try wait() == nil)
  }

  @Test func `a file that may still be written`() throws {
    try addWorker()
    try write("new/a", "http://h/x", age: 2)
    #expect(try wait()?.cause == .unfinished)
    // Without a worker, and long after: it goes to failed as soon as one sees it.
    try write("new/b", "http://h/x", age: 100)
    #expect(try wait("b")?.cause == .unfinished)
    let story = try #require(try JobStoryReader(spool).lines(of: FileName("b"), in: nil))
    #expect(story.first?.hasPrefix("b: not complete: its last line has no newline") == true, "\(story)")
    let retry = "`spoolrun retry --spool \(directory.root) b`"
    #expect(story.last == "  If nothing is missing, \(retry) runs it as it is, once it is in failed.", "\(story)")
    try write("new/a", "", age: 2)
    #expect(try wait()?.cause == .unfinished)
    try write("new/a", "http://h/x\n", age: 2)
    #expect(try wait() == nil)
    let shared = try Spool(directory.root, owner: own, boot: "b", kind: FileSystemKind(name: "x", sharing: .network))
    let job = try SnapshotReader(shared, limit: 9, now: now).read().jobs[.waiting]?.first
    #expect(job?.waits?.cause == .unfinished)
  }

  @Test func `a table says once what all jobs of a state wait for`() throws {
    try addWorker("waits: gate reason=\"--gate: night only\"\n")
    for name in ["a", "b", "c"] { try write("new/\(name)", "http://h/x\n") }
    let snapshot = try SnapshotReader(spool, limit: 9, now: now).read()
    let lines = StatusTable(snapshot, Look(isColored: false), width: 120) { _ in 10 }.lines.map(\.trimmed)
    #expect(lines.contains("new/: 3 waiting: waits for the gate: --gate: night only"))
    #expect(lines.count { $0.contains("waits for the gate") } == 1)
  }
}
