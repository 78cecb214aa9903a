internal import Spool
package import SpoolStatus

/// The report as one HTML page without scripts, which needs nothing from elsewhere. Pure.
package struct ReportPage {
  let facts: ReportFacts
  /// For the number of jobs by state, the workers, and the time.
  let snapshot: SpoolSnapshot
  let axis: TimeAxis
  private let codes: ExplainedCodes

  /// - Parameter snapshot: of the same time as the facts.
  package init(_ facts: ReportFacts, _ snapshot: SpoolSnapshot) {
    self.facts = facts
    self.snapshot = snapshot
    codes = ExplainedCodes(facts, snapshot.restingServers)
    let minutes = [facts.bytes, facts.done, facts.failures].map(\.minutes.keys)
    axis = TimeAxis(of: minutes.joined(), since: facts.since.map { TimeAxis.floor($0.seconds, 60) })
  }

  private static let start = """
    <!DOCTYPE html>
    <html lang="en"><head><meta charset="utf-8"><title>spoolrun: 
    """

  package static func isOne(_ bytes: [UInt8]) -> Bool { bytes.starts(with: start.utf8) }

  package var html: String {
    let sections: [(id: String, title: String, body: HTMLText)] = [
      ("person", "What needs a person", "\(workers)\(givenUp)"), ("time", "Over time", overTime),
      ("hosts", "Rates by host", hosts), ("servers", "Servers that rest", servers), ("failures", "Failures", failures),
      ("slowest", "The slowest jobs", slowest), ("biggest", "The biggest files", biggest),
      ("oldest", "The oldest jobs that are not done", oldest), ("codes", "What the failures mean", codes.html),
    ]
    let links: [HTMLText] = sections.map { "<li><a href=\"#\($0.id)\">\($0.title)</a></li>" }
    let bodies: [HTMLText] = sections.map {
      "<section aria-labelledby=\"\($0.id)\"><h2 id=\"\($0.id)\">\($0.title)</h2>\n\($0.body)</section>\n"
    }
    let page: HTMLText = """
      \(HTMLText(html: Self.start))\(place)</title>
      <meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">
      <meta http-equiv="Content-Security-Policy" content="default-src 'none';style-src 'unsafe-inline'">
      <meta name="referrer" content="no-referrer"><style>\(HTMLText(html: Self.css))</style></head><body>
      <header><h1>Downloads of \(place)</h1><p class="faint">\(period)</p>
      <nav aria-label="Sections"><ul>\(links)</ul></nav></header>
      <main>
      \(sums)\(bodies)</main>
      <footer><p>Made by spoolrun from the journals and receipts of the spool. Times are in UTC; K, M and G are \
      powers of 1024.</p></footer></body></html>

      """
    return page.description
  }

  private var place: String { escaped(snapshot.location) }

  private var period: String {
    let end = "\(Shown.time(snapshot.time)) UTC"
    guard let since = facts.since else { return "All that the journals tell, up to \(end)" }
    return "From \(Shown.time(since)) to \(end)"
  }

  private var sums: HTMLText {
    let attempts = facts.hosts.values.reduce(0) { $0 + $1.done } + Int(facts.failures.total)
    let all = facts.hosts.values.reduce(into: ReportFacts.HostSum()) { sum, host in
      sum.timed = (sum.timed.bytes &+ host.timed.bytes, sum.timed.milliseconds &+ host.timed.milliseconds)
    }
    var items: [(String, String)] = [
      ("Done", Shown.number(facts.done.total)), ("Received", shortBytes(facts.bytes.total)),
      ("Rate of a transfer", Shown.rate(all.rate)),
      ("Failed attempts", "\(Shown.number(facts.failures.total)) of \(Shown.number(attempts))"),
    ]
    for state in JobState.allCases where state != .done && snapshot.count(state) > 0 {
      let name = state.rawValue
      let title = "\(name.prefix(1).uppercased())\(name.dropFirst()) now"
      items.append((title, Shown.number(snapshot.count(state))))
    }
    let html: [HTMLText] = items.map { "<div><dt>\($0.0)</dt><dd>\($0.1)</dd></div>" }
    return "<dl class=\"sums\">\(html)</dl>\n"
  }

  // MARK: time

  private var overTime: HTMLText {
    let (bytes, done, failures) = (axis.sums(facts.bytes), axis.sums(facts.done), axis.sums(facts.failures))
    func figure(_ title: String, _ values: [UInt64], _ kind: String, _ shown: (UInt64) -> String) -> HTMLText {
      "<figure><figcaption>\(title)</figcaption>\(Charts.bars(values, axis, kind: kind, shown: shown))</figure>\n"
    }
    let rows: [[HTMLText]] = (0..<axis.count).filter { bytes[$0] > 0 || done[$0] > 0 || failures[$0] > 0 }.map {
      ["\(axis.label($0))", "\(shortBytes(bytes[$0]))", "\(Shown.number(done[$0]))", "\(Shown.number(failures[$0]))"]
    }
    let table = ReportTable(
      caption: "By \(axis.unit), as numbers",
      columns: [
        .init("From (UTC)", .time), .init("Received", .number), .init("Done", .number),
        .init("Failed attempts", .number),
      ], rows: rows, otherwise: "nothing happened.")
    return """
      <p class="faint">What a job received counts where its attempt ended.</p>
      \(figure("Bytes received by \(axis.unit)", bytes, "plain") { shortBytes($0) })\
      \(figure("Jobs done by \(axis.unit)", done, "good") { Shown.number($0) })\
      \(figure("Failed attempts by \(axis.unit)", failures, "bad") { Shown.number($0) })\
      <details><summary>The same as a table</summary>\(table.html)</details>

      """
  }

  // MARK: hosts

  private static let mostHosts = 25

  private var hosts: HTMLText {
    let sorted = facts.hosts.filter { $0.value.bytes > 0 }.sorted {
      ($1.value.bytes, $0.key) < ($0.value.bytes, $1.key)
    }
    let listed = sorted.prefix(Self.mostHosts)
    let most = listed.compactMap(\.value.rate).max() ?? 1
    let rows: [[HTMLText]] = listed.map { host, sum in
      [
        "\(Self.shown(host))", "\(Shown.number(sum.done))", "\(shortBytes(sum.bytes))", "\(Shown.rate(sum.rate))",
        Charts.meter((sum.rate ?? 0) / most), "\(Shown.number(sum.failures.total))",
      ]
    }
    let table = ReportTable(
      caption: "Hosts by bytes received",
      columns: [
        .init("Host"), .init("Done", .number), .init("Received", .number), .init("Rate", .number),
        .init("Rate, drawn", .drawing), .init("Failed attempts", .number),
      ], rows: rows, otherwise: "nothing was received.")
    return """
      <p class="faint">The rate is that of one transfer, on average over the time of the attempts that received \
      something.</p>
      \(table.html)\(more(sorted.count - listed.count, "host"))
      """
  }

  private var servers: HTMLText {
    let resting = snapshot.restingServers
    let listed = resting.prefix(Self.mostHosts)
    let rows: [[HTMLText]] = listed.map { server in
      let since = max(server.rest.since, server.note.answered ?? server.rest.since)
      let silence = max(0, snapshot.time.seconds - since.seconds)
      let host: HTMLText = server.rest.host.map { "<br><span class=\"faint\">for \(escaped($0))</span>" } ?? ""
      return [
        "\(Shown.text(server.name))\(host)",
        "\(codes.link(server.rest.code))<br>\(Shown.text(escaped(server.rest.reason)))", "\(Shown.time(server.end))",
        "\(shortDuration(silence)) of \(shortDuration(Int64(snapshot.patience)))",
        Charts.meter(Double(silence) / Double(max(1, snapshot.patience)), kind: "bad"),
      ]
    }
    let table = ReportTable(
      caption: "Servers that are not asked now",
      columns: [
        .init("Server"), .init("Why"), .init("Asked again (UTC)", .time), .init("Patience used", .number),
        .init("Patience used, drawn", .drawing),
      ], rows: rows, otherwise: "none.")
    return """
      <p class="faint">Jobs wait for a server that rests. They are given up when it has answered nobody for their \
      patience; the table has that of the spool.</p>
      \(table.html)\(more(resting.count - listed.count, "server"))
      """
  }

  private static func shown(_ host: String) -> String { host.isEmpty ? "(unknown)" : Shown.text(host) }

  private func more(_ count: Int, _ noun: String) -> HTMLText {
    count > 0 ? "<p class=\"faint\">… and \(Shown.count(count, "more \(noun)")).</p>\n" : ""
  }

  // MARK: failures

  private static let mostCodes = 20

  private var failures: HTMLText {
    let codes = facts.codes.sorted { ($1.value.total, $0.key) < ($0.value.total, $1.key) }
    let hosts = facts.hosts.filter { $0.value.failures.total > 0 }
      .sorted { ($1.value.failures.total, $0.key) < ($0.value.failures.total, $1.key) }
    let first = table("Failed attempts by code", "Code", Array(codes.prefix(Self.mostCodes))) { self.codes.link($0) }
    let second = table(
      "Failed attempts by host", "Host", hosts.prefix(Self.mostCodes).map { ($0.key, $0.value.failures) }
    ) { host in
      let codes = (facts.hosts[host]?.codes ?? [:]).sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(3)
      let parts: [HTMLText] = codes.enumerated().map { "\($0 > 0 ? ", " : "")\(self.codes.link($1.key)) \($1.value)×" }
      return "\(Self.shown(host))<br><span class=\"faint\">\(parts)</span>"
    }
    return """
      <p class="faint">The rows of a table have one scale.</p>
      \(first)\(more(codes.count - Self.mostCodes, "code"))\(second)\(more(hosts.count - Self.mostCodes, "host"))
      """
  }

  /// A row for each name, with its course over the time, all to one scale.
  private func table(
    _ caption: String, _ title: String, _ counts: [(String, ReportFacts.CountOverTime)], name: (String) -> HTMLText
  ) -> HTMLText {
    let sums = counts.map { axis.sums($0.1) }
    let most = sums.joined().max() ?? 1
    let rows: [[HTMLText]] = zip(counts, sums).map { count, sums in
      let peak = sums.indices.max { sums[$0] < sums[$1] } ?? 0
      return [
        name(count.0), "\(Shown.number(count.1.total))", Charts.spark(sums, most: most, kind: "bad"),
        "\(sums[peak]) (\(axis.label(peak)))",
      ]
    }
    return ReportTable(
      caption: caption,
      columns: [
        .init(title), .init("Failures", .number), .init("\(axis.label(0)) to \(axis.label(axis.count - 1))", .drawing),
        .init("Most by \(axis.unit)", .number),
      ], rows: rows, otherwise: "no attempt failed."
    ).html
  }
}

/// The slowest, the biggest and the oldest jobs.
extension ReportPage {
  private var slowest: HTMLText {
    let jobs = facts.slowest.elements.filter { $0.seconds > 0 }
    let longest = jobs.first?.seconds ?? 1
    let rows: [[HTMLText]] = jobs.map { job in
      [
        "\(Shown.text(job.name.display))<br><span class=\"faint\">\(Self.shown(job.host))</span>",
        "\(shortDuration(job.seconds))", "\(job.size.map { shortBytes($0) } ?? "–")",
        Charts.waterfall(job, seconds: longest), "\(Self.course(of: job))",
      ]
    }
    let table = ReportTable(
      caption: "Jobs with the longest time from their first attempt to their last",
      columns: [
        .init("Job"), .init("Time", .number), .init("Size", .number),
        .init("Attempts, drawn", .drawing), .init("Attempts"),
      ], rows: rows, otherwise: "no job took a second.")
    return """
      <p class="faint">A high bar is an attempt, the line between two is the time in which the job waited, and a mark \
      over the whole height is a failure. All rows begin at the first attempt, and have one scale.</p>
      \(table.html)
      """
  }

  /// `4: 2 failed (cut 2×), 1 interrupted, done`.
  private static func course(of job: JobRecord) -> String {
    var codes: [(code: String, count: Int)] = []
    var (interrupted, failed) = (0, 0)
    for attempt in job.attempts {
      switch attempt.end {
      case .failed(let code):
        failed += 1
        if let index = codes.firstIndex(where: { $0.code == code }) {
          codes[index].count += 1
        } else if codes.count < 5 {
          codes.append((code, 1))
        }
      case .interrupted: interrupted += 1
      case .done, .open: break
      }
    }
    var parts: [String] = []
    if failed > 0 {
      let list = codes.map { $0.count > 1 ? "\(Shown.text($0.code)) \($0.count)×" : Shown.text($0.code) }
      parts.append("\(failed) failed (\(list.joined(separator: ", ")))")
    }
    if interrupted > 0 { parts.append("\(interrupted) interrupted") }
    if job.directory == .done { parts.append("done") }
    return "\(job.attempts.count): " + parts.joined(separator: ", ")
  }

  private var biggest: HTMLText {
    let jobs = facts.biggest.elements
    let most = Double(jobs.first?.size ?? 1)
    let rows: [[HTMLText]] = jobs.map { job in
      [
        "\(Shown.text(escaped(job.output ?? "")))", "\(shortBytes(job.size ?? 0))",
        Charts.meter(Double(job.size ?? 0) / max(1, most)), "\(Self.shown(job.host))",
        "\(shortDuration(job.seconds))", "\(job.attempts.last.map { Shown.time($0.ended) } ?? "–")",
      ]
    }
    return ReportTable(
      caption: "Files by size",
      columns: [
        .init("File"), .init("Size", .number), .init("Size, drawn", .drawing),
        .init("Host"), .init("Time", .number), .init("Done (UTC)", .time),
      ], rows: rows, otherwise: "none."
    ).html
  }

  private var oldest: HTMLText {
    let rows: [[HTMLText]] = facts.oldest.elements.map { job in
      [
        "\(Shown.text(job.name.display))", "\(shortDuration(snapshot.time.seconds - job.since.seconds))",
        "\(Self.state(of: job))", "\(job.attempts.count)",
        job.code.map { "\(codes.link($0)): \(Shown.text(escaped(job.reason ?? "")))" } ?? "–",
      ]
    }
    return ReportTable(
      caption: "Jobs that are not done, the oldest first",
      columns: [
        .init("Job"), .init("Age", .number), .init("State"), .init("Attempts", .number), .init("Last failure"),
      ], rows: rows, otherwise: "none."
    ).html
  }

  private static func state(of job: JobRecord) -> String {
    switch job.directory {
    case .cur: "running, or its worker has died"
    case .partial: "waits for its next attempt"
    case .hold: "paused"
    // A person may have released it, or tries it again.
    case .new, .urgent: job.attempts.isEmpty ? "waits for its first attempt" : "waits for its turn"
    case .done: "done"
    case .failed: "given up"
    case .tmp, .standing, .workers, .files: "no job"
    }
  }
}

/// What nobody but a person can help: jobs that were given up, and workers that wait.
extension ReportPage {
  private var workers: HTMLText {
    var notes: [HTMLText] = []
    for worker in snapshot.workers.prefix(100) {
      if !worker.isAlive {
        let silence = shortDuration(snapshot.time.seconds - worker.beat.seconds)
        notes.append("<li>The worker \(worker.name) has given no sign of life for \(silence).</li>")
        continue
      }
      // A gate opens by itself.
      for wait in worker.report?.waits ?? [] where wait.cause != "gate" {
        let reason = Shown.text(escaped(wait.reason))
        notes.append("<li>The worker \(worker.name) waits: \(escaped(wait.cause)): \(reason)</li>")
      }
    }
    return notes.isEmpty ? "" : "<ul>\(notes)</ul>\n"
  }

  /// Jobs that are shown at once; others can be opened.
  private static let shownAtOnce = 10

  private var givenUp: HTMLText {
    let listed = facts.failed.elements
    let codes = facts.failedCodes.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
    // What is to be done, once for each code.
    let advice = ReportTable(
      caption: "Jobs that were given up, by code",
      columns: [.init("Code"), .init("Jobs", .number), .init("What to do")],
      rows: codes.prefix(20).map { code, count in
        [self.codes.link(code), "\(Shown.number(count))", "\(Advice(for: code).text)"]
      }, otherwise: "none.")
    if codes.isEmpty { return advice.html }
    let first = table("Given up, the latest first", listed.prefix(Self.shownAtOnce))
    let others = listed.dropFirst(Self.shownAtOnce)
    if others.isEmpty { return "\(advice.html)\(first)" }
    let rest = facts.failed.count - listed.count
    let note: HTMLText = rest > 0 ? "<p class=\"faint\">… and \(Shown.number(rest)) more.</p>\n" : ""
    return """
      \(advice.html)\(first)
      <details><summary>\(Shown.count(facts.failed.count - Self.shownAtOnce, "more job"))</summary>
      \(table("Given up earlier", others))\(note)</details>

      """
  }

  private func table(_ caption: String, _ jobs: ArraySlice<JobRecord>) -> HTMLText {
    let rows: [[HTMLText]] = jobs.map { job in
      let advice = Advice(for: job.code ?? "")
      let retry =
        job.isRecord ? "–" : "<code>\(advice.command(for: job.name, of: snapshot.location))</code>" as HTMLText
      return [
        "\(Shown.text(job.name.display))",
        "<strong>\(codes.link(job.code ?? "unknown"))</strong><br>\(Shown.text(escaped(job.reason ?? "")))",
        retry, "\(job.attempts.last.map { Shown.time($0.ended) } ?? "–")",
      ]
    }
    return ReportTable(
      caption: caption,
      columns: [.init("Job"), .init("Why"), .init("To try again"), .init("Given up (UTC)", .time)], rows: rows
    ).html
  }
}

/// The failure codes on the page that are known, each with what it means. Pure.
private struct ExplainedCodes {
  private let lines: [String: [String]]

  init(_ facts: ReportFacts, _ servers: [ServerStatus]) {
    let codes = Set(facts.codes.keys).union(facts.failedCodes.keys).union(facts.oldest.elements.compactMap(\.code))
      .union(servers.map(\.rest.code))
    lines = Dictionary(
      uniqueKeysWithValues: codes.compactMap { code in FailureExplanation(of: code).map { (code, $0.lines) } })
  }

  func link(_ code: String) -> HTMLText {
    lines[code] == nil ? "\(Shown.text(code))" : "<a href=\"#code-\(code)\">\(Shown.text(code))</a>"
  }

  var html: HTMLText {
    if lines.isEmpty { return "<p class=\"none\">No attempt failed.</p>\n" }
    let items: [HTMLText] = lines.sorted { $0.key < $1.key }.map { code, lines in
      "<dt id=\"code-\(code)\"><code>\(code)</code></dt><dd>\(lines.joined(separator: " "))</dd>\n"
    }
    return "<dl>\(items)</dl>\n"
  }
}

/// The style of the page. Colours have a contrast of at least 4.5 for text and 3 for drawings (WCAG 1.4.3, 1.4.11), in
/// both schemes. No colour says anything that a text does not.
extension ReportPage {
  private static let css = """
    :root{color-scheme:light dark;--page:#fff;--card:#f5f7f9;--text:#1b1f24;--faint:#57606a;--line:#d0d7de;\
    --bar:#0b5cad;--good:#1a7f37;--bad:#b42318}
    @media(prefers-color-scheme:dark){:root{--page:#0d1117;--card:#161b22;--text:#e6edf3;--faint:#9ba5b0;\
    --line:#30363d;--bar:#6cb6ff;--good:#57c26c;--bad:#ff8f85}}
    *{box-sizing:border-box}
    body{margin:0 auto;max-width:84rem;padding:1rem clamp(.75rem,3vw,2.5rem);background:var(--page);\
    color:var(--text);font:1rem/1.45 system-ui,sans-serif}
    h1{font-size:1.6rem;margin:.5rem 0;overflow-wrap:anywhere}
    h2{font-size:1.2rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}
    h3{font-size:1rem;margin:1.2rem 0 .3rem}
    p{margin:.4rem 0}.faint,.none,figcaption{color:var(--faint);font-weight:400}
    a{color:var(--bar)}
    nav ul{display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;list-style:none;padding:0;margin:.6rem 0}
    nav a{display:inline-block;padding:.25rem 0}
    dl.sums{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.7rem;margin:1rem 0}
    dl.sums div{background:var(--card);border:1px solid var(--line);border-radius:.4rem;padding:.5rem .8rem}
    dl.sums dt{color:var(--faint);font-size:.85rem}dl.sums dd{margin:0;font-size:1.35rem;font-weight:600}
    figure{margin:1rem 0 1.4rem}figcaption{margin-bottom:.3rem}
    .most,.ticks{font-size:.8rem;color:var(--faint)}
    .ticks{display:flex;justify-content:space-between;gap:.5rem}
    .ticks span:nth-child(2):not(:last-child){display:none}
    @media(min-width:40rem){.ticks span:nth-child(2):not(:last-child){display:inline}}
    svg{display:block;fill:var(--bar)}
    svg.good{fill:var(--good)}svg.bad,svg .bad{fill:var(--bad)}svg .pause{fill:var(--faint)}
    svg.bars{width:100%;height:8rem;border-bottom:1px solid var(--faint);border-top:1px dotted var(--line)}
    svg.spark{width:100%;min-width:10rem;height:1.4rem;border-bottom:1px solid var(--line)}
    svg.meter{width:100%;min-width:5rem;height:.7rem}
    svg.fall{width:100%;min-width:16rem;height:1.2rem}
    .scroll{overflow-x:auto;margin:.5rem 0 1rem}
    .scroll:focus-visible,a:focus-visible,summary:focus-visible{outline:2px solid var(--bar);outline-offset:2px}
    table{border-collapse:collapse;width:100%;font-size:.9rem}
    caption{text-align:left;color:var(--faint);padding:.2rem 0}
    th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid var(--line)}
    thead th{font-size:.8rem;color:var(--faint);vertical-align:bottom}
    tbody th{font-weight:600;overflow-wrap:anywhere;min-width:8rem;max-width:24rem}
    td{overflow-wrap:anywhere;min-width:9rem}td.number,td.time{min-width:0}.time{white-space:nowrap}
    .number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
    td.drawing{width:35%;vertical-align:middle}
    code{font:.85em ui-monospace,monospace;overflow-wrap:anywhere}
    summary{cursor:pointer;padding:.25rem 0;color:var(--bar)}
    footer{margin:2.5rem 0 1rem;border-top:1px solid var(--line);padding-top:.5rem;color:var(--faint)}
    @media print{:root{--page:#fff;--card:#fff;--text:#000;--faint:#444;--line:#999;--bar:#0b5cad;--good:#1a7f37;\
    --bad:#b42318}body{font-size:9pt;padding:0;max-width:none}nav,details{display:none}
    .scroll{overflow:visible}table{font-size:8pt}thead{display:table-header-group}tr,figure{break-inside:avoid}
    h2,caption{break-after:avoid}svg{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
    """
}
