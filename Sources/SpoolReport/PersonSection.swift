internal import Spool
internal import SpoolStatus

/// What nobody but a person can help: jobs that were given up, and workers that wait. Pure.
struct PersonSection {
  let facts: ReportFacts
  let snapshot: SpoolSnapshot

  var html: HTMLText { "\(workers)\(jobs)" }

  private var workers: HTMLText {
    var notes: [HTMLText] = []
    for worker in snapshot.workers.prefix(100) {
      if !worker.isAlive {
        let silence = Shown.seconds(snapshot.time.seconds - worker.beat.seconds)
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
        ["\(Shown.text(code))", "\(Shown.number(count))", "\(Advice(for: code).text)"]
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
        "\(Shown.text(Shown.name(job.name)))",
        "<strong>\(Shown.text(job.code ?? "unknown"))</strong><br>\(Shown.text(escaped(job.reason ?? "")))",
        retry, "\(job.attempts.last.map { Shown.time($0.ended) } ?? "–")",
      ]
    }
    return ReportTable(
      caption: caption,
      columns: [.init("Job"), .init("Why"), .init("To try again"), .init("Given up (UTC)", .time)], rows: rows
    ).html
  }
}
