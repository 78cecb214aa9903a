import Spool
import SpoolStatus
import Testing

@testable import SpoolReport

@Suite struct ReportPageTests {
  private let now = Timestamp(seconds: 1_795_000_000)

  private func page(_ jobs: [JobRecord], since: Timestamp? = nil, location: String = "/srv/spool") -> String {
    var facts = ReportFacts(since: since, now: now)
    for job in jobs { facts.add(job) }
    return ReportPage(facts, SpoolSnapshot(location: location, time: now)).html
  }

  private func time(hoursAgo: Int64) -> String { (now + -3600 * hoursAgo).description }

  private func done(_ name: String, hoursAgo: Int64, bytes: Int, host: String = "h.example") -> JobRecord {
    record(
      """
      started: \(time(hoursAgo: hoursAgo)) attempt=1 worker=w boot=b mirror=1 url=https://\(host)/x
      verified: \(time(hoursAgo: hoursAgo)) size=\(bytes) crc32=00000000 part=1
      done: \(time(hoursAgo: hoursAgo)) attempts=1 output=\(name) bytes-fetched=\(bytes) seconds=1

      """, name)
  }

  @Test func `names of strangers stay text`() {
    let evil = "<img src=x onerror=alert(1)>\"'&\u{1}\u{202E}</td>"
    let lines = """
      started: \(time(hoursAgo: 1)) attempt=1 worker=w boot=b mirror=1 url="https://<b>\\"'&/x"
      failed: \(time(hoursAgo: 1)) attempt=1 code="<u>&" reason="</td><script>alert(1)</script>"

      """
    let html = page(
      [
        record(lines, evil, in: .failed), record(lines, evil, in: .partial), done(evil, hoursAgo: 2, bytes: 5),
        record(lines + "done: \(time(hoursAgo: 0)) output=\"<s>\" bytes-fetched=9\n", evil),
      ], location: "/srv/<i>")
    for tag in ["<img", "<b>", "<u>", "<s>", "<i>", "<script", "\u{1}", "\u{202E}", "alert(1)\""] {
      #expect(!html.contains(tag), "\(tag)")
    }
    #expect(html.contains("&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;\\x01"))
    // Nothing but the page's own elements.
    let tags = Set(html.matches(of: /<([a-z][a-z0-9]*)/).map { String($0.1) })
    let own: Set = [
      "html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "p", "nav", "ul", "li", "a", "main", "dl",
      "div", "dt", "dd", "section", "figure", "figcaption", "span", "svg", "path", "details", "summary", "table",
      "caption", "thead", "tbody", "tr", "th", "td", "br", "strong", "code", "footer",
    ]
    #expect(tags.subtracting(own) == [])
    // Links lead to the page itself, and no style loads anything.
    #expect(html.matches(of: /href="([^#])/).isEmpty && html.matches(of: /<[^>]* src=/).isEmpty)
    #expect(!html.contains("url(") && !html.contains("@import"))
  }

  @Test func `a failure leads to what its code means`() {
    let line = "failed: \(time(hoursAgo: 1)) attempt=1 code=http-404 reason=gone\n"
    let html = page([record(line, in: .failed), record(line.replacing("http-404", with: "no-such"), in: .failed)])
    let targets = html.matches(of: /href="#([^"]*)"/).map { String($0.1) }
    #expect(targets.contains("code-http-404") && !html.contains("#code-no-such"))
    for target in targets { #expect(html.contains("id=\"\(target)\""), "\(target)") }
    #expect(html.contains("Permanent: the job goes to failed/ at once."))
  }

  @Test func `servers that rest are there, with what is used of the patience`() {
    let rest = ServerNote.Rest(
      since: now + -2 * 86_400, failed: now, until: now + 600, cause: "unreachable", code: "connect",
      reason: "<refused>", failures: 3, host: "alpha")
    let seen = ServerFiles.Seen(
      name: FileName("x"), note: ServerNote(server: "https://m.example:443", rests: [rest], answered: now + -86_400),
      modified: now.seconds + 600)
    var snapshot = SpoolSnapshot(location: "/srv/spool", time: now)
    snapshot.servers = ServerStatus.all(seen)
    let html = ReportPage(ReportFacts(since: nil, now: now), snapshot).html
    #expect(html.contains("m.example<br><span class=\"faint\">for alpha</span>") && html.contains("&lt;refused&gt;"))
    #expect(html.contains("1d00h of 5d00h") && html.contains("<path d=\"M0 0h20v10H0z\"/>"), "a fifth of the width")
    #expect(html.contains("href=\"#code-connect\"") && html.contains("id=\"code-connect\""))
    // A job waits to ask it.
    snapshot.time = now + 601
    #expect(!ReportPage(ReportFacts(since: nil, now: now), snapshot).html.contains("m.example"))
  }

  @Test func `a job that has begun does not wait for its first attempt`() {
    let failure = "failed: \(time(hoursAgo: 1)) attempt=1 code=cut reason=x\nrequeued: \(time(hoursAgo: 0))\n"
    let start = "started: \(time(hoursAgo: 1)) attempt=1 worker=w boot=b url=https://h/\n"
    for directory in [Directory.new, .urgent] {
      #expect(!page([record("https://h/\n" + start + failure, in: directory)]).contains("first attempt</td>"))
      #expect(page([record("https://h/\n", in: directory)]).contains("first attempt</td>"))
    }
  }

  @Test func `an hour is drawn in minutes`() throws {
    let html = page([done("a", hoursAgo: 1, bytes: 5), done("b", hoursAgo: 0, bytes: 9)])
    #expect(html.contains("Bytes received by minute") && html.contains("viewBox=\"0 0 61 100\""))
    // A single minute is a bar, not a block; but nothing is drawn of a time that was left out.
    #expect(page([done("a", hoursAgo: 0, bytes: 5)]).contains("viewBox=\"0 0 30 100\""))
    #expect(page([done("a", hoursAgo: 0, bytes: 5)], since: now + -300).contains("viewBox=\"0 0 6 100\""))
  }

  @Test func `a rate is that of attempts that took a time`() {
    let begun = "started: \(now) attempt=1 worker=w boot=b mirror=1 url=https://h/x\n"
    var facts = ReportFacts(since: nil, now: now)
    for milliseconds in [10, 40, 0] {
      let end = "done: \(now) attempts=1 output=a bytes-fetched=\(1 << 20) seconds=0 milliseconds=\(milliseconds)\n"
      facts.add(record(begun + end))
    }
    // The whole time counts waits, and is not this attempt's.
    let end = "done: \(now + 4) attempts=2 output=a bytes-fetched=9 seconds=900 milliseconds=900000\n"
    facts.add(record(begun + "interrupted: \(now) attempt=1 fetched=9\n" + begun + end))
    #expect(facts.hosts["h"]?.rate.map { Int($0) >> 20 } == 40)
    let html = ReportPage(facts, SpoolSnapshot(location: "s", time: now)).html
    #expect(html.contains("<dt>Rate of a transfer</dt><dd>40.0M/s</dd>"))
  }

  @Test func `every element that is opened is closed`() {
    let html = page([done("a", hoursAgo: 3, bytes: 5), record("failed: x code=cut reason=y\n", in: .failed)])
    var open: [Substring] = []
    for match in html.matches(of: /<(\/?)([a-z][a-z0-9]*)[^>]*?(\/?)>/) {
      let name = match.2
      if match.3 == "/" || ["meta", "br"].contains(name) { continue }
      if match.1.isEmpty { open.append(name) } else { #expect(open.popLast() == name) }
    }
    #expect(open.isEmpty)
  }

  @Test func `what happened before is left out, and what is not done stays`() {
    let jobs = [
      done("old.bin", hoursAgo: 50, bytes: 5), done("new.bin", hoursAgo: 2, bytes: 7),
      record("https://h/x\n", "waiting-one", in: .new, changed: now.seconds - 500_000),
      record("failed: \(time(hoursAgo: 90)) attempt=1 code=http-404 reason=gone\n", "failed-one", in: .failed),
    ]
    let all = page(jobs)
    let some = page(jobs, since: now + -86_400)
    for name in ["old.bin", "new.bin", "waiting-one", "failed-one"] { #expect(all.contains(name), "\(name)") }
    #expect(!some.contains("old.bin"))
    for name in ["new.bin", "waiting-one", "failed-one"] { #expect(some.contains(name), "\(name)") }
  }

  @Test func `a page without anything says so`() {
    let html = page([])
    #expect(html.contains("nothing happened") && html.contains("no attempt failed"))
    #expect(html.utf8.count < 10_000)
  }

  @Test func `however much there is, the page has a limit`() {
    let jobs = (0..<20_000).map { number in
      let name = String(repeating: "<", count: 170) + "\(number)"
      let reason = String(repeating: "&", count: 2000)
      let host = "h\(number)" + String(repeating: "x", count: 400)
      let line = "failed: \(time(hoursAgo: Int64(number % 5000))) attempt=1 code=c\(number) reason=\"\(reason)\"\n"
      let start = "started: \(time(hoursAgo: Int64(number % 5000))) attempt=1 worker=w boot=b url=https://\(host)/\n"
      return record(start + line, name, in: number % 2 == 0 ? .failed : .partial)
    }
    #expect(page(jobs).utf8.count < 1_000_000)
  }
}

@Suite struct ReportSumsTests {
  @Test func `an axis has at most 168 parts, and all that happened is on it`() {
    for minutes: [Int64] in [
      [], [5], [0, 167], [0, 168], [-1000, 1_000_000], [100, 101, 5000], [-420_000_000, 4_200_000_000],
    ] {
      let axis = TimeAxis(of: minutes)
      #expect((1...TimeAxis.mostBuckets).contains(axis.count))
      var count = ReportFacts.CountOverTime()
      for minute in minutes { count.add(1, at: Timestamp(seconds: minute * 60)) }
      if axis.unit != "3650 days" { #expect(axis.sums(count).reduce(0, +) == UInt64(minutes.count), "\(minutes)") }
    }
  }

  /// From 2026-10-24 00:00 on.
  @Test(
    arguments: [
      (60, "minute", 61), (167, "minute", 168), (168, "5 minutes", 34), (24 * 60, "15 minutes", 97),
      (4 * 1440, "hour", 97), (20 * 1440, "3 hours", 161), (40 * 1440, "6 hours", 161), (100 * 1440, "day", 101),
      (400 * 1440, "7 days", 58),
    ] as [(Int64, String, Int)])
  func `the span decides on minutes, hours or days`(span: Int64, unit: String, count: Int) {
    let start: Int64 = 498_000 * 60
    let axis = TimeAxis(of: [start, start + span])
    #expect(axis.unit == unit && axis.count == count)
    #expect(axis.label(0).hasPrefix("2026-10-2"))
  }

  @Test func `a list of the top keeps the highest, in order`() {
    var list = TopList<Int>(3)
    for number in [5, 1, 9, 7, 3, 8, 2, 6, 4, 0, 9] + Array(0..<5) { list.add(number, by: Int64(number)) }
    #expect(list.elements == [9, 9, 8])
    #expect(list.count == 16)
  }
}
