internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SpoolWorker

/// What a run shows on standard error: the log, the progress bars below it, and on a terminal what came of it.
struct RunOutput: Sendable {
  private let bars: StatusBars?
  private let printer: EventPrinter
  private let hasClosing: Bool
  private let began = Terminal.milliseconds()

  init(_ spool: Spool, _ progress: ProgressMode, _ format: LogFormat, isVerbose: Bool) {
    let bars = StatusBars(progress, format)
    self.bars = bars
    printer = EventPrinter(
      of: spool.location, isVerbose: isVerbose, format: format, reader: .current, Terminal.look(STDERR_FILENO)
    ) { text in
      if let bars { bars.print(text) } else { Terminal.log(text) }
    }
    hasClosing = LogReader.current == .terminal && format == .text
  }

  func print(_ event: Event) { printer.print(event) }

  @WorkerLoop
  func follow(_ worker: Worker) {
    if let bars { worker.onProgress = { bars.update($0) } }
  }

  /// Erases the bars.
  func finish() { bars?.finish() }

  /// Says what came of the run, unless nothing could be done.
  func close(_ summary: RunSummary, isOnce: Bool) {
    guard hasClosing, summary.obstacle == nil, summary.spoolError == nil else { return }
    let seconds = (Terminal.milliseconds() - began + 500) / 1000
    let closing = RunClosing(summary, seconds: seconds, isOnce: isOnce, waiting: printer.waiting, now: .now())
    if let line = closing.line(Terminal.look(STDERR_FILENO)) { Terminal.log("spoolrun: \(line.text)") }
  }
}
