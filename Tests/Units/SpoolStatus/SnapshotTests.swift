import Glibc
import Spool
import SpoolStatus
import SystemPackage
import TestSupport
import Testing

@testable import SpoolReport

/// Looks at spools whose files were written by hand.
@Suite struct SnapshotTests: HandmadeSpoolSuite {
  let made: HandmadeSpool

  init() throws { made = try HandmadeSpool() }

  private func look(limit: Int = 1000) throws -> SpoolSnapshot {
    try SnapshotReader(spool, limit: limit, now: now).read()
  }

  private func only(_ state: JobState) throws -> JobStatus {
    let snapshot = try look()
    #expect(JobState.allCases.map { snapshot.count($0) }.reduce(0, +) == 1)
    #expect(snapshot.count(state) == 1)
    return try #require(snapshot.jobs[state]?.first)
  }

  private func started(_ secondsAgo: Int64, attempt: Int = 1) -> String {
    "started: \(now + -secondsAgo) attempt=\(attempt) worker=\(own.text) boot=b mirror=1 url=http://h/x\n"
  }

  @Test func `an empty spool has no jobs`() throws {
    let snapshot = try look()
    #expect(JobState.allCases.allSatisfy { snapshot.count($0) == 0 })
    #expect(
      snapshot.stored == 0 && snapshot.progress?.total == 0 && snapshot.rate == nil && snapshot.secondsLeft == nil)
  }

  @Test func `a running job's rate is what came since its attempt began`() throws {
    let text =
      "url: http://h/x\nattempts: 5\n" + started(100) + "response: mirror=1 at=0 part=7 size=9000 etag=\"\\\"a\\\"\"\n"
    try write("cur/job:\(own.text)", text + started(10) + "response: mirror=1 at=1000 part=7 size=9000\n")
    try write("partial/job.part", String(repeating: "x", count: 5000))
    let job = try only(.running)
    #expect(job.name == FileName("job"))
    #expect((job.bytes, job.total) == (5000, 9000))
    #expect(job.rate == 400)
    #expect(job.secondsLeft == 10)
    #expect((job.attempts, job.attemptLimit) == (1, 5))
    #expect(job.worker == own.text)
    #expect(job.quiet == nil && job.problem == nil && job.next == nil)
  }

  @Test func `a running job without news is quiet`() throws {
    try write(
      "cur/job:\(own.text)",
      "http://h/x\n" + started(100) + "response: mirror=1 at=0 part=7 size=9000 resource=http://h/x\n")
    try write("partial/job.part", "xxx", age: 42)
    let job = try only(.running)
    #expect(job.rate == 0)
    #expect(job.quiet == 42)
    #expect(job.secondsLeft == nil)
  }

  /// A worker says it every 20 seconds.
  @Test func `a worker runs what it has claimed, whatever it said last`() throws {
    try #require(mkdir(directory.path("workers"), 0o700) == 0 || errno == EEXIST)
    try write("workers/\(own.text)", "started: \(now + -100)\nruns: 2\n")
    try write("cur/job:\(own.text)", "http://h/x\n")
    #expect(try look().workers.map(\.report?.runs) == [1])
  }

  @Test func `a server is told of that rests, or that a job waits for`() throws {
    func note(_ server: String, _ left: Int64) throws {
      let rest = ServerNote.Rest(
        since: now + -300, failed: now + -10, until: now + left, cause: "unreachable", code: "connect", reason: "x",
        failures: 3, host: nil)
      try ServerFiles(spool).write(ServerNote(server: server, rests: [rest]), end: now.seconds + left)
    }
    try note("http://rests:80", 4)
    try note("http://awaited:80", -1)
    try note("http://nobody:80", -1)
    try write("partial/job", "http://awaited/x\nfailed: \(now) attempt=1 code=connect at=0 reason=x\n")
    #expect(
      try look().servers.map { $0.line(now: now) } == [
        "awaited has rested for 5m00s, and the next job asks it (connect): 1 job",
        "rests has rested for 5m00s, and is asked again in 4s (connect)",
      ])
    #expect(try look().restingServers.map(\.name) == ["rests"])
  }

  @Test(arguments: [0, 1, 9]) func `beyond the limit, too, a subscription is no job`(limit: Int) throws {
    for name in ["a", "b"] {
      for directory in ["hold", "failed"] { try write("\(directory)/\(name)", "url: http://h/f\nevery: 1h\n") }
    }
    try write("hold/c", "http://h/c\n")
    let snapshot = try look(limit: limit)
    #expect((snapshot.count(.paused), snapshot.count(.failed), snapshot.orderCount) == (1, 0, 4))
  }

  @Test func `a claim whose worker is gone is interrupted`() throws {
    // No process has this number: it is above the kernel's limit.
    try write("cur/job:\(own.host).4194305.7f3a", "http://h/x\n" + started(10))
    let job = try only(.interrupted)
    #expect(job.problem?.code == "crashed")
    #expect(job.worker == "\(own.host).4194305.7f3a")
  }

  @Test(arguments: [(10, JobState.running), (59, .running), (61, .interrupted)])
  func `a claim of another host is believed for its lease`(age: Int, state: JobState) throws {
    try write("cur/job:elsewhere.1.7f3a", "http://h/x\n", age: age)
    _ = try only(state)
  }

  @Test func `between attempts after a failure it is retrying, and the file's time says when`() throws {
    let failed =
      "failed: \(now + -60) attempt=2 class=temporary code=stalled at=3 retry=\(now + 600) "
      + "reason=\"no data for 60 s from h\"\n"
    try write(
      "partial/job", "url: http://h/x\nsize: 10\n" + started(200) + failed + started(100, attempt: 2) + failed,
      age: -300)
    try write("partial/job.part", "xxx")
    let job = try only(.retrying)
    #expect((job.bytes, job.total, job.attempts, job.attemptLimit) == (3, 10, 2, 12))
    #expect(job.next == now + 300)
    #expect(job.problem == .init(code: "stalled", reason: "no data for 60 s from h", time: now + -60))
    #expect(try look().progress?.total == 10)
  }

  @Test func `after a stop it is interrupted, unless a failure came later`() throws {
    let stop =
      "interrupted: \(now + -60) attempt=1 at=3 crc32=00000000 fetched=3 reason=\"the worker was told to stop\"\n"
    try write("partial/job", "http://h/x\n" + started(200) + stop, age: 1)
    try write("partial/job.part", "xxx")
    let job = try only(.interrupted)
    #expect(job.problem?.code == "interrupted" && job.problem?.reason == "the worker was told to stop")
    #expect(job.attempts == 0)
    try write(
      "partial/job", "http://h/x\n" + started(200) + stop + "failed: \(now) attempt=1 code=cut at=3 reason=x\n", age: 1)
    _ = try only(.retrying)
    // The line was not finished: it did not happen.
    try write("partial/job", "http://h/x\n" + started(200) + stop + "failed: \(now) attempt=1 code=cut", age: 1)
    _ = try only(.interrupted)
  }

  @Test func `failed jobs come with the reason, the latest first`() throws {
    try write(
      "failed/old", "http://h/x\nfailed: \(now) attempt=1 class=permanent code=http-404 at=0 reason=\"gone\"\n",
      age: 100)
    try write(
      "failed/new", "htp\nfailed: \(now) attempt=0 class=permanent code=malformed at=0 line=1 reason=\"no URL\"\n",
      age: 10)
    try write("failed/old.part", "set aside")
    #expect(mkdir(directory.path("failed/junk"), 0o700) == 0)
    try setModificationTime(directory.path("failed/junk"), secondsFromNow: -50)
    try write(
      "failed/junk.record",
      "failed: \(now) attempt=0 class=permanent code=malformed at=0 reason=\"is not a regular file\"\n")
    let snapshot = try look()
    #expect(snapshot.count(.failed) == 3)
    let jobs = try #require(snapshot.jobs[.failed])
    #expect(jobs.map(\.name.display) == ["new", "junk", "old"])
    #expect(jobs.map(\.problem?.reason) == ["line 1: no URL", "is not a regular file", "gone"])
  }

  @Test func `the figures of a failure are said once`() throws {
    func reason(_ code: String) throws -> String? {
      let failure = "failed: \(now) attempt=1 class=permanent code=\(code) at=0 expected=9 found=4 reason=x\n"
      try write("failed/job", "http://h/x\n" + failure)
      return try only(.failed).problem?.reason
    }
    #expect(try reason("too-long") == "x (expected 9, found 4)")
    // The reason that a worker gives has them.
    #expect(try reason("disk-full") == "x")
  }

  @Test func `a record counts beside what is no job`() throws {
    let record = "failed: \(now) attempt=0 class=permanent code=malformed at=0 reason=\"cannot be read\"\n"
    func failed(_ code: String) -> String { "http://h/x\nfailed: \(now) attempt=1 code=\(code) at=0 reason=x\n" }
    // Two jobs; one that was tried again by hand and failed; a record whose subject was moved away.
    for (name, text) in [
      ("song", failed("http-404")), ("song.record", failed("http-410")), ("again", failed("http-403")),
      ("again.record", record), ("gone.record", record),
    ] { try write("failed/\(name)", text) }
    let jobs = try #require(try look().jobs[.failed])
    let codes = Dictionary(jobs.map { ($0.name.display, $0.problem?.code) }) { first, _ in first }
    #expect(jobs.count == 3 && codes == ["song": "http-404", "song.record": "http-410", "again": "http-403"])
    #expect(try look(limit: 0).count(.failed) == 3)
    for (name, code) in codes {
      let story = try JobStoryReader(spool).lines(of: FileName(name), in: nil)?.joined(separator: "\n") ?? ""
      #expect(story.contains(code ?? "none"), "\(story)")
    }
    let facts = try ReportFacts.read(spool, since: nil, now: now)
    #expect(facts.failedCodes == ["http-404": 1, "http-410": 1, "http-403": 1])
    for name in ["song", "song.record", "again"] { try #require(unlink(directory.path("failed/\(name)")) == 0) }
    #expect(try !JobSearch(spool).isAnyJob(in: [.failed]))
  }

  @Test func `held, waiting and done jobs are counted, and their names sorted`() throws {
    try write("hold/paused", "http://h/x\nsize: 10\n")
    try write("hold/paused-2", "http://h/x\n")
    try write("partial/paused.part", "xxxx")
    for name in ["c", "a", "b", "d"] { try write("new/\(name)", "") }
    try write("new/.hidden", "")
    try write("done/x", "")
    let snapshot = try look(limit: 2)
    #expect(JobState.allCases.map { snapshot.count($0) } == [0, 0, 0, 0, 2, 4, 1])
    #expect(snapshot.jobs[.waiting]?.map(\.name.display) == ["a", "b"])
    #expect(snapshot.jobs[.paused]?.map(\.bytes) == [4, nil])
    #expect((snapshot.stored, snapshot.progress?.total) == (4, 10))
    // What a failed job has is stored, and no part of what is to be fetched.
    try write("failed/gone", "http://h/x\n")
    try write("partial/gone.part", "xxxxx")
    let (bytes, total) = try #require(try look().progress)
    #expect(try look().stored == 9 && (bytes, total) == (4, 10))
  }

  /// As where everybody may list `done`, and only its owner may search it (chmod(1), 744).
  @Test func `a receipt that may not be looked at is counted`() throws {
    for name in ["a", "b"] { try write("done/\(name)", "http://h/x\ndone: \(now) output=x\n") }
    let hook = Probe { $0.kind == .stat && $0.path == "done/a" ? .fail(.permissionDenied) : nil }
    let spool = try Spool(directory.root, owner: own, boot: "b", system: System(hook: hook))
    let snapshot = try SnapshotReader(spool, limit: 9, now: now).read()
    #expect(snapshot.count(.done) == 2 && snapshot.recent?.map(\.name.display) == ["b"])
  }

  @Test func `a job that was released keeps its progress, and counts in the total`() throws {
    let journal = started(100) + "response: mirror=1 at=0 part=7 size=9000\n"
    try write("new/freed", "http://h/x\n" + journal)
    try write("urgent/sized", "url: http://h/x\nsize: 100\n")
    try write("new/fresh", "url: http://h/x\nsize: 5\n")
    try write("partial/freed.part", "xxxx")
    try write("partial/sized.part", "xx")
    let snapshot = try look()
    let waiting = try #require(snapshot.jobs[.waiting])
    #expect(waiting.map(\.bytes) == [2, 4, nil] && waiting.map(\.total) == [100, 9000, nil])
    #expect(snapshot.stored == 6 && snapshot.progress?.total == 9100)
    // Not read, so not known.
    #expect(try look(limit: 1).progress?.total == nil)
  }

  @Test(.enabled("needs root, to be several users") { try await Need.users.isMet() })
  func `the journal of another user's job says nothing of data that is there`() throws {
    try write("new/evil", "http://h/x\nresponse: mirror=1 at=0 part=7 size=9000\n")
    try write("partial/evil.part", "xxxx")
    try #require(chown(directory.path("new/evil"), 4321, 4321) == 0)
    let snapshot = try look()
    #expect(snapshot.jobs[.waiting]?.map(\.bytes) == [nil] && snapshot.progress?.total == 0)
  }

  @Test(arguments: [0, 1, 3, 7, 100])
  func `what is not read is counted all the same`(limit: Int) throws {
    for number in 1...7 {
      let failure = "failed: \(now) attempt=1 code=cut at=0 retry=\(now + 60) reason=x\n"
      try write("failed/f\(number)", "http://h/x\n" + failure)
      try write("partial/r\(number)", "http://h/x\n" + failure, age: -60)
      try write(
        "partial/i\(number)", "http://h/x\n" + failure + "interrupted: \(now) attempt=1 at=0 crc32=00000000 reason=x\n",
        age: 5)
      try write("cur/c\(number):\(own.text)", "http://h/x\n")
      try write("hold/h\(number)", "http://h/x\n")
      try write("new/n\(number)", "http://h/x\n")
    }
    let snapshot = try look(limit: limit)
    for state in JobState.allCases where state != .done {
      #expect(snapshot.count(state) == 7, "\(state)")
      #expect((snapshot.jobs[state] ?? []).count == (state == .running ? 7 : min(7, limit)), "\(state)")
    }
  }

  @Test func `nothing is changed by looking`() throws {
    try write("cur/job:\(own.text)", "http://h/x\n", age: 20)
    try write("partial/job.part", "xxx", age: 20)
    try write("new/n", "http://h/x\n", age: 20)
    let before = filesBelow(directory.root).map {
      fileStatus(directory.path($0)).map { [$0.st_mtim.tv_sec, $0.st_ctim.tv_sec, Int($0.st_ino)] }
    }
    _ = try look()
    #expect(
      filesBelow(directory.root).map {
        fileStatus(directory.path($0)).map { [$0.st_mtim.tv_sec, $0.st_ctim.tv_sec, Int($0.st_ino)] }
      } == before)
  }

  @Test func `from look to look the rate is what the data grew by`() throws {
    try write("cur/job:\(own.text)", "http://h/x\n" + started(1000) + "response: mirror=1 at=0 part=7 size=9000\n")
    try write("partial/job.part", "xxx")
    var rates = RateBook()
    var first = try look()
    rates.apply(to: &first, at: 1000)
    try write("partial/job.part", String(repeating: "x", count: 503))
    var second = try look()
    rates.apply(to: &second, at: 3000)
    #expect(second.jobs[.running]?.first?.rate == 250)
    #expect(second.rate == 250)
  }
}
