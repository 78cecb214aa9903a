internal import Spool

/// The slowest, the biggest and the oldest jobs. Pure.
struct JobSections {
  let facts: ReportFacts
  let now: Timestamp

  /// How the attempts of each job lie in time.
  var slowest: HTMLText {
    let jobs = facts.slowest.elements.filter { $0.seconds > 0 }
    let longest = jobs.first?.seconds ?? 1
    let rows: [[HTMLText]] = jobs.map { job in
      [
        "\(Shown.text(Shown.name(job.name)))<br><span class=\"faint\">\(ReportPage.shown(job.host))</span>",
        "\(Shown.seconds(job.seconds))", "\(job.size.map { Shown.bytes($0) } ?? "–")",
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
        "\(Shown.text(escaped(job.output ?? "")))", "\(Shown.bytes(job.size ?? 0))",
        Charts.meter(Double(job.size ?? 0) / max(1, most)), "\(ReportPage.shown(job.host))",
        "\(Shown.seconds(job.seconds))", "\(job.attempts.last.map { Shown.time($0.ended) } ?? "–")",
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
        "\(Shown.text(Shown.name(job.name)))", "\(Shown.seconds(now.seconds - job.since.seconds))",
        "\(Self.state(of: job))", "\(job.attempts.count)",
        "\(job.code.map { "\(Shown.text($0)): \(Shown.text(escaped(job.reason ?? "")))" } ?? "–")",
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
