internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SpoolWorker
internal import Synchronization

/// What `spoolrun get` shows on standard error: progress bars, each file that is done, and at the end those that are
/// not.
final class GetOutput: Sendable {
  private struct State {
    /// The jobs that are done, and about which the person knows.
    var told: Set<FileName> = []
    /// Bytes that this command has fetched.
    var gained: UInt64 = 0
  }

  private let bars: StatusBars?
  private let printer: EventPrinter
  private let isVerbose: Bool
  /// The files as the person named them, by their jobs.
  private let names: [FileName: String]
  private let look = Terminal.look(STDERR_FILENO)
  private let began = Terminal.milliseconds()
  private let state = Mutex(State())

  init(_ items: [GetItem], of spool: Spool, _ progress: ProgressMode, isVerbose: Bool) {
    let bars = StatusBars(progress, .text)
    (self.bars, self.isVerbose) = (bars, isVerbose)
    names = Dictionary(items.map { ($0.job.fileName, $0.shown) }) { first, _ in first }
    printer = EventPrinter(of: spool.location, isVerbose: isVerbose, format: .text, reader: .currentButTerminal) {
      if let bars { bars.print($0) } else { Terminal.log($0) }
    }
  }

  /// Whether the person wants to know of what succeeds.
  private var isTalkative: Bool { isVerbose || Terminal.isErrorTerminal }

  func update(_ progress: WorkerProgress) { bars?.update(progress) }
  /// Erases the bars.
  func finishBars() { bars?.finish() }

  /// The progress of a worker, with the names that the person knows.
  func update(fromWorker progress: WorkerProgress) {
    var progress = progress
    progress.running = progress.running.map {
      JobProgress(id: $0.id, name: names[$0.name].map { FileName($0) } ?? $0.name, bytes: $0.bytes, total: $0.total)
    }
    update(progress)
  }

  /// Prints what concerns the spool, and each file that is done. Other results are printed at the end.
  func report(_ event: Event) {
    let isOfOneJob = ["done", "failed", "rejected", "stopping", "waiting", "unfinished"].contains(event.name)
    if isVerbose || !isOfOneJob { printer.print(event) }
    if event.name == "done", let job = event.job {
      tellDone(job, EventSentence(event, of: "", now: nil, look).figures)
    }
  }

  func add(gained bytes: UInt64) { state.withLock { $0.gained &+= bytes } }

  func sayThatAnotherWorkerRuns() {
    if isTalkative { say("a worker has this spool: following its progress") }
  }

  /// - Parameter figures: of the file, with a space in front, if they are known.
  func tellDone(_ job: FileName, _ figures: String = "") {
    guard isTalkative, state.withLock({ $0.told.insert(job).inserted }) else { return }
    let line = GetEnd.done.line(now: nil, look)
    say("\(escaped(names[job] ?? job.display)): \(line.text)\(figures)")
  }

  private func say(_ line: String) {
    if let bars { bars.print("spoolrun: \(line)") } else { Terminal.error(line) }
  }

  // MARK: the end

  /// Tells how the files ended, if that has not been told.
  func tell(_ items: [GetItem], _ ends: [GetEnd]) {
    let isTerminal = Terminal.isErrorTerminal
    let now = isTerminal ? Timestamp.now() : nil
    for (item, end) in zip(items, ends) {
      if end == .done {
        tellDone(item.job.fileName)
        continue
      }
      Terminal.error("\(escaped(item.shown)): \(end.line(now: now, look).text)")
      if isTerminal, let advice = end.advice { Terminal.log("  \(advice)") }
    }
    if let now, items.count > 1 { close(ends, now) }
  }

  private func close(_ ends: [GetEnd], _ now: Timestamp) {
    var summary = RunSummary()
    summary.done = ends.count { $0.status == .success }
    summary.givenUp = ends.count { $0.status == .givenUp }
    summary.waiting = ends.count { $0.status == .waiting }
    summary.gained = state.withLock { $0.gained }
    let times = ends.compactMap { if case .retrying(let next, _) = $0 { next } else { nil } }
    let waiting = times.min().map { Fields().with("jobs", times.count).with("next", $0) }
    let seconds = (Terminal.milliseconds() - began + 500) / 1000
    let closing = RunClosing(summary, seconds: seconds, isOnce: true, waiting: waiting, now: now)
    if let line = closing.line(look) { Terminal.log("spoolrun: \(line.text)") }
  }
}
