internal import CLinux
internal import Glibc
package import Spool
internal import SystemPackage
internal import Transfer

/// A worker: scans the spool, claims what is due, runs each job's way, many at once under a limit. It keeps no state that is not in the spool.
@WorkerLoop
package final class Worker {
  let options: WorkerOptions
  let spool: Spool
  let outputRoot: OutputRoot
  private let report: @Sendable (Event) -> Void
  private var running: [UInt64: JobRun] = [:]
  private var runningByHost: [String: Int] = [:]
  private var backlog = Backlog()
  private var nextID: UInt64 = 1
  private var summary = RunSummary()
  private var isStopping = false
  private(set) var engineIfRunning: TransferEngine?

  /// - Parameter report: called for each event, on the loop's thread.
  /// - Throws: ``SpoolError`` where the output root cannot be opened.
  package init(_ spool: Spool, _ options: WorkerOptions, report: @escaping @Sendable (Event) -> Void) throws(SpoolError) {
    self.spool = spool
    self.options = options
    self.report = report
    outputRoot = try OutputRoot(options.directory, spool: spool)
  }

  /// Runs all that is due, and what is dropped meanwhile; returns when nothing is left, or soon after `stopSignals` became readable.
  /// - Parameter stopSignals: a signalfd(2); negative for none.
  package func runOnce(stopSignals: Int32 = -1) async -> RunSummary {
    if stopSignals >= 0 { WorkerLoop.executor.watched = [stopSignals] }
    var isFresh = false
    do throws(SpoolError) {
      while true {
        if stopSignals >= 0, hasSignal(stopSignals) { beginStop() }
        if !isStopping, summary.spoolError == nil {
          if backlog.isEmpty, !isFresh {
            backlog = Backlog(try scan())
            // Only a scan that came after the last job's end may say that nothing is left.
            isFresh = true
          }
          try fill()
        }
        if running.isEmpty, isStopping || summary.spoolError != nil || (backlog.isEmpty && isFresh) { break }
        let before = running.count
        await WorkerLoop.pause(milliseconds: 200)
        if running.count < before { isFresh = false }
        for run in running.values { run.tick() }
      }
    } catch {
      summary.spoolError = error
      for run in running.values { run.stop(.shutdown) }
      while !running.isEmpty { await WorkerLoop.pause(milliseconds: 200) }
    }
    return summary
  }

  private func hasSignal(_ descriptor: Int32) -> Bool {
    var info = signalfd_siginfo()
    return read(descriptor, &info, MemoryLayout<signalfd_siginfo>.size) > 0
  }

  private func beginStop() {
    if isStopping { return }
    isStopping = true
    log(Event("stopping", .info))
    for run in running.values { run.stop(.shutdown) }
  }

  // MARK: scan

  /// All jobs that could be run now: dead workers' claims, what waits in `new/`, what is due in `partial/`.
  private func scan() throws(SpoolError) -> [Backlog.Candidate] {
    var candidates: [Backlog.Candidate] = []
    func add(_ directory: Directory, _ isWanted: (FileName, FileStatus) -> Bool) throws(SpoolError) {
      for name in try spool.list(directory) {
        guard let status = try spool.status(directory, name), isWanted(name, status) else { continue }
        candidates.append(Backlog.Candidate(name: name, origin: directory, modified: status.modified))
      }
    }
    let now = Timestamp.now().seconds
    let dataSuffix = Array(".part".utf8)
    try add(.cur) { _, _ in true }
    try add(.partial) { name, status in name.bytes.suffix(5) != dataSuffix[...] && status.modified <= now }
    try add(.new) { _, _ in true }
    return candidates
  }

  /// Starts candidates while there is room.
  private func fill() throws(SpoolError) {
    while running.count < options.jobs {
      let next = backlog.next(perHost: options.perHost, running: runningByHost) { host(of: $0) }
      guard let (candidate, host) = next else { return }
      switch try spool.claim(candidate.name, from: candidate.origin, now: clock(for: candidate)) {
      case .claimed(let claim): start(claim, host: host)
      case .lost: break
      case .unfinished: log(Event("unfinished", .debug, job: candidate.name))
      case .rejected(let name, let defect):
        summary.givenUp += 1
        log(
          Event(
            "rejected", .error, job: name,
            Fields().with("code", FailureCode.malformed.rawValue).with("line", defect.line).with("reason", defect.reason)))
      }
    }
  }

  /// Only the age of another host's claim, and of a file that may still be written, is a matter of the file system's own clock.
  private func clock(for candidate: Backlog.Candidate) throws(SpoolError) -> Timestamp {
    let now = Timestamp.now()
    if candidate.origin == .partial { return now }
    if candidate.origin == .cur, let claim = ClaimName(candidate.name), claim.host == spool.owner.host { return now }
    // Old by any clock that is not hours off: not worth a file.
    if candidate.origin == .new, candidate.modified + 86_400 < now.seconds { return now }
    if let cached = fileSystemClock, LoopExecutor.milliseconds() - cached.at < 1000 { return cached.time }
    let time = try spool.fileSystemTime()
    fileSystemClock = (time, LoopExecutor.milliseconds())
    return time
  }
  private var fileSystemClock: (time: Timestamp, at: Int64)?

  /// The host that a candidate would be fetched from; nil when its text does not say.
  private func host(of candidate: Backlog.Candidate) -> String? {
    // A job that cannot be read, or names no URL, is for the claim to judge; it needs no room on any host.
    guard let text = try? spool.job(candidate.origin, candidate.name), let url = text.request.urls.first,
      let parts = try? URLParts(url.text)
    else { return nil }
    return "\(parts.scheme)://\(parts.host):\(parts.port)"
  }

  private func start(_ claim: Claim, host: String) {
    let id = nextID
    nextID += 1
    let run = JobRun(claim, host: host, worker: self, id: id)
    running[id] = run
    runningByHost[host, default: 0] += 1
    Task { @WorkerLoop in
      let outcome = await run.run()
      self.ended(id, host, outcome)
    }
  }

  private func ended(_ id: UInt64, _ host: String, _ outcome: JobRun.Outcome) {
    running[id] = nil
    let left = (runningByHost[host] ?? 1) - 1
    runningByHost[host] = left > 0 ? left : nil
    switch outcome {
    case .done: summary.done += 1
    case .waiting: summary.waiting += 1
    case .givenUp: summary.givenUp += 1
    case .cancelled: summary.cancelled += 1
    case .moved: break
    }
    WorkerLoop.wakeUp()
  }

  // MARK: for the jobs

  func engine() throws(TransferError) -> TransferEngine {
    if let engineIfRunning { return engineIfRunning }
    let engine = try TransferEngine(
      TransferEngine.Options(protocols: options.protocols, caFile: options.caFile, userAgent: options.userAgent))
    engineIfRunning = engine
    WorkerLoop.executor.driver = EngineDriver(engine)
    return engine
  }

  func log(_ event: Event) { report(event) }

  /// A failed attempt, as one line for people.
  func failed(_ job: FileName, _ record: FailureRecord) {
    log(Event("failed", record.retry == nil ? .error : .warning, job: job, record.fields))
  }

  /// The spool itself failed under a job: it stays as it is, for the next run to take over, and this run ends.
  func broke(_ error: any Error, job: FileName) {
    let spoolError = error as? SpoolError ?? SpoolError(call: .write, path: job.display, errno: .ioError)
    summary.spoolError = summary.spoolError ?? spoolError
    log(Event("broken", .error, job: job, Fields().with("reason", "\(spoolError)")))
  }
}

/// Lets libcurl do the waiting.
private final class EngineDriver: LoopDriver {
  private let engine: TransferEngine
  init(_ engine: TransferEngine) { self.engine = engine }
  func wait(milliseconds: Int32, descriptors: [Int32]) {
    engine.poll(milliseconds: milliseconds, descriptors: descriptors)
  }
}
