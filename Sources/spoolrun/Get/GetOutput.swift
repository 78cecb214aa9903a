internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SpoolWorker
internal import Synchronization

enum GetTelling { case failures, results, steps }

/// What `spoolrun get` shows on standard error: progress bars, each file that is done, and at the end those that are
/// not.
final class GetOutput: Sendable {
  let bars: StatusBars?
  private let printer: EventPrinter
  private let telling: GetTelling
  /// The files as the person named them, by their jobs.
  private let names: [FileName: String]
  private let look = Terminal.look(STDERR_FILENO)
  private let began = Host.current.milliseconds()
  /// The jobs that are done, and about which the person knows.
  private let told = Mutex<Set<FileName>>([])
  /// Whether the command waits for next attempts, of which it says why.
  private let stays: Bool
  private let toldCodes = Mutex<Set<String>>([])
  /// Bytes that this command has fetched.
  private let gained = Mutex<UInt64>(0)

  init(_ items: [GetItem], of spool: Spool, _ progress: ProgressMode, stays: Bool, _ telling: GetTelling) {
    let bars = StatusBars(progress, .text)
    (self.bars, self.stays, self.telling) = (bars, stays, telling)
    names = Dictionary(items.map { ($0.job.fileName, $0.shown) }) { first, _ in first }
    // A terminal gets only what a file would.
    let reader: LogReader = LogReader.current == .terminal ? .other : LogReader.current
    printer = EventPrinter(of: spool.location, isVerbose: telling == .steps, format: .text, reader: reader) {
      if let bars { bars.print($0) } else { Terminal.log($0) }
    }
  }

  private var isTalkative: Bool { telling == .steps || telling == .results && Terminal.isErrorTerminal }

  /// The progress of a worker, with the names that the person knows.
  func update(fromWorker progress: WorkerProgress) {
    var progress = progress
    progress.running = progress.running.map {
      JobProgress(id: $0.id, name: names[$0.name].map { FileName($0) } ?? $0.name, bytes: $0.bytes, total: $0.total)
    }
    bars?.update(progress)
  }

  /// Prints what concerns the spool, and each file that is done. Other results are printed at the end.
  func report(_ event: Event) {
    let isOfOneJob = ["done", "failed", "rejected", "stopping", "waiting", "unfinished"].contains(event.name)
    if telling == .steps || !isOfOneJob { printer.print(event) }
    if event.name == "done", let job = event.job { tellDone(job, EventSentence(event, of: "", now: nil, look).figures) }
    if event.name == "failed", telling == .results { tellRetry(event) }
  }

  /// Says why a file has to wait, once for each reason; of a server that all have to wait for, once for all files.
  private func tellRetry(_ event: Event) {
    let facts = event.fields
    guard stays, let job = event.job, let next = facts["retry"].flatMap({ Timestamp($0) }), let code = facts["code"]
    else { return }
    let subject = event.level == .info ? facts["reason"] ?? "" : job.display
    guard toldCodes.withLock({ $0.insert("\(code) \(subject)").inserted }) else { return }
    let now = Terminal.isErrorTerminal ? Timestamp.now() : nil
    var line = StyledLine(look)
    line.append("\(escaped(code)): \(escaped(facts["reason"] ?? ""))", .yellow)
    say("\(escaped(names[job] ?? job.display)): \(line.text); tries again \(next.told(from: now))")
  }

  func add(gained bytes: UInt64) { gained.withLock { $0 &+= bytes } }

  func sayThatAnotherWorkerRuns() { if isTalkative { say("a worker has this spool: following its progress") } }

  /// Whether the person is to hear that the job is done, and has not.
  func tells(_ job: FileName) -> Bool { isTalkative && told.withLock { !$0.contains(job) } }

  /// - Parameter figures: of the file, with a space in front, if they are known.
  func tellDone(_ job: FileName, _ figures: String = "") {
    guard isTalkative, told.withLock({ $0.insert(job).inserted }) else { return }
    say("\(escaped(names[job] ?? job.display)): \(GetEnd.done.line(look).text)\(figures)")
  }

  private func say(_ line: String) { if let bars { bars.print("spoolrun: \(line)") } else { Terminal.error(line) } }

  // MARK: the end

  /// Tells how the files ended, if that has not been told.
  func tell(_ items: [GetItem], _ ends: [GetEnd]) {
    let isTerminal = Terminal.isErrorTerminal
    let present = ends.count { $0 == .isThere }
    for (item, end) in zip(items, ends) {
      if end == .isThere, telling == .failures || present > 1 && telling != .steps { continue }
      if end == .done {
        tellDone(item.job.fileName)
        continue
      }
      Terminal.error("\(escaped(item.shown)): \(end.line(look).text)")
      if isTerminal, let advice = end.advice { Terminal.log("  \(advice)") }
    }
    if present > 1, telling == .results {
      Terminal.error("\(present) files are there already, and are what their receipts say; -v names them", .info)
    }
    if isTerminal, items.count > 1 { close(ends) }
  }

  /// - Parameter left: bytes of files that are not there yet.
  func tell(left: UInt64, in spool: Spool) {
    guard left > 0, telling != .failures else { return }
    Terminal.error(
      "what has come so far, \(shortBytes(left)), is in \(escaped(spool.location))"
        + (spool.isBesideFiles ? ": `spoolrun get` alone in its directory goes on from there" : ""), .info)
  }

  private func close(_ ends: [GetEnd]) {
    var summary = RunSummary()
    summary.done = ends.count { $0.status == .success }
    summary.givenUp = ends.count { $0.status == .givenUp }
    summary.waiting = ends.count { $0.status == .waiting }
    summary.gained = gained.withLock { $0 }
    let times = ends.compactMap { if case .retrying(let next, _) = $0 { next } else { nil } }
    let waiting = times.min().map { Fields().with("jobs", times.count).with("next", $0) }
    let seconds = (Host.current.milliseconds() - began + 500) / 1000
    let closing = RunClosing(summary, seconds: seconds, isOnce: true, waiting: waiting, now: .now())
    if let line = closing.line(look) { Terminal.log("spoolrun: \(line.text)") }
  }
}

/// How one file of `spoolrun get` ended, as far as this command goes.
enum GetEnd: Equatable {
  case done
  case isThere
  case refused(String)
  case failed(JobStatus.Problem?)
  case retrying(at: Timestamp, JobStatus.Problem?)
  /// The person has stopped the command, and with it the transfer.
  case stopped
  /// The person has stopped the command, and a worker goes on with the job.
  case goesOn
  case paused
  case cancelled
  /// It is due, and the worker of this command could not run it.
  case left

  /// nil while there is something to wait for.
  /// - Parameter stays: whether the next attempt is waited for.
  init?(_ standing: JobStanding, stays: Bool) {
    switch standing {
    case .waiting, .running, .due: return nil
    case .retrying where stays: return nil
    case .absent: self = .cancelled
    case .retrying(let next, let problem): self = .retrying(at: next, problem)
    case .paused: self = .paused
    case .failed(let problem): self = .failed(problem)
    case .done: self = .done
    }
  }

  var status: ExitStatus {
    switch self {
    case .done, .isThere: .success
    case .refused, .failed, .cancelled: .givenUp
    case .retrying, .stopped, .goesOn, .paused, .left: .waiting
    }
  }

  /// One that failed is worse than one that waits.
  static func worst(_ ends: [GetEnd]) -> ExitStatus {
    ends.reduce(.success) { $1.status == .givenUp || $0 == .success ? $1.status : $0 }
  }

  /// Whether only another command can help.
  var isMistake: Bool { if case .failed = self { true } else { false } }

  /// Whether it failed at a server that has never answered.
  private var isUnreached: Bool {
    guard case .failed(let problem?) = self else { return false }
    return [FailureCode.resolve, .connect, .tls].contains { $0.rawValue == problem.code }
  }

  func line(_ look: Look) -> StyledLine {
    var line = StyledLine(look)
    let again = "the same command goes on where it stopped"
    func append(_ problem: JobStatus.Problem?, _ ink: Ink) {
      line.append(problem.map { "\(escaped($0.code)): \(escaped($0.reason))" } ?? "the attempt failed", ink)
    }
    switch self {
    case .done: line.append("done", .green)
    case .isThere: line.append("is there already, and is what its receipt says")
    case .refused(let reason): line.append(reason, .red)
    case .failed(let problem) where problem?.code == FailureCode.outputExists.rawValue:
      line.append("exists, and nothing shows that it is this file", .red)
      line.append(": remove it, or use --overwrite")
    case .failed(let problem):
      append(problem, .red)
      if isUnreached { line.append("; with --patience TIME it waits for the server") }
    case .retrying(_, let problem):
      append(problem, .yellow)
      // Data that does not match is set aside.
      let isMismatch = problem?.code.begins(with: "mismatch") ?? false
      line.append("; \(isMismatch ? "the same command fetches it again" : again)")
    case .stopped: line.append("stopped; \(again)")
    case .goesOn: line.append("a worker of the spool goes on with it; the same command follows it again")
    case .paused: line.append("somebody has paused its job; the same command releases it")
    case .cancelled: line.append("somebody has cancelled its job")
    case .left: line.append("could not be fetched now; \(again)", .yellow)
    }
    return line
  }

  /// What a person can do about a failure; nil if it may be enough to wait, or if ``line(_:)`` says it.
  var advice: String? {
    switch self {
    case .failed(let problem?) where problem.code != FailureCode.outputExists.rawValue:
      return Advice(for: problem.code).text + " The same command tries again."
    case .retrying(_, let problem?):
      let advice = Advice(for: problem.code)
      return advice.isUrgent ? advice.text : nil
    default: return nil
    }
  }
}
