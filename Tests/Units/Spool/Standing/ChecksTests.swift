import Spool
import Testing

/// What a standing order's journal says of its checks.
@Suite struct ChecksTests {
  private let time = Timestamp(seconds: 1_000_000)
  private let version = Journal.ListVersion(url: "http://h/l?key=1", format: nil, etag: "\"1\"", modified: nil)

  private let order = "# mine\nurl: http://h/l\nevery: 6h\n"

  @Test func `an order that is written anew keeps what a person wrote`() {
    let old =
      order + "started: 2026-01-01T00:00:00Z attempt=1 worker=a.1.2 boot=b\nfailed: 2026-01-01T00:00:00Z code=cut\n"
      + "match: *.mp3\nseen: 0000000000000000\nchecked: torn"
    let seen = (0..<150).map { String(repeating: "0", count: 13) + "\($0 + 100)" }
    let check = Journal.Check(entries: 150, new: 2, version: version)
    let text = String(decoding: JobText.order(Array(old.utf8), checked: time, check, seen: seen), as: UTF8.self)
    #expect(
      text.hasPrefix(
        "# mine\nurl: http://h/l\nevery: 6h\nmatch: *.mp3\nchecked: 1970-01-12T13:46:40Z entries=150 new=2"))
    let read = parsed(text)
    #expect(read.defect == nil && read.request.standing.match == "*.mp3")
    #expect(read.journal.checks.seen == seen && read.journal.checks.version == version)
    #expect(read.journal.checks.lastTime == time && read.journal.attempts.failures == 0)
    // Again, it is the same.
    #expect(JobText.order(Array(text.utf8), checked: time, check, seen: seen) == Array(text.utf8))
  }

  @Test func `an answer that nothing has changed keeps the version, and ends the failures`() {
    let first = JournalLine.checked(time, .init(entries: 3, new: 1, version: version)).text
    let later = JournalLine.checked(time + 60, .init(entries: 3, new: 0, version: nil)).text
    let failed = "failed: 2026-01-01T00:00:00Z attempt=1 class=temporary code=cut at=0 reason=x\n"
    let wrong = failed.replacing("code=cut", with: "code=bad-signature")
    let away = failed.replacing("code=cut", with: "code=connect burned=no")
    let journal = parsed(order + first + failed + wrong + away + later).journal
    #expect(journal.checks.version == version && journal.checks.entries == 3 && journal.checks.lastTime == time + 60)
    #expect(journal.attempts.failures == 0 && journal.attempts.lastFailure == nil && !journal.attempts.isOpen)
    #expect(journal.attempts.deferrals == 0 && journal.attempts.deferredSince == nil)
    #expect(journal.attempts.mismatches == 0)
    #expect(parsed(order + first + failed).journal.attempts.failures == 1)
    #expect(parsed(order + first + away).journal.attempts.deferredSince != nil)
  }

  @Test func `a version counts for its URL and format only, and shows no secret`() {
    #expect(version.isOf(url: "http://h/l?key=1", format: nil))
    #expect(!version.isOf(url: "http://h/l?key=2", format: nil) && !version.isOf(url: "http://h/l?key=1", format: .rss))
    let line = JournalLine.checked(time, .init(entries: 3, new: 1, version: version)).text
    #expect(!line.contains("key") && version.conditions == ["If-None-Match: \"1\""])
    let dated = Journal.ListVersion(url: "", format: nil, etag: nil, modified: "Sun, 06 Nov 1994 08:49:37 GMT")
    #expect(dated.conditions == ["If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"])
  }

  @Test func `a journal that was damaged gives no keys`() {
    let journal = parsed(order + "checked: x entries=99999999999999999999\nseen: a 0123456789abcdef seen\n").journal
    #expect(
      journal.checks.seen == ["0123456789abcdef"] && journal.checks.entries == 0 && journal.checks.lastTime == nil)
  }
}
