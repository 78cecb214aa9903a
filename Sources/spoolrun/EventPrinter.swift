internal import ArgumentParser
internal import Spool
internal import SpoolStatus
internal import SpoolWorker

enum LogFormat: String, ExpressibleByArgument, CaseIterable, Sendable { case text, json }

/// Prints a worker's events: failures only by default, also finished jobs on a terminal and in the journal of a
/// service, every step with `-v`.
struct EventPrinter: Sendable {
  let isVerbose: Bool
  let format: LogFormat
  /// Who reads the lines. On a terminal a user also sees which jobs are done, why a job that was just dropped does not
  /// start, that Ctrl-C has been received, and why jobs are left. The journal of a service has which jobs are done.
  let reader: LogReader
  /// Receives each line.
  let write: @Sendable (String) -> Void

  func print(_ event: Event) {
    guard isVerbose || event.level == .warning || event.level == .error || isExpected(event) else { return }
    let line =
      switch format {
      case .json: json(event)
      case .text: isVerbose ? text(event) : "spoolrun: \(sentence(event))"
      }
    write(reader.text(line, LogPriority(event.level)))
  }

  /// Whether this reader wants to know it although nothing is wrong.
  private func isExpected(_ event: Event) -> Bool {
    switch reader {
    case .terminal: ["done", "unfinished", "stopping", "waiting"].contains(event.name)
    case .journal: event.name == "done"
    case .other: false
    }
  }

  private func text(_ event: Event) -> String {
    var line = "\(Timestamp.now()) \(event.name)"
    if let job = event.job { line += " job=\(Fields().with("job", job.display).text.dropFirst(4))" }
    let fields = event.fields.text
    return fields.isEmpty ? line : "\(line) \(fields)"
  }

  private func sentence(_ event: Event) -> String {
    let job = event.job.map { "\($0.display): " } ?? ""
    let fields = event.fields
    switch event.name {
    case "done":
      return "\(job)done: \(escaped(fields["output"] ?? ""))\(figures(fields))"
    case "unfinished":
      return "\(job)not started: \(fields["reason"] ?? "it is not finished")"
    case "stopping":
      return "stopping: the next run resumes the transfers"
    case "proxy-failed":
      return "\(fields["reason"] ?? "a proxy fails"): the jobs that need it wait"
    case "proxy-back":
      return "the proxy \(fields["proxy"] ?? "") serves again"
    case "waiting":
      return waiting(fields)
    case "failed", "rejected":
      let line = fields["line"].map { "line \($0): " } ?? ""
      var values = ""
      // The reason of `disk-full` already has the figures.
      if let expected = fields["expected"], let found = fields["found"], fields["code"] != FailureCode.diskFull.rawValue
      {
        values = " (expected \(expected), found \(found))"
      }
      // Without a network or disk space nothing was tried, so this does not count as an attempt.
      let attempt = fields["burned"] == "no" ? "" : "attempt \(fields["attempt"] ?? "?") failed, "
      let next =
        fields["retry"].map { "; \(attempt)next at \($0)" }
        ?? "; given up: see failed/\(event.job?.display ?? "")"
      return "\(job)\(fields["code"] ?? "?"): \(line)\(fields["reason"] ?? "")\(values)\(next)"
    default:
      return "\(job)\(event.name): \(fields.text)"
    }
  }

  /// The size of a payload, and how long and how fast it came.
  private func figures(_ fields: Fields) -> String {
    guard let size = fields["size"].flatMap({ UInt64($0) }) else { return "" }
    let seconds = fields["seconds"].flatMap { Int64($0) }.map { " in \(shortDuration($0))" } ?? ""
    let rate = fields["rate"].flatMap { Double($0) }.map { ", \(shortRate($0))" } ?? ""
    return " (\(shortBytes(size))\(seconds)\(rate))"
  }

  /// Why a run ends while jobs are left.
  private func waiting(_ fields: Fields) -> String {
    let jobs =
      (fields["jobs"] ?? fields["unsettled"]).map { $0 == "1" ? "1 job waits" : "\($0) jobs wait" } ?? "jobs wait"
    var reasons: [String] = []
    if let count = fields["unsettled"] {
      reasons.append("\(count) changed a moment ago and may still be written (\(Spool.settlingTime) s)")
    }
    if let gate = fields["gate"] { reasons.append(gate) }
    if let proxy = fields["proxy"] { reasons.append(proxy) }
    if let problem = fields["output-root"] { reasons.append("no output root: \(problem)") }
    if let kept = fields["min-free"] {
      let needed = fields["needed"].map { "\($0) bytes are needed, " } ?? ""
      reasons.append("not enough disk space: \(needed)\(fields["free"] ?? "?") are free, --min-free keeps \(kept)")
    }
    if let next = fields["next"] { reasons.append("next attempt at \(next)") }
    return reasons.isEmpty ? "\(jobs) for the next run" : "\(jobs): \(reasons.joined(separator: "; "))"
  }

  private func json(_ event: Event) -> String {
    var members = [("time", Timestamp.now().description), ("event", event.name), ("level", event.level.rawValue)]
    if let job = event.job { members.append(("job", job.display)) }
    let fields = event.fields.named.map { ($0.key, Self.json($0.value, of: $0.key)) }
    return JSONText.object(members.map { ($0, .string($1)) } + fields).text
  }

  /// A value in JSON. What should be a number and is none, as in a journal that somebody has edited, is a string.
  private static func json(_ value: String, of key: String) -> JSONText {
    guard EventField(rawValue: key)?.isNumber == true else { return .string(value) }
    return Int64(value).map { .count($0) } ?? UInt64(value).map { .count($0) } ?? .string(value)
  }
}
