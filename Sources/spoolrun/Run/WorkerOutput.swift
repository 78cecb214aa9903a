internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SpoolWorker
internal import Synchronization

enum LogFormat: String, ExpressibleByArgument, CaseIterable, Sendable { case text, json }

enum ProgressMode: String, ExpressibleByArgument, CaseIterable, Sendable { case auto, always, never }

/// Prints a worker's events: failures only by default, also finished jobs on a terminal and in the journal of a
/// service, every step with `-v`.
final class EventPrinter: Sendable {
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
  /// The failure codes for which a person has been told what to do.
  private let advised = Mutex<Set<String>>([])
  private let lastWaiting = Mutex<Fields?>(nil)

  /// - Parameter write: receives each text, which may have several lines.
  init(
    of spool: String, isVerbose: Bool, format: LogFormat, reader: LogReader, _ look: Look = Look(isColored: false),
    write: @escaping @Sendable (String) -> Void
  ) {
    (self.spool, self.isVerbose, self.format, self.reader) = (spool, isVerbose, format, reader)
    (self.look, self.write) = (look, write)
  }

  var waiting: Fields? { lastWaiting.withLock { $0 } }

  func print(_ event: Event) {
    if event.name == "waiting" { lastWaiting.withLock { $0 = event.fields } }
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
      advised.withLock({ $0.insert(advice.code).inserted })
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
    guard Event.numbers.contains(key) else { return .string(value) }
    return Int64(value).map { .count($0) } ?? UInt64(value).map { .count($0) } ?? .string(value)
  }
}

/// The progress bars of a run, below the log on standard error.
final class StatusBars: Sendable {
  private struct State {
    var picture = RunPicture()
    var region = LiveRegion()
    var nextSentence: Int64 = 0
  }

  private let state = Mutex(State())
  private let look: Look
  /// Whether the cursor can be moved. If not, a sentence now and then replaces the bars.
  private let isCapable: Bool

  private static let sentenceInterval: Int64 = 10_000
  /// More lines would scroll the user's own text away.
  private static let mostLines = 20

  init?(_ mode: ProgressMode, _ format: LogFormat) {
    isCapable = Terminal.isCapable(STDERR_FILENO)
    switch mode {
    case .never: return nil
    case .auto: if !isCapable || format == .json { return nil }
    case .always: break
    }
    look = Terminal.look(STDERR_FILENO)
  }

  func update(_ progress: WorkerProgress) {
    state.withLock { state in
      let now = Host.current.milliseconds()
      state.picture.update(progress, at: now)
      if isCapable {
        draw(&state)
        return
      }
      guard !state.picture.isIdle, now >= state.nextSentence else { return }
      // The first call only starts the interval: there is nothing to report yet.
      if state.nextSentence > 0 { Terminal.error(state.picture.sentence, .info) }
      state.nextSentence = now + Self.sentenceInterval
    }
  }

  func print(_ text: String) {
    state.withLock { state in
      // What the terminal has echoed, such as ^C, is erased with the bars.
      if !isCapable || !draw(&state, above: [text]) { Terminal.log(text) }
    }
  }

  func finish() { state.withLock { $0.region.eraseOnStandardError() } }

  /// - Returns: whether there is a terminal to draw on.
  @discardableResult private func draw(_ state: inout State, above: [String] = []) -> Bool {
    guard let size = Terminal.size(STDERR_FILENO) else { return false }
    // The last column stays empty: terminals differ in where the cursor is after a full line.
    let lines = state.picture.lines(width: size.columns - 1, height: min(Self.mostLines, size.rows - 1), look)
    if lines.isEmpty, state.region.isEmpty, above.isEmpty { return true }
    Terminal.write(state.region.draw(lines, above: above, columns: size.columns), to: STDERR_FILENO)
    return true
  }
}
