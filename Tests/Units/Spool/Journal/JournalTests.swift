import Testing

@testable import Spool

/// What the next attempt learns from the lines of the earlier ones.
@Suite struct JournalTests {
  private let noon = "2026-11-21T12:00:00Z"
  private func folded(_ lines: String...) -> Journal {
    parsed("https://h/a\n" + lines.map { $0 + "\n" }.joined()).journal
  }
  private func mark(_ offset: UInt64, _ sum: UInt32) -> Mark { Mark(offset: offset, checksum: Checksum(value: sum)) }

  private var begun: [String] {
    [
      "started: \(noon) attempt=1 worker=alpha.4242.0007f3a1 boot=b-1 mirror=1 url=https://h/a",
      "response: mirror=2 at=0 part=77 size=100 etag=\"\\\"v1\\\"\" modified=\"Sat, 21 Nov 2026 10:00:00 GMT\"",
      "checkpoint: 40 crc32=00000028",
    ]
  }
  private func begun(_ lines: String...) -> Journal {
    parsed("https://h/a\n" + (begun + lines).map { $0 + "\n" }.joined()).journal
  }

  @Test func aBegunJob() {
    let journal = begun()
    #expect(journal.attempts.lastStart == Journal.Start(host: "alpha", worker: "alpha.4242.0007f3a1", boot: "b-1"))
    #expect(journal.attempts.firstStarted?.description == noon)
    #expect(
      journal.data.version
        == RemoteVersion(mirror: 2, size: 100, etag: "\"v1\"", modified: "Sat, 21 Nov 2026 10:00:00 GMT"))
    #expect(journal.data.part == 77)
    #expect(journal.data.checkpoint == mark(40, 0x28) && journal.data.softMark == mark(40, 0x28))
    #expect(journal.attempts.failures == 0 && journal.publication.verified == nil && journal.publication.receipt == nil)
  }

  /// No file is so long, whatever a dropped job says. An inode may have such a number.
  @Test(arguments: [UInt64.max, 1 << 63])
  func numbersThatAreNone(number: UInt64) {
    let ends = ["interrupted", "failed"].map { "\($0): \(noon) at=\(number) crc32=00000000 fetched=\(number)" }
    for line in ["checkpoint: \(number) crc32=00000000"] + ends.map({ "\($0) broken=\(number)" }) {
      let journal = begun(line, line, "checkpoint: 80 crc32=00000050")
      #expect(journal.data.softMark == mark(80, 0x50) && journal.data.brokenFrom ?? 0 == 0)
      #expect(journal.traffic.fetched == 0)
    }
    let journal = begun(
      "response: mirror=1 at=\(number) part=1", "response: mirror=1 at=40 size=\(number) part=\(number)")
    #expect(journal.data.version?.size == nil && journal.data.part == number)
  }

  @Test func attemptsThatCount() {
    let journal = folded(
      "failed: \(noon) attempt=1 class=temporary code=cut at=5 fetched=5",
      "failed: \(noon) attempt=2 class=temporary code=no-network burned=no at=5",
      "interrupted: \(noon) attempt=2 at=9 crc32=00000009 fetched=4 reason=stop",
      "failed: \(noon) attempt=2 class=temporary code=http-503 at=9")
    #expect(journal.attempts.failures == 2, "an interruption and a missing network burn none")
    #expect(journal.traffic.fetched == 9)
    #expect(journal.attempts.lastFailure?["code"] == "http-503")
  }

  @Test func aRequeuedJobHasAFreshBudget() {
    let journal = begun(
      "failed: \(noon) attempt=1 code=mismatch-crc32 at=0 fetched=100", "failed: \(noon) attempt=2 code=io at=0",
      "requeued: \(noon)")
    #expect(journal.attempts.failures == 0 && journal.attempts.mismatches == 0 && journal.traffic.fetched == 0)
    #expect(journal.attempts.firstStarted == nil)
    // Its data stays known.
    #expect(begun("requeued: \(noon)").data.checkpoint == mark(40, 0x28))
  }

  /// The job may have been edited: a crash right after this line must not publish what the old text asked for.
  @Test func aRequeuedJobHasNothingVerified() {
    let journal = begun(
      "verified: \(noon) size=100 crc32=00000064 part=77",
      "done: \(noon) attempts=1 output=a bytes-fetched=100 seconds=1",
      "requeued: \(noon)")
    #expect(journal.publication.verified == nil && journal.publication.receipt == nil)
  }

  /// Each mirror has its `started:`, and so has what a worker begins again by itself: what counts is how many workers
  /// did not come to an end.
  @Test func deathsInARow() {
    func start(_ process: Int) -> String {
      "started: \(noon) attempt=1 worker=alpha.\(process).00000001 boot=b-1 mirror=1 url=https://h/a"
    }
    func deaths(_ lines: String...) -> Int {
      parsed("https://h/a\n" + lines.map { $0 + "\n" }.joined()).journal.attempts.deaths(
        askedBy: WorkerID(host: "alpha", process: 9, tag: 1))
    }
    #expect(deaths() == 0)
    #expect(deaths(start(1)) == 1)
    #expect(deaths(start(1), start(1), "checkpoint: 40 crc32=00000028", start(1)) == 1)
    #expect(deaths(start(1), start(2), start(2), start(3)) == 3)
    #expect(deaths(start(1), start(2), start(9), start(9)) == 2, "who asks has not died")
    #expect(deaths(start(1), start(2), start(3) + " former=frozen") == 2, "who was frozen has not, either")
    #expect(deaths(start(1), start(2), "cleared: \(noon)") == 1)
    #expect(deaths(start(1), start(2), "cleared: \(noon)", start(3)) == 2)
    for end in [
      "interrupted: \(noon) attempt=1 at=60 crc32=0000003c reason=stopped",
      "failed: \(noon) attempt=1 class=temporary code=cut at=60", "failed: \(noon) attempt=1 code=io at=60 doubt=yes",
      "done: \(noon) attempts=1 output=a bytes-fetched=100 seconds=1", "requeued: \(noon)",
    ] {
      #expect(deaths(start(1), start(2), end) == 0)
      #expect(deaths(start(1), start(2), end, start(3)) == 1)
    }
  }

  @Test func softMarks() {
    #expect(begun("failed: \(noon) attempt=1 code=cut at=60 crc32=0000003c").data.softMark == mark(60, 0x3c))
    #expect(begun("failed: \(noon) attempt=1 code=cut at=60").data.softMark == mark(40, 0x28), "no checksum, no mark")
    #expect(begun("interrupted: \(noon) attempt=1 at=60 crc32=0000003c").data.softMark == mark(60, 0x3c))
    #expect(begun("interrupted: \(noon) attempt=1 at=60 crc32=0000003c").data.checkpoint == mark(40, 0x28))
    #expect(
      begun("interrupted: \(noon) at=60 crc32=0000003c", "checkpoint: 80 crc32=00000050").data.softMark
        == mark(80, 0x50))
  }

  /// Whoever died without a word may have heard of a failed fsync.
  @Test func openAttempts() {
    #expect(begun().attempts.isOpen)
    #expect(begun("checkpoint: 80 crc32=00000050", "requeued: \(noon)").attempts.isOpen, "a move ends none")
    #expect(!begun("interrupted: \(noon) attempt=1 at=60 crc32=0000003c reason=stopped").attempts.isOpen)
    #expect(!begun("failed: \(noon) attempt=1 code=cut at=60", "requeued: \(noon)").attempts.isOpen)
    #expect(begun("done: \(noon) attempts=1 output=a bytes-fetched=100 seconds=1").attempts.isOpen, "only its move")
  }

  @Test(arguments: ["mismatch-crc32", "mismatch-size", "mismatch"])
  func aMismatchForgetsTheData(_ code: String) {
    let journal = begun("failed: \(noon) attempt=1 code=\(code) at=0")
    #expect(journal.attempts.mismatches == 1 && journal.attempts.failures == 1)
    #expect(journal.data.version == nil && journal.data.part == nil)
    #expect(journal.data.checkpoint == nil && journal.data.softMark == nil)
    let ofOther = begun("failed: \(noon) attempt=1 code=\(code) at=60 crc32=0000003c")
    #expect(ofOther.attempts.mismatches == 1 && ofOther.data.version != nil && ofOther.data.softMark == mark(60, 0x3C))
  }

  /// The worker may be killed before it can record the mismatch.
  @Test func aMirrorThatIsAskedAloneIsSoUntilTheJobIsDroppedAgain() {
    let started = "started: \(noon) attempt=1 worker=alpha.1.2 boot=b1 mirror=2 url=u"
    #expect(!begun(started).attempts.hasMismatched && begun("\(started) alone=yes", started).attempts.hasMismatched)
    #expect(!begun("\(started) alone=yes", "requeued: \(noon)").attempts.hasMismatched)
  }

  /// As two keys of one storage service.
  @Test func mirrorsMayDifferInTheQueryAlone() {
    func source(_ query: String?) -> DataSource { DataSource(Resource(place: "https://h/f", query: query)) }
    func started(_ mirror: Int, _ query: String) -> String {
      let worker = WorkerID(host: "alpha", process: 1, tag: 2)
      let line = JournalLine.started(
        Timestamp(seconds: 0), attempt: 1, worker: worker, boot: "b", mirror: mirror, url: "https://h/f",
        source: source(query))
      return String(line.text.dropLast())
    }
    let lines = [
      started(1, "id=1"), started(2, "id=2"), "failed: \(noon) attempt=1 code=mismatch-size at=0 mirror=1",
    ]
    let wrong = folded(lines[0], lines[1], lines[2]).attempts
    #expect(wrong.isWrong("https://h/f", source("id=1")))
    #expect(!wrong.isWrong("https://h/f", source("id=2")) && !wrong.isWrong("https://h/f", source(nil)))
    let requeued = folded(lines[0], lines[1], lines[2], "requeued: \(noon)").attempts
    #expect(!requeued.isWrong("https://h/f", source("id=1")))
  }

  /// A worker that copies the data first writes a line of it before it asks.
  @Test func aCopyIsNoAnswer() {
    let copied = "response: mirror=1 at=0 part=78 size=100"
    let failed = "failed: \(noon) attempt=1 class=permanent code=http-404 at=60 crc32=0000003c burned=no"
    let (before, after) = (begun(failed), begun(failed, copied))
    #expect(before.answers.refusals == 1 && after.data.part == 78)
    #expect(after.answers == before.answers && after.traffic == before.traffic)
    #expect(before.attempts.deferrals == 1 && after.attempts.deferrals == 1)
    let asked = begun(failed, copied, begun[0], copied)
    #expect(asked.answers.refusals == 0 && asked.attempts.deferrals == 0)
    #expect(asked.traffic == before.traffic, "a copy is no traffic")
  }

  /// A URL that was edited has a server that is asked anew; two mirrors that are away are away since the first failure.
  @Test func sinceWhenAServerPutsAJobOff() {
    func start(_ url: String) -> String { "started: \(noon) attempt=1 worker=alpha.1.2 boot=b1 mirror=1 url=\(url)" }
    func failed(_ minute: Int) -> String {
      "failed: 2026-11-21T12:0\(minute):00Z attempt=1 class=temporary code=connect at=0 burned=no"
    }
    func since(_ url: String, _ lines: String...) -> String? {
      parsed("https://h/a\n" + lines.map { $0 + "\n" }.joined()).journal.attempts.deferredSince(by: url)?.description
    }
    let (a, b, c) = (start("https://h/a"), start("https://m:8443/b"), start("http://h/a"))
    let first = "2026-11-21T12:01:00Z"
    #expect(since("https://h/x", failed(1)) == first, "nobody says which")
    #expect(since("https://h/x", a, b, failed(1), a, b, failed(2)) == first)
    #expect(since("https://m:8443", a, b, failed(1), b, failed(2)) == first)
    #expect(since("http://h/a", a, failed(1), a, failed(2)) == nil, "only the former has failed")
    #expect(since("http://h/a", a, failed(1), c) == nil)
    #expect(since("http://h/a", a, failed(1), c, failed(3), c, failed(4)) == "2026-11-21T12:03:00Z")
    #expect(since("https://h/a", a, failed(1), a, "response: mirror=1 at=0 part=7 size=9", failed(4)) != first)
  }

  @Test func aNewVersionForgetsTheMarks() {
    let over = begun("response: mirror=1 at=0 part=78 size=90")
    #expect(over.data.checkpoint == nil && over.data.softMark == nil)
    #expect(over.data.version == RemoteVersion(mirror: 1, size: 90, etag: nil, modified: nil) && over.data.part == 78)
    let further = begun("response: mirror=1 at=40 part=77 size=100 if-range=ignored")
    #expect(further.data.checkpoint == mark(40, 0x28))
    #expect(further.data.version?.ignoresIfRange == true)
  }

  @Test func lostWrites() {
    #expect(begun("failed: \(noon) attempt=1 code=io at=60 crc32=0000003c").data.lostWrites, "as 0.2 wrote it")
    #expect(!begun("failed: \(noon) attempt=1 code=io at=60 crc32=0000003c lost=no").data.lostWrites)
    #expect(!begun("failed: \(noon) attempt=1 code=cut at=60 crc32=0000003c").data.lostWrites)
    #expect(begun("failed: \(noon) attempt=1 code=disk-full at=60 lost=yes").data.lostWrites)
    #expect(!begun("failed: \(noon) attempt=1 code=io at=60", "response: mirror=1 at=40 part=78").data.lostWrites)
    #expect(
      begun("failed: \(noon) attempt=1 code=io at=60", "requeued: \(noon)").data.lostWrites, "the inode is the same")
    #expect(
      begun("interrupted: \(noon) attempt=1 at=60 crc32=0000003c fetched=0 lost=yes reason=moved").data.lostWrites)
  }

  /// Of data whose answer broke off, until another attempt has opened it.
  @Test func theDoubtAboutTheEndLasts() {
    let cut = "failed: \(noon) attempt=1 class=temporary code=cut at=60 crc32=0000003c broken=0"
    #expect(begun(cut).data.brokenFrom == 0)
    #expect(begun(cut, "failed: \(noon) attempt=2 class=temporary code=no-output at=0").data.brokenFrom == 0)
    #expect(begun(cut, "failed: \(noon) attempt=2 code=http-404 at=60 crc32=0000003c").data.brokenFrom == nil)
  }

  @Test func theReceipt() {
    let done = begun(
      "verified: \(noon) size=100 crc32=00000064 part=77",
      "done: \(noon) attempts=1 output=sets/a bytes-fetched=100 seconds=3 directory=\"/srv/with blank\"")
    #expect(done.publication.verified == Journal.Verified(mark(100, 100), part: 77))
    #expect(done.publication.receipt == Journal.Receipt(output: "sets/a", directory: "/srv/with blank", unproven: nil))
    let again = begun(
      "verified: \(noon) size=100 crc32=00000064 part=77",
      "started: \(noon) attempt=2 worker=beta.1.2 boot=b-2 mirror=1")
    #expect(
      again.publication.verified == nil
        && again.attempts.lastStart == Journal.Start(host: "beta", worker: "beta.1.2", boot: "b-2"))
    #expect(again.attempts.firstStarted?.description == noon)
  }

  @Test func aFileThatWasThereBefore() throws {
    let line = "verified: \(noon) size=100 crc32=00000064 part=77"
    let (own, others) = (begun(line).publication, begun("\(line) existing=yes").publication)
    #expect(own.verified?.isOthers == false && own.own == own.verified)
    #expect(others.verified?.isOthers == true && others.own == nil)
    let read = try #require(others.verified)
    #expect(JournalLine.verified(Timestamp(seconds: 0), read).text.hasSuffix(" existing=yes\n"))
  }

  /// Numbers from a stranger's journal neither trap nor wrap into something plausible.
  @Test func hugeNumbers() {
    let journal = folded(
      "response: mirror=99999999999 at=0 part=1", "failed: \(noon) code=cut fetched=18446744073709551615",
      "failed: \(noon) code=cut fetched=5", "checkpoint: 18446744073709551615 crc32=00000000")
    #expect(journal.data.version == nil)
    #expect(journal.data.checkpoint == nil)
  }

  @Test func ifRangeWantsAStrongValidator() {
    func value(_ etag: String?, _ modified: String?) -> String? {
      RemoteVersion(mirror: 1, size: nil, etag: etag, modified: modified).ifRange
    }
    #expect(value("\"a\"", "date") == "\"a\"" && value("\"\"", nil) == "\"\"")
    #expect(value("W/\"a\"", "date") == nil, "RFC 9110 13.1.5: no date where there is an ETag")
    #expect(value(nil, "date") == "date" && value(nil, nil) == nil)
    for broken in ["", "\"", "a", "\"a", "a\""] { #expect(value(broken, nil) == nil) }
  }

  /// Each line is written so that the reader gets the same out of it.
  @Test func linesRoundTrip() throws {
    let failure = Failure(
      .http, "host said \"no\"\n", status: 503, expected: "a b", found: "c=d", line: 3, retryAfter: 5)
    let record = FailureRecord(
      time: Timestamp(seconds: 5), attempt: 2, failure: failure, mark: mark(7, 9), fetched: 8,
      retry: Timestamp(seconds: 60))
    let version = RemoteVersion(
      mirror: 1, size: 9, etag: "W/\"x y\"", modified: "a, b", ignoresIfRange: true,
      resource: Resource(place: "https://h/a b", query: "sig=\"x\""), type: "text/plain")
    let verified = Journal.Verified(mark(9, 1), part: 3, unproven: "length")
    let list = Journal.ListVersion(url: "https://h/l", format: .rss, etag: "W/\"x y\"", modified: "a, b")
    let lines: [JournalLine] = [
      .requeued(Timestamp(seconds: 1)), .urgent(Timestamp(seconds: 1)),
      .relinked(Timestamp(seconds: 1), url: "u", isSame: true),
      .checked(Timestamp(seconds: 2), .init(entries: 3, new: 1, version: list)), .seen(["0123456789abcdef"]),
      .started(
        Timestamp(seconds: 2), attempt: 1, worker: WorkerID(host: "al.pha", process: 1, tag: 2), boot: "b", mirror: 1,
        url: "u", source: DataSource(Resource(place: "u", query: "a=b"))),
      .response(version, at: 0, part: 3),
      .checkpoint(mark(4, 5)), .cleared(Timestamp(seconds: 3)),
      .interrupted(Timestamp(seconds: 3), attempt: 1, mark: mark(5, 6), fetched: 7, reason: "x"),
      .failed(record), .verified(Timestamp(seconds: 4), verified),
      .published(Timestamp(seconds: 4), output: "a b/ü", directory: "/x\ny"),
      .done(
        Timestamp(seconds: 5), attempts: 1, output: "a b/ü", fetched: 9, milliseconds: 1000, existing: true,
        unproven: "length", directory: "/x\ny", delivered: Timestamp(seconds: 6)),
    ]
    #expect(Set(lines.map(\.key)) == Set(JournalKey.allCases))
    let job = parsed("https://h/a\n" + lines.map(\.text).joined())
    #expect(job.defect == nil && !job.hasTornTail)
    let checks = job.journal.checks
    #expect(checks.version == list && checks.entries == 3 && checks.seen == ["0123456789abcdef"])
    let journal = job.journal
    #expect(journal.attempts.lastStart?.host == "al_pha" && journal.attempts.lastStart?.boot == "b")
    #expect(journal.data.version == version && journal.publication.published == verified)
    #expect(journal.data.checkpoint == mark(4, 5) && journal.data.softMark == mark(7, 9))
    #expect(
      journal.attempts.lastFailure?["reason"] == "host said \"no\"\n"
        && journal.attempts.lastFailure?["code"] == "http-503")
    #expect(
      journal.attempts.lastFailure?["line"] == "3" && journal.attempts.lastFailure?["retry"] == "1970-01-01T00:01:00Z")
    #expect(journal.traffic.fetched == 15 && journal.attempts.failures == 1)
    let receipt = Journal.Receipt(output: "a b/ü", directory: "/x\ny", unproven: "length", isDelivered: true)
    #expect(journal.publication.receipt == receipt)
  }

  /// What has its final name waits for the hook `deliver`, with attempts of its own, until a receipt or a new download.
  @Test func whatAwaitsItsDelivery() {
    let failure = "failed: \(noon) attempt=1 class=temporary code=deliver at=100 crc32=00000064 reason=no"
    let published = [
      "failed: \(noon) attempt=1 class=temporary code=cut at=60 crc32=0000003c",
      "verified: \(noon) size=100 crc32=00000064 part=77", "published: \(noon) output=sets/a", failure, failure,
    ]
    func after(_ lines: String...) -> Journal {
      parsed("https://h/a\n" + (begun + published + lines).map { $0 + "\n" }.joined()).journal
    }
    let waiting = after()
    #expect(
      waiting.publication.awaitsDelivery && waiting.publication.verified == Journal.Verified(mark(100, 100), part: 77))
    #expect(waiting.attempts.failures == 1 && waiting.attempts.failedDeliveries == 2)
    let requeued = after("requeued: \(noon)")
    #expect(requeued.publication.awaitsDelivery && requeued.attempts.failedDeliveries == 0)
    #expect(requeued.publication.published == Journal.Verified(mark(100, 100), part: 77))
    #expect(!after("done: \(noon) attempts=1 output=sets/a").publication.awaitsDelivery)
    #expect(!after("started: \(noon) attempt=2 worker=a.1.2 boot=b mirror=1").publication.awaitsDelivery)
    #expect(!after("failed: \(noon) attempt=1 code=mismatch-crc32").publication.awaitsDelivery)
  }

  /// A long journal loses what later lines supersede, and says the same.
  @Test(arguments: [
    [], ["checkpoint: 41 crc32=00000029"],
    ["checkpoint: 41 crc32=00000029", "checkpoint: 42 crc32=0000002A", "response: mirror=1 at=0 part=78"],
    [
      "interrupted: 2026-11-21T12:00:00Z attempt=1 at=45 crc32=0000002D fetched=5 reason=x",
      "checkpoint: 46 crc32=0000002E",
    ],
    ["checkpoint: 41 crc32=00000029", "failed: 2026-11-21T12:00:00Z attempt=1 code=mismatch-crc32 at=0"],
    ["checkpoint: 41 crc32=00000029", "url: https://h/b", "# a person's", "checkpoint: 42", "checkpoint: \"43"],
    ["checkpoint: 41 crc32=00000029", "checkpoint: 42 crc32=0000002A", "\0\0", "checkpoint: 43 crc32=0000002B"],
  ])
  func aCompactedJournalSaysTheSame(lines: [String]) {
    let whole = "https://h/a\n" + (begun + lines + lines).map { $0 + "\n" }.joined()
    let compacted = String(decoding: JobText.compacted(Array(whole.utf8)), as: UTF8.self)
    #expect(parsed(compacted).journal == parsed(whole).journal)
    #expect(parsed(compacted).request.urls.map(\.text) == parsed(whole).request.urls.map(\.text))
    #expect(compacted.contains("\0") || compacted.split(separator: "checkpoint: 4").count <= 5)
    let rest = whole.split(separator: "\n").filter { !$0.hasPrefix("checkpoint: ") }
    #expect(compacted.split(separator: "\n").filter { !$0.hasPrefix("checkpoint: ") } == rest, "all else stays")
  }

  /// Without a network there is an attempt a minute. Those of two months are more than a job's file may have.
  @Test(arguments: [false, true]) func aCompactedJournalForgetsAttemptsWithoutANetwork(isOfTwoServers: Bool) {
    let attempts = (0..<20).map { n in
      "started: 2026-11-21T12:\(10 + n):00Z attempt=1 worker=a.1.2 boot=b mirror=1 url=https://\(isOfTwoServers ? n % 2 : 1)/a\n"
        + "failed: 2026-11-21T12:\(10 + n):01Z attempt=1 code=no-network burned=no retry=2026-11-21T12:\(10 + n):59Z\n"
    }
    let whole = "https://h/a\n" + begun.map { $0 + "\n" }.joined() + attempts.joined()
    let compacted = String(decoding: JobText.compacted(Array(whole.utf8)), as: UTF8.self)
    #expect(parsed(compacted).journal == parsed(whole).journal)
    #expect(compacted == whole.replacing(attempts[1..<19].joined(), with: ""))
  }

  /// The data was cut, or is replaced from there on: digests must not continue from what is behind.
  @Test func aCompactedJournalKeepsACheckpointThatIsLower() {
    let offsets = [2, 3, 1, 4, 5]
    let whole =
      "https://h/a\n"
      + (begun.dropLast() + offsets.map { "checkpoint: \($0 << 20) crc32=0000002\($0)" })
      .map { $0 + "\n" }.joined()
    let compacted = String(decoding: JobText.compacted(Array(whole.utf8)), as: UTF8.self)
    #expect(parsed(compacted).journal.data.earlierMark?.offset == 1 << 20)
    #expect(parsed(whole).journal.data.earlierMark?.offset == 4 << 20)
    #expect(parsed(compacted).journal.data.checkpoint == parsed(whole).journal.data.checkpoint)
  }
}
