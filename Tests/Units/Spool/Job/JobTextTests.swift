import Testing

@testable import Spool

/// A job file as strangers write it.
@Suite struct JobTextTests {
  @Test(arguments: [
    "https://host/a.bin\n", "https://host/a.bin\r\n", "\u{FEFF}https://host/a.bin\n", "  https://host/a.bin \t\n",
    "# a comment\n\nhttps://host/a.bin\n", "#\n \t\nurl: https://host/a.bin\n", "url:https://host/a.bin\n",
    "url:\thttps://host/a.bin\t\r\n", "\u{FEFF}url: https://host/a.bin\r\n",
  ])
  func oneURL(_ text: String) {
    let job = parsed(text)
    #expect(job.defect == nil)
    #expect(job.request.urls.map(\.text) == ["https://host/a.bin"])
    #expect(!job.hasTornTail)
    #expect(job.completeLength == text.utf8.count)
  }

  @Test func everyKey() {
    let job = parsed(
      """
      url: https://a.example/x?q=1#f
      url: https://b.example/x
      output: sets/2026/x.tar
      size: 4294967296
      crc32: 1C291cA3
      header: Authorization: Bearer a:b=c
      header: X-Empty:
      overwrite: yes
      attempts: 1000
      expires: 2026-12-01T00:00:00Z
      timeout: 90s 2h

      """)
    let request = job.request
    #expect(job.defect == nil)
    #expect(request.urls.map(\.number) == [1, 2])
    #expect(request.urls.map(\.text) == ["https://a.example/x?q=1#f", "https://b.example/x"])
    #expect(request.output == JobRequest.Line(text: "sets/2026/x.tar", number: 3))
    #expect(request.expected.size == 4_294_967_296)
    #expect(request.expected.digests[.crc32]?.description == "1C291CA3")
    #expect(request.headers(for: "h", isEncrypted: true) == ["Authorization: Bearer a:b=c", "X-Empty:"])
    #expect(request.overwrite == true && request.attempts == 1000)
    #expect(request.expires?.description == "2026-12-01T00:00:00Z")
    #expect(request.timeout == Timeout(idle: 90, total: 7200))
    #expect(job.journal.isEmpty)
  }

  struct Bad: Sendable {
    let text: String
    let line: Int?
    let reason: String
    init(_ text: String, _ line: Int?, _ reason: String) { (self.text, self.line, self.reason) = (text, line, reason) }
  }

  @Test(arguments: [
    Bad("", nil, "no URL"), Bad("\n", nil, "no URL"), Bad("# https://host/a\n", nil, "no URL"),
    Bad("size: 1\n", nil, "no URL"), Bad("https://h/a\nhttps://h/b\n", nil, "several bare URLs"),
    Bad("https://h/a\nmirror: https://h/b\n", 2, "unknown key `mirror`"), Bad("hello\n", 1, "neither a URL nor"),
    Bad("URL: https://h/a\n", 1, "unknown key `URL`"), Bad("url : https://h/a\n", 1, "unknown key"),
    Bad("url:\n", 1, "url: has no value"), Bad("url: https://h/a\n\nsize: 1\nsize: 1\n", 4, "size: given twice"),
    Bad("https://h/a\u{0}\n", 1, "control bytes"), Bad("https://h/a\n\u{1b}[31m\n", 2, "control bytes"),
    Bad("https://h/a\nheader: X: a\rY: b\n", 2, "control bytes"), Bad("https://h/a\r\r\n", 1, "control bytes"),
    Bad("https://h/a\n\u{7f}\n", 2, "control bytes"), Bad("url: https://h/a\noutput: ../x\n", 2, "output: "),
    Bad("\u{202E}evil: 1\nhttps://h/a\n", 1, "unknown key `\\xe2\\x80\\xaeevil`"), Bad(": x\n", 1, "unknown key ``"),
    Bad("https://h/a\n\u{FEFF}size: 1\n", 2, "unknown key"),
  ])
  func defects(_ bad: Bad) {
    let job = parsed(bad.text)
    #expect(job.defect?.line == bad.line)
    #expect(job.defect?.reason.contains(bad.reason) == true, "\(job.defect as Any)")
  }

  @Test func invalidUTF8() {
    let job = parsed(Array("https://h/a\nheader: X: ".utf8) + [0xFF, 0x0A])
    #expect(job.defect == Defect(line: 2, reason: "not UTF-8"))
  }

  /// The first defect is the one that a person has to mend first.
  @Test func firstDefectWins() {
    #expect(parsed("size: x\ncrc32: y\n").defect?.line == 1)
  }

  @Test func limitIs64KiB() {
    let url = "https://host/a\n"
    let exact = url + String(repeating: "#", count: 65_536 - url.utf8.count - 1) + "\n"
    #expect(exact.utf8.count == 65_536)
    #expect(parsed(exact).defect == nil)
    #expect(parsed("#" + exact).defect?.reason.contains("64 KiB") == true)
    // A journal may grow beyond it.
    let line = "checkpoint: 1 crc32=00000000\n"
    let journal = String(repeating: line, count: 5000)
    #expect(parsed(exact + journal).defect == nil)
    #expect(parsed(exact + journal).completeLength == 65_536 + 5000 * line.utf8.count)
  }

  @Test(arguments: ["https://h/a", "https://h/a\nsize: 1", "https://h/a\n#", "https://h/a\n\u{0}"])
  func missingNewline(_ text: String) {
    #expect(parsed(text).hasTornTail)
  }

  @Test func tornJournalLineDidNotHappen() {
    let whole = "https://h/a\nfailed: 2026-01-01T00:00:00Z attempt=1 code=cut at=5 crc32=00000001\n"
    for torn in ["f", "failed: ", "failed: 2026-01-01T00:00:00Z attempt=2 code=mismatch-crc32", "\u{0}\u{0}"] {
      let job = parsed(whole + torn)
      #expect(job.defect == nil && job.hasTornTail)
      #expect(job.journal.attempts.failures == 1 && job.journal.attempts.mismatches == 0)
      #expect(job.completeLength == whole.utf8.count)
    }
  }

  /// A power cut may leave zeros where lines should be, even with lines behind them.
  @Test func nothingBehindZerosHappened() {
    let whole = "https://h/a\nstarted: 2026-01-01T00:00:00Z worker=a.1.2 boot=b\n"
    let job = parsed(whole + "check\u{0}\u{0}\u{0}\nverified: 2026-01-01T00:00:00Z size=1 crc32=00000000 part=1\n")
    #expect(job.defect == nil && job.journal.publication.verified == nil)
    #expect(job.completeLength == whole.utf8.count && job.hasTornTail)
    // The first line of the journal.
    let request = "https://h/a\n"
    for torn in ["\u{0}\u{0}boot=b\n", "star\u{0}\u{0}\n", "started: \u{0}\n"] {
      let job = parsed(request + torn + "failed: 2026-01-01T00:00:00Z attempt=1 code=cut\n")
      #expect(job.defect == nil && job.journal.isEmpty && job.completeLength == request.utf8.count, "\(torn)")
      #expect(job.isTornByWorker(in: .cur) && !job.isTornByWorker(in: .new))
    }
    #expect(parsed("\u{0}\n" + request).defect != nil && parsed(request + "x\u{0}\n").defect?.line == 2)
  }

  @Test func unknownKeysBehindTheJournalAreALaterVersions() {
    let job = parsed("https://h/a\nrequeued: 2026-01-01T00:00:00Z\nsigned: x\nnonsense\n\u{1}\n")
    #expect(job.defect == nil && !job.journal.isEmpty)
    #expect(parsed("https://h/a\nsigned: x\nrequeued: 2026-01-01T00:00:00Z\n").defect?.line == 2)
  }

  /// A person who edits a failed job may well add to its end.
  @Test func requestKeysBehindTheJournalCount() {
    let job = parsed("https://h/a\nfailed: 2026-01-01T00:00:00Z attempt=1 code=cut\nsize: 7\n")
    #expect(job.request.expected.size == 7 && job.defect == nil)
    let bad = parsed("https://h/a\nfailed: 2026-01-01T00:00:00Z attempt=1 code=cut\nsize: seven\n")
    #expect(bad.defect?.line == 3)
  }

  /// A journal line that cannot be read is skipped, not guessed at.
  @Test(arguments: [
    "checkpoint: 5 crc32=\"0000\n", "checkpoint: -5 crc32=00000000\n",
    "checkpoint: 99999999999999999999 crc32=00000000\n",
    "checkpoint: 5 crc32=0\n", "verified: x size=1\n", "response: mirror=0x1 at=0\n", "response: at=0\n",
  ])
  func unreadableLines(_ line: String) {
    let journal = parsed("https://h/a\n" + line).journal
    #expect(journal.data.checkpoint == nil && journal.publication.verified == nil && journal.data.version == nil)
  }

  @Test func defaultsHoldNoJobKeys() throws {
    #expect(defaults("attempts: 3\nheader: A: b\n").defect == nil)
    #expect(defaults("").defect == nil)
    for line in [
      "url: https://h/a", "https://h/a", "output: x", "size: 1", "crc32: 00000000", "done: x", "nonsense: x",
    ] {
      #expect(defaults("attempts: 3\n\(line)\n").defect?.line == 2, "\(line)")
    }
  }
}
