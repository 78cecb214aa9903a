internal import Spool
internal import SpoolStatus
internal import SpoolWorker
internal import Synchronization

/// Prints a worker's events: failures only by default, also finished jobs on a terminal and in the journal of a
/// service, every step with `-v`.
final class EventPrinter: Sendable {
  private struct State {
    /// The failure codes for which a person has been told what to do.
    var advised: Set<String> = []
    var waiting: Fields?
  }

  private let isVerbose: Bool
  private let format: LogFormat
  /// Who reads the lines. On a terminal a user also sees which jobs are done, why a job that was just dropped does not
  /// start, what is watched, that Ctrl-C has been received, and what to do about failures. The journal of a service has
  /// which jobs are done.
  private let reader: LogReader
  /// The spool, as the user gave it.
  private let spool: String
  private let look: Look
  private let write: @Sendable (String) -> Void
  private let state = Mutex(State())

  /// - Parameter write: receives each text, which may have several lines.
  init(
    of spool: String, isVerbose: Bool, format: LogFormat, reader: LogReader, _ look: Look = Look(isColored: false),
    write: @escaping @Sendable (String) -> Void
  ) {
    (self.spool, self.isVerbose, self.format, self.reader) = (spool, isVerbose, format, reader)
    (self.look, self.write) = (look, write)
  }

  /// The fields of the last event `waiting`.
  var waiting: Fields? { state.withLock { $0.waiting } }

  func print(_ event: Event) {
    if event.name == "waiting" { state.withLock { $0.waiting = event.fields } }
    guard isVerbose || event.level == .warning || event.level == .error || isExpected(event) else { return }
    // The last line of the run says it.
    if !isVerbose, format == .text, reader == .terminal, event.name == "waiting" { return }
    let line =
      switch format {
      case .json: json(event)
      case .text: isVerbose ? text(event) : sentence(event)
      }
    write(reader.text(line, LogPriority(event.level)))
  }

  /// Whether this reader wants to know it although nothing is wrong.
  private func isExpected(_ event: Event) -> Bool {
    switch reader {
    case .terminal: ["done", "unfinished", "stopping", "waiting", "watching"].contains(event.name)
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

  /// On a terminal, what to do about a failure is told once for each code.
  private func sentence(_ event: Event) -> String {
    let isTerminal = reader == .terminal
    let sentence = EventSentence(event, of: spool, now: isTerminal ? .now() : nil, look)
    let text = "spoolrun: \(sentence.line.text)"
    guard isTerminal, let advice = sentence.advice,
      state.withLock({ $0.advised.insert(advice.code).inserted })
    else { return text }
    return ([text] + advice.lines.map(\.text)).joined(separator: "\n")
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
