import Spool
import SpoolStatus
import SpoolWorker
import Testing

@Suite struct EventSentenceTests {
  private let now = Timestamp("2026-11-21T03:00:00Z")!

  private func sentence(_ event: Event, isTerminal: Bool = true, isColored: Bool = false) -> EventSentence {
    EventSentence(event, of: "/srv/spool", now: isTerminal ? now : nil, Look(isColored: isColored))
  }

  private func failed(_ code: String, retry: String?) -> Event {
    Event(
      "failed", .warning, job: FileName("a"),
      Fields().with("attempt", 1).with("code", code).with("retry", retry).with("reason", "it is so"))
  }

  @Test func `times are relative on a terminal, and absolute in a log`() {
    let event = failed("connect", retry: "2026-11-21T03:00:52Z")
    #expect(sentence(event).line.text == "a: connect: it is so; attempt 1 failed, next in 52s")
    #expect(
      sentence(event, isTerminal: false).line.text
        == "a: connect: it is so; attempt 1 failed, next at 2026-11-21T03:00:52Z")
    let late = failed("connect", retry: "2026-11-21T02:00:52Z")
    #expect(sentence(late).line.text.hasSuffix("next now"))
  }

  @Test func `a failure is red, and one that is tried again is yellow`() {
    let line = sentence(failed("http-404", retry: nil), isColored: true).line.text
    #expect(line == "a: \u{1B}[31mhttp-404: it is so\u{1B}[0m; given up")
    let again = sentence(failed("http-503", retry: "2026-11-21T03:00:52Z"), isColored: true).line.text
    #expect(again.hasPrefix("a: \u{1B}[33mhttp-503: it is so\u{1B}[0m; "))
    let log = sentence(failed("http-404", retry: nil), isTerminal: false).line.text
    #expect(log == "a: http-404: it is so; given up: see failed/a")
  }

  @Test func `the figures of a failure are said once`() {
    func text(_ code: String) -> String {
      let fields = Fields().with("code", code).with("line", 3).with("expected", 9).with("found", 4).with("reason", "so")
      return sentence(Event("failed", .warning, job: FileName("a"), fields)).line.text
    }
    #expect(text("too-long") == "a: too-long: line 3: so (expected 9, found 4); given up")
    // The reason that a worker gives has them.
    #expect(text("disk-full") == "a: disk-full: line 3: so; given up")
  }

  @Test func `there is advice where waiting does not help`() {
    let advice = sentence(failed("http-404", retry: nil)).advice
    #expect(advice?.code == "http-404")
    #expect(
      advice?.lines.map(\.text) == [
        "  The file is not there: look for its new place.", "  Then: spoolrun url --spool /srv/spool a URL",
      ])
    #expect(sentence(failed("connect", retry: "2026-11-21T03:00:52Z")).advice == nil)
    #expect(sentence(failed("connect", retry: nil)).advice != nil)
    #expect(sentence(failed("disk-full", retry: "2026-11-21T03:00:52Z")).advice != nil)
    #expect(sentence(Event("done", .info, job: FileName("a"))).advice == nil)
  }

  @Test func `a finished line has path, size, time and rate`() {
    var fields = Fields().with("output", "d/a\u{1B}.iso").with("size", 104 << 20)
      .with("bytes-fetched", 104 << 20).with("milliseconds", 52_001).with("rate", 9 << 20)
    let event = Event("done", .info, job: FileName("a"), fields)
    #expect(sentence(event).line.text == "a: done: /srv/spool/files/d/a\\x1b.iso (104M in 52.0s, 2.00M/s)")
    #expect(sentence(event, isTerminal: false).line.text == "a: done: d/a\\x1b.iso (104M in 52.0s, 2.00M/s)")
    fields = fields.with("directory", "/mnt/data")
    let elsewhere = Event("done", .info, job: FileName("a"), fields)
    #expect(sentence(elsewhere).line.text.hasPrefix("a: done: /mnt/data/d/a"))
  }

  @Test func `it says what is watched, and how to stop it`() {
    #expect(
      sentence(Event("watching", .info)).line.text
        == "watching /srv/spool: drop a job into new/; Ctrl-C stops")
  }

  // MARK: closing

  private func closing(
    done: Int = 0, failed: Int = 0, waiting: Int = 0, gained: UInt64 = 0, isOnce: Bool = true, _ fields: Fields? = nil
  ) -> String? {
    var summary = RunSummary()
    (summary.done, summary.givenUp, summary.waiting, summary.gained) = (done, failed, waiting, gained)
    return RunClosing(summary, seconds: 51, isOnce: isOnce, waiting: fields, now: now)
      .line(Look(isColored: false))?.text
  }

  @Test func `the last line sums the run up`() {
    let next = Fields().with("jobs", 1).with("next", "2026-11-21T03:00:52Z")
    #expect(
      closing(done: 4, failed: 1, waiting: 1, gained: 104 << 20, next)
        == "4 done (104M fetched in 51s), 1 failed, 1 tries again in 52s")
    let several = Fields().with("jobs", 2).with("next", "2026-11-21T03:00:52Z")
    #expect(closing(failed: 1, waiting: 2, several) == "1 failed, 2 try again, the first in 52s")
    let gate = Fields().with("gate", "--gate: exit status 7")
    #expect(closing(done: 2, waiting: 1, gate) == "2 done, jobs wait: --gate: exit status 7")
    let space = Fields().with("needed", 5 << 20).with("free", 3 << 20).with("min-free", 4 << 20)
    #expect(
      closing(waiting: 1, space)
        == "jobs wait: not enough disk space: 5.00M are needed, 3.00M are free, --min-free keeps 4.00M")
    #expect(closing(done: 2, waiting: 3, gained: 5) == "2 done (5B fetched in 51s), 3 left for the next run")
  }

  @Test func `it is left out where it would repeat the line of the only job`() {
    #expect(closing(done: 1, gained: 5) == nil)
    #expect(closing(done: 2, gained: 5) == "2 done (5B fetched in 51s)")
    #expect(closing() == "no job to run")
    #expect(closing(isOnce: false) == nil)
  }
}
