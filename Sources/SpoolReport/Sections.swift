internal import Spool
internal import SpoolStatus

/// The slowest, the biggest and the oldest jobs. Pure.
struct JobSections {
  let facts: ReportFacts
  let now: Timestamp
  let codes: ExplainedCodes

  /// How the attempts of each job lie in time.
  var slowest: HTMLText {
    let jobs = facts.slowest.elements.filter { $0.seconds > 0 }
    let longest = jobs.first?.seconds ?? 1
    let rows: [[HTMLText]] = jobs.map { job in
      [
        "\(Shown.text(job.name.display))<br><span class=\"faint\">\(ReportPage.shown(job.host))</span>",
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
  static func course(of job: JobRecord) -> String {
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

  var biggest: HTMLText {
    let jobs = facts.biggest.elements
    let most = Double(jobs.first?.size ?? 1)
    let rows: [[HTMLText]] = jobs.map { job in
      [
        "\(Shown.text(escaped(job.output ?? "")))", "\(shortBytes(job.size ?? 0))",
        Charts.meter(Double(job.size ?? 0) / max(1, most)), "\(ReportPage.shown(job.host))",
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

  var oldest: HTMLText {
    let rows: [[HTMLText]] = facts.oldest.elements.map { job in
      [
        "\(Shown.text(job.name.display))", "\(shortDuration(now.seconds - job.since.seconds))",
        "\(Self.state(of: job))", "\(job.attempts.count)",
        job.code.map { "\(codes.link($0)): \(Shown.text(escaped(job.reason ?? "")))" } ?? "–",
      ]
    }
    return ReportTable(
      caption: "Jobs that are not done, the oldest first",
      columns: [
        .init("Job"), .init("Age", .number), .init("State"),
        .init("Attempts", .number), .init("Last failure"),
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

/// What nobody but a person can help: jobs that were given up, and workers that wait. Pure.
struct PersonSection {
  let facts: ReportFacts
  let snapshot: SpoolSnapshot
  let codes: ExplainedCodes

  var html: HTMLText { "\(workers)\(jobs)" }

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

  private var jobs: HTMLText {
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
struct ExplainedCodes {
  private let lines: [String: [String]]

  init(_ facts: ReportFacts, _ servers: [ServerStatus]) {
    let codes = Set(facts.codes.keys).union(facts.failedCodes.keys).union(facts.oldest.elements.compactMap(\.code))
      .union(servers.map(\.rest.code))
    lines = Dictionary(
      uniqueKeysWithValues: codes.compactMap { code in FailureExplanation(of: code).map { (code, $0.lines) } })
  }

  /// A code as a link to what it means, if that is known.
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
