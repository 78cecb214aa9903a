package import Spool
package import SpoolWorker

/// What an event of a worker says to a person. Pure.
package struct EventSentence {
  private let event: Event
  private let spool: String
  private let now: Timestamp?
  private let look: Look

  /// - Parameter spool: its path, as the person gave it.
  /// - Parameter now: for a terminal, where times are told from now on; nil for a log.
  package init(_ event: Event, of spool: String, now: Timestamp?, _ look: Look) {
    (self.event, self.spool, self.now, self.look) = (event, spool, now, look)
  }

  private var fields: Fields { event.fields }

  /// The sentence, without a name of the program in front.
  package var line: StyledLine {
    let job = event.job.map { "\($0.display): " } ?? ""
    var line = StyledLine(job, look)
    switch event.name {
    case "done":
      line.append("done", .green)
      line.append(": \(path)\(figures)")
    case "failed", "rejected":
      line.append(problem, fields["retry"] == nil ? .red : .yellow)
      line.append(next)
    case "list-problems": line.append("its list has \(fields["reason"] ?? "problems")", .yellow)
    case "unfinished": line.append("not started: \(fields["reason"] ?? "it is not finished")")
    case "stopping": line.append("stopping: the next run resumes the transfers")
    case "proxy-failed": line.append("\(fields["reason"] ?? "a proxy fails"): the jobs that need it wait", .yellow)
    case "server-rests":
      let time = fields["seconds"].flatMap { Int64($0) }.map { " for \(shortDuration($0))" } ?? ""
      line.append("\(fields["reason"] ?? "a server rests"): its jobs wait\(time)", .yellow)
    case "server-back": line.append("\(fields["server"] ?? "the server") serves again")
    case "proxy-back": line.append("the proxy \(fields["proxy"] ?? "") serves again")
    case "data-lost":
      line.append("data-lost: \(fields["reason"] ?? ""); fetching again from byte \(fields["at"] ?? "?")", .yellow)
    case "waiting": line.append(WaitingSentence(fields: fields, now: now).text)
    case "watching": line.append("watching \(escaped(spool)): drop a job into new/; Ctrl-C stops")
    default: line.append("\(event.name): \(fields.text)", event.level == .error ? .red : nil)
    }
    return line
  }

  // MARK: done

  private var path: String {
    let output = escaped(fields["output"] ?? "")
    if now == nil { return output }
    return "\(escaped(fields["directory"] ?? "\(spool)/files"))/\(output)"
  }

  /// ``PayloadFigures``, with a space in front.
  package var figures: String {
    fields["size"].flatMap { UInt64($0) }.map { " (\(PayloadFigures(size: $0, receipt: fields).text))" } ?? ""
  }

  // MARK: failed

  private var problem: String { "\(fields["code"] ?? "?"): \(JobStatus.Problem(fields).reason)" }

  private var next: String {
    guard let retry = fields["retry"] else {
      return now == nil ? "; given up: see failed/\(event.job?.display ?? "")" : "; given up"
    }
    // Without a network or disk space nothing was tried, so this does not count as an attempt.
    let attempt = fields["burned"] == "no" ? "" : "attempt \(fields["attempt"] ?? "?") failed, "
    return "; \(attempt)next \(Timestamp.told(retry, from: now))"
  }

  /// What a person can do about a failure, in two lines; nil if it may be enough to wait, or if it is none.
  package var advice: (code: String, lines: [StyledLine])? {
    guard ["failed", "rejected"].contains(event.name), let code = fields["code"], let job = event.job else {
      return nil
    }
    let advice = Advice(for: code)
    guard fields["retry"] == nil || advice.isUrgent else { return nil }
    let command = advice.command(for: job, of: spool)
    return (code, [StyledLine("  " + advice.text, look), StyledLine("  Then: \(command)", look)])
  }
}

/// Why a run ends while jobs are left: the event `waiting`. Pure.
private struct WaitingSentence {
  let fields: Fields
  /// For a terminal, where times are told from now on; nil for a log.
  let now: Timestamp?

  var text: String {
    let jobs =
      (fields["jobs"] ?? fields["unsettled"]).map { $0 == "1" ? "1 job waits" : "\($0) jobs wait" } ?? "jobs wait"
    let reasons = reasons
    return reasons.isEmpty ? "\(jobs) for the next run" : "\(jobs): \(reasons.joined(separator: "; "))"
  }

  private var reasons: [String] {
    var reasons: [String] = []
    if let count = fields["unsettled"] {
      reasons.append("\(count) changed a moment ago and may still be written (\(FileStatus.settlingTime) s)")
    }
    reasons += ["gate", "proxy", "server"].compactMap { fields[$0] }
    if let problem = fields["output-root"] { reasons.append("no output directory: \(problem)") }
    if let kept = fields["min-free"] {
      let needed = fields["needed"].map { "\(size($0))\(now == nil ? " bytes" : "") are needed, " } ?? ""
      let free = size(fields["free"] ?? "?")
      reasons.append("not enough disk space: \(needed)\(free) are free, --min-free keeps \(size(kept))")
    }
    if let next = fields["next"] { reasons.append("next attempt \(Timestamp.told(next, from: now))") }
    return reasons
  }

  /// Bytes: exactly in a log.
  private func size(_ bytes: String) -> String { now == nil ? bytes : UInt64(bytes).map(shortBytes) ?? escaped(bytes) }

  /// The same among other results of the run: `2 try again, the first in 52s`.
  var part: String {
    guard let next = fields["next"], reasons.count == 1, let jobs = fields["jobs"] else { return text }
    return (jobs == "1" ? "1 tries again " : "\(jobs) try again, the first ") + Timestamp.told(next, from: now)
  }
}

/// The last line of a run on a terminal: what came of it. Pure.
package struct RunClosing {
  private let summary: RunSummary
  private let seconds: Int64
  private let waiting: Fields?
  private let now: Timestamp
  private let isOnce: Bool

  /// - Parameter isOnce: whether it was to run what was due, and not to stay.
  /// - Parameter waiting: the fields of the event `waiting`; nil if there was none.
  package init(_ summary: RunSummary, seconds: Int64, isOnce: Bool, waiting: Fields?, now: Timestamp) {
    (self.summary, self.seconds, self.isOnce) = (summary, seconds, isOnce)
    (self.waiting, self.now) = (waiting, now)
  }

  /// - Returns: nil if the line of the only job has said it all, or if there was none and the worker stayed.
  package func line(_ look: Look) -> StyledLine? {
    let (done, failed, cancelled) = (summary.done, summary.givenUp, summary.cancelled)
    if done == 1, failed + cancelled + summary.waiting == 0 { return nil }
    var parts: [(text: String, ink: Ink?)] = []
    let figures = summary.gained > 0 ? " (\(shortBytes(summary.gained)) fetched in \(shortDuration(seconds)))" : ""
    if done > 0 { parts.append(("\(done) done\(figures)", .green)) }
    if failed > 0 { parts.append(("\(failed) failed", .red)) }
    if cancelled > 0 { parts.append(("\(cancelled) cancelled", nil)) }
    if let waiting {
      parts.append((WaitingSentence(fields: waiting, now: now).part, .yellow))
    } else if summary.waiting > 0 {
      parts.append(("\(summary.waiting) left for the next run", .yellow))
    }
    if parts.isEmpty {
      guard isOnce else { return nil }
      parts = [("no job to run", nil)]
    }
    var line = StyledLine(look)
    for (index, part) in parts.enumerated() {
      if index > 0 { line.append(", ") }
      line.append(part.text, part.ink)
    }
    return line
  }
}
