package import Spool
package import SpoolWorker

/// What an event of a worker says to a person. Pure.
package struct EventSentence {
  private let event: Event
  private let spool: String
  private let now: Timestamp?
  private let look: Look

  /// - Parameters:
  ///   - spool: its path, as the person gave it.
  ///   - now: for a terminal, where times are told from now on; nil for a log.
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
    case "proxy-back": line.append("the proxy \(fields["proxy"] ?? "") serves again")
    case "data-lost":
      line.append("data-lost: \(fields["reason"] ?? ""); fetching again from byte \(fields["at"] ?? "?")", .yellow)
    case "waiting": line.append(WaitingSentence(fields, now: now).text)
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

  private var problem: String {
    let line = fields["line"].map { "line \($0): " } ?? ""
    var values = ""
    // The reason of `disk-full` already has the figures.
    if let expected = fields["expected"], let found = fields["found"], fields["code"] != FailureCode.diskFull.rawValue {
      values = " (expected \(expected), found \(found))"
    }
    return "\(fields["code"] ?? "?"): \(line)\(fields["reason"] ?? "")\(values)"
  }

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
