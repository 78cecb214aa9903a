package import Spool
internal import Transfer

/// A worker: runs the jobs of a spool that are due, several at once up to a limit. All its state that outlives it is in
/// the spool.
@WorkerLoop package final class Worker {
  let spool: Spool
  let environment: JobEnvironment
  let account = RunAccount()
  let admission: Admission
  let dispatcher: Dispatcher
  /// Stops the children that belong to no job: the gate's command, and the `failed` hook of a rejected file.
  private let childStop = ChildStop()
  private var defaults: LiveDefaults
  var signals: StopSignals?
  var isStopping = false
  private var stay = ServerStay()
  private var lastTick: Int64 = 0
  var restedAfter = 0
  /// The spool that has replaced this one, if ``watch(stopSignals:)`` has ended because of it.
  package internal(set) var successor: Spool?
  /// Called about five times a second while jobs run, once after the last one has ended, and each second while a worker
  /// that stays has nothing to do.
  package var onProgress: ((WorkerProgress) -> Void)?
  var progressReported: (at: Int64, isRunning: Bool) = (0, false)
  /// Milliseconds between checks of the running jobs. A person's move of a job has to take effect within a second.
  static let tickInterval: Int64 = 200

  /// - Parameter report: called for each event, on the loop's thread.
  /// - Throws: ``OutputRootProblem`` if the output root cannot be opened, or must not be published to.
  package init(_ spool: Spool, _ options: WorkerOptions, report: @escaping @Sendable (Event) -> Void)
    throws(OutputRootProblem)
  {
    self.spool = spool
    environment = try JobEnvironment(spool, options, log: report)
    defaults = LiveDefaults(spool: spool, environment: environment)
    admission = Admission(environment, childStop)
    dispatcher = Dispatcher(spool, environment, admission, account, childStop)
    environment.lookForStop = { [unowned self] in lookForStop() }
    environment.undurable = { [unowned self] in dispatcher.undurable }
  }

  // MARK: once

  /// Runs all jobs that are due or dropped meanwhile. Returns when none is left, or soon after `stopSignals` becomes
  /// readable.
  /// - Parameter stopSignals: a signalfd(2); negative for none.
  package func runOnce(stopSignals: Int32 = -1) async -> RunSummary {
    prepare()
    var obstacle: Admission.Obstacle?
    await run(stopSignals: stopSignals) { () throws(SpoolError) in
      let now = LoopExecutor.milliseconds()
      self.dispatcher.lookForSpace()
      let scheduler = self.dispatcher.scheduler
      let isStale = !scheduler.isFresh
      if try self.dispatcher.wantsToLookAround(at: now) || scheduler.wantsPass(at: now, isStale: isStale)
        || isStale && scheduler.onlyServersAreWantedFor(at: now, self.environment.servers.rests)
        || self.stay.isOn && scheduler.isDue(at: self.spool.now().seconds)
      {
        self.readDefaults()
        self.dispatcher.requestPeriodicPass()
      }
      try self.dispatcher.turn()
      if !self.isBusy, let found = self.obstacle {
        if case .servers = found, let wait = self.untilServersMayBeAsked() { return wait }
        obstacle = found
        return nil
      }
      if self.dispatcher.canGoOn { return 0 }
      // Only a pass that began after the last job's end can show that nothing is left.
      if !self.isBusy, self.dispatcher.scheduler.isSettled { return self.untilServersMayBeAsked() }
      return self.untilNextTurn(Self.tickInterval)
    }
    tellWaiting(obstacle)
    return account.summary
  }

  /// Milliseconds to the next turn of a run that has nothing to do until a server's rest ends; nil if it does not stay
  /// for that.
  private func untilServersMayBeAsked() -> Int64? {
    let (now, scheduler) = (LoopExecutor.milliseconds(), dispatcher.scheduler)
    var end = scheduler.hasNoCandidates ? nil : environment.servers.rests.firstEnd(at: now)
    if account.waiting.awaitOthers(than: environment.servers.rests.lasting), let due = scheduler.nextDue {
      let dueAt = now + (due - spool.now().seconds) * 1000
      end = min(end ?? dueAt, dueAt)
    }
    let wait = stay.wait(until: end, at: now, progress: account.summary.gained &+ UInt64(account.summary.done))
    return wait.map { min($0, Self.tickInterval) }
  }

  // MARK: turns

  /// - Parameter turn: finds and starts jobs. Returns the milliseconds to wait for the next event; nil at the end.
  func run(stopSignals: Int32, turn: () throws(SpoolError) -> Int64?) async {
    if stopSignals >= 0 {
      signals = StopSignals(stopSignals)
      WorkerLoop.executor.watched.append(stopSignals)
    }
    do throws(SpoolError) {
      try await takeTurns(turn)
    } catch {
      account.summary.spoolError = error
      stopAttempts()
    }
    WorkerLoop.executor.watched = []
    childStop.request()
    while true {
      let wait = tellServiceManager(successor == nil ? .stopping : .ready, most: Self.tickInterval)
      guard isBusy || admission.isAskingGate else { break }
      await WorkerLoop.pause(milliseconds: wait)
      tick()
    }
    account.presence.end()
  }

  private func takeTurns(_ turn: () throws(SpoolError) -> Int64?) async throws(SpoolError) {
    while true {
      lookForStop()
      let untilNews = tellServiceManager(isStopping ? .stopping : .ready, most: .max)
      // A job that failed by an error of the spool is left to the next pass.
      if admission.stays { account.summary.spoolError = nil }
      var wait: Int64? = isBusy ? Self.tickInterval : nil
      if !isStopping, account.summary.spoolError == nil {
        wait = try turn()
        if account.summary.obstacle != nil { return }
        if dispatcher.scheduler.isSlotWanted { admission.askGateIfDue() }
      }
      guard let wait else { return }
      reportProgress()
      await WorkerLoop.pause(milliseconds: max(0, min(wait, untilNews, untilReport, untilTurn)))
      tick()
    }
  }

  /// Milliseconds until the next check, which also gives the worker's sign of life.
  func untilTick(at now: Int64) -> Int64 { max(0, lastTick + Self.tickInterval - now) }

  /// Milliseconds until a request may go whose server has a pace.
  private var untilTurn: Int64 { environment.startedEngine?.untilTurn(at: LoopExecutor.milliseconds()) ?? .max }

  private func tick() {
    let now = LoopExecutor.milliseconds()
    environment.startedEngine?.letGo(at: now)
    guard untilTick(at: now) == 0 else { return }
    lastTick = now
    environment.shareRates()
    for attempt in dispatcher.attempts { attempt.tick() }
    dispatcher.measure()
    keepPresence()
  }

  var isBusy: Bool { dispatcher.scheduler.slots.areBusy }

  func untilNextTurn(_ most: Int64) -> Int64 {
    // While no job may start there is no search, and the time of the next search stays in the past.
    if admission.isAskingGate || obstacle != nil { return most }
    return dispatcher.scheduler.untilNextStep(at: LoopExecutor.milliseconds(), most: most)
  }

  /// Why jobs that exist do not start.
  var obstacle: Admission.Obstacle? {
    let scheduler = dispatcher.scheduler
    if scheduler.isFresh, scheduler.onlyServersAreWantedFor(at: LoopExecutor.milliseconds(), environment.servers.rests)
    {
      return .servers
    }
    if scheduler.hasNoCandidates { return scheduler.onlySpaceIsWantedFor ? .space : nil }
    return admission.obstacle
  }

  // MARK: stopping

  private func lookForStop() {
    guard signals?.arrived() == true, !isStopping else { return }
    isStopping = true
    successor = nil
    // The changes of the spool are no longer read. A readable descriptor would end each wait at once.
    WorkerLoop.executor.watched = []
    log(Event("stopping", .info))
    childStop.request()
    stopAttempts()
  }

  func stopAttempts() { for attempt in dispatcher.attempts { attempt.stop(.shutdown) } }

  func readDefaults() {
    // They may give jobs that wait another priority.
    if defaults.read() { dispatcher.requestPass() }
  }

  func log(_ event: Event) { environment.log(event) }
}

extension Worker {
  /// Says what is new, and gives a sign of life if it is time. To be called a few times a second while jobs run.
  func keepPresence() {
    let (presence, now) = (account.presence, LoopExecutor.milliseconds())
    guard presence.isDue(at: now), presence.say(report(), in: spool, at: now), let problem = presence.problem else {
      return
    }
    log(Event("no-presence", .info, Fields().with("reason", "\(problem)")))
  }

  private func report() -> WorkerReport {
    let options = environment.options
    var report = WorkerReport(started: account.began)
    report.program = options.userAgent
    report.mode = admission.stays ? "watch" : "once"
    report.options = Fields().with("jobs", options.jobs).with("per-host", options.perHost)
      .with("connections", options.connections).with("max-connections", options.maxConnections)
      .with("min-free", options.minFree > 0 ? options.minFree : nil).with("max-size", options.maxSize)
      .with("limit-rate", options.limitRate == nil ? nil : "yes").with("gate", options.gate == nil ? nil : "yes")
      .with("directory", options.directory.map { escaped($0) }).with("only", options.only?.count)
    report.runs = dispatcher.attempts.count
    report.waits = waits
    (report.claims, report.lost, report.missed) = account.claims
    return report
  }

  /// Why jobs that could run wait.
  var waits: [WorkerReport.Wait] {
    var waits: [WorkerReport.Wait] = []
    switch obstacle ?? (dispatcher.scheduler.backlog.isEmpty ? nil : admission.lastObstacle) {
    case nil: break
    case .gate(let reason): waits.append(.init("gate", reason))
    case .space:
      let free = spool.freeSpace().map { "\($0) bytes are free" } ?? "not enough is free"
      waits.append(.init("space", "\(free), --min-free keeps \(environment.space.kept)"))
    case .output(let reason): waits.append(.init("output", reason))
    case .servers:
      let rests = environment.servers.rests
      for (cause, reason) in [("proxy", rests.reason(ofProxies: true)), ("server", rests.reason(ofProxies: false))] {
        if let reason { waits.append(.init(cause, reason)) }
      }
    }
    let count = account.waiting.countForNetwork
    if count > 0 { waits.append(.init("network", "\(count) jobs wait for the network")) }
    return waits
  }
}

/// What this worker tells the service manager that has started it.
extension Worker {
  /// Tells what is new. To be called in each turn of the loop, so that a loop that hangs gives no sign of life.
  /// - Returns: `most`, or the milliseconds until something is due, if that is sooner.
  private func tellServiceManager(_ stage: ServiceNews.Stage, most: Int64) -> Int64 {
    guard let manager = environment.options.serviceManager else { return most }
    let now = LoopExecutor.milliseconds()
    if let problem = manager.tell(stage, stage == .stopping ? "stopping" : activity, at: now) {
      log(Event("no-service-manager", .warning, Fields().with("reason", problem)))
    }
    return min(most, manager.untilDue(at: now))
  }

  private var activity: String {
    let (progress, summary) = (progress(), account.summary)
    var parts = [
      "\(progress.running.count) running",
      "\(progress.moreWait && progress.waiting > 0 ? "at least " : "")\(progress.waiting) waiting",
    ]
    for (count, what) in [(summary.waiting, "to retry"), (summary.done, "done"), (summary.givenUp, "failed")]
    where count > 0 { parts.append("\(count) \(what)") }
    return parts.joined(separator: ", ")
  }
}

extension Worker {
  /// Milliseconds between two reports while nothing runs.
  private static let idleInterval: Int64 = 1000

  private func reportProgress() {
    let isRunning = !dispatcher.scheduler.slots.areIdle
    guard let onProgress, isRunning || progressReported.isRunning || admission.stays else { return }
    let now = LoopExecutor.milliseconds()
    let interval = isRunning ? 190 : Self.idleInterval
    if isRunning == progressReported.isRunning, now - progressReported.at < interval { return }
    progressReported = (now, isRunning)
    onProgress(progress())
  }

  /// Milliseconds until a worker that stays reports again that nothing runs.
  private var untilReport: Int64 {
    guard onProgress != nil, admission.stays, !progressReported.isRunning else { return .max }
    return progressReported.at + Self.idleInterval - LoopExecutor.milliseconds()
  }

  package func progress() -> WorkerProgress {
    let attempts = dispatcher.attempts
    let scheduler = dispatcher.scheduler
    // A pass also finds the claims of the jobs that run.
    let running = Set(attempts.map(\.name))
    let waiting = scheduler.candidates.count { candidate in
      candidate.origin != .cur || !(ClaimName(candidate.name).map { running.contains($0.job.fileName) } ?? false)
    }
    var summary = account.summary
    summary.waiting = account.waiting.count(besides: running)
    var progress = WorkerProgress(
      running: attempts.map(\.progress), waiting: waiting, summary: summary,
      gained: attempts.reduce(account.summary.gained) { $0 &+ $1.gained })
    progress.moreWait = scheduler.areMore
    if attempts.isEmpty {
      progress.waits = waits
      progress.untilNext = scheduler.nextDue.map { max(0, $0 - spool.now().seconds) }
    }
    return progress
  }
}

/// Reads the spool's `defaults` again while a worker runs. If they are wrong, those that were read before stay.
@WorkerLoop private struct LiveDefaults {
  let spool: Spool
  let environment: JobEnvironment
  /// What was wrong with them when they were last read, and has been reported.
  var problem: String?

  /// - Returns: whether they have changed.
  mutating func read() -> Bool {
    let current = environment.options.defaults
    var found: JobRequest
    var network: NetworkOptions?
    var warnings: [String] = []
    do {
      found = try spool.defaults()
      found.network = found.network.replaced(by: environment.options.networkKeys)
      if found.network != current.network { network = try found.networkOptions(of: spool) { warnings.append($0) } }
    } catch let error as SpoolError where spool.isLost(error) {
      // That is reported for the whole spool.
      return false
    } catch {
      let reason = "\(error)"
      if reason != problem { environment.log(Event("defaults-invalid", .error, Fields().with("reason", reason))) }
      problem = reason
      return false
    }
    let wasWrong = problem != nil
    problem = nil
    if found == current, !wasWrong { return false }
    environment.options.defaults = found
    if var network {
      network.authorities = environment.options.authorities ?? network.authorities
      environment.options.network = network
      environment.startedEngine?.use(network)
      environment.servers.networkChanged()
    }
    let facts = Fields().with("reason", warnings.isEmpty ? nil : warnings.joined(separator: "; "))
    environment.log(Event("defaults-read", wasWrong || !warnings.isEmpty ? .warning : .info, facts))
    return true
  }
}

extension Worker {
  /// At the end of a run, counts the jobs that still wait and logs why: for exit status 75.
  /// - Parameter obstacle: what kept the remaining jobs from starting.
  func tellWaiting(_ obstacle: Admission.Obstacle?) {
    guard account.summary.spoolError == nil, account.summary.obstacle == nil else { return }
    do throws(SpoolError) {
      let next = try account.waiting.recount(in: spool)
      let left = try isAnyCandidateLeft() ? obstacle : nil
      let unsettled = admission.stays ? 0 : try account.recountUnsettled(in: spool)
      account.summary.waiting = account.waiting.count + unsettled + (left == nil ? 0 : 1)
      tellWaiting(left, next: next, unsettled: unsettled)
    } catch {
      account.summary.spoolError = error
    }
  }

  /// Whether the jobs that could not start still exist. Jobs that wait for space are not in the backlog, but were seen
  /// a moment ago.
  private func isAnyCandidateLeft() throws(SpoolError) -> Bool {
    for job in dispatcher.scheduler.candidates where try spool.status(job.origin, job.name) != nil { return true }
    return dispatcher.scheduler.hasNoCandidates
  }

  /// - Parameter unsettled: how many dropped files were left because they may still be written.
  private func tellWaiting(_ obstacle: Admission.Obstacle?, next: Timestamp?, unsettled: Int) {
    // Jobs that were parked for lack of space, or for a stop, are due at once.
    let isDue = next.map { $0 <= spool.now() } ?? false
    let kept = environment.space.kept
    var isForSpace = kept > 0 && isDue && !isStopping
    let waiting = account.waiting.count
    var fields = Fields().with("jobs", waiting > 0 ? waiting : nil).with("next", isDue ? nil : next)
    switch obstacle {
    case nil: break
    case .servers: fields = fields.with("server", environment.servers.rests.reason(ofProxies: false))
    case .gate(let reason): fields = fields.with("gate", reason)
    case .space: isForSpace = true
    case .output(let reason):
      isForSpace = false
      fields = fields.with("output-root", reason)
    }
    fields = fields.with("proxy", environment.servers.rests.reason(ofProxies: true))
      .with("unsettled", unsettled > 0 ? unsettled : nil)
    if isForSpace {
      let needed = dispatcher.scheduler.spaceWait.least
      fields = fields.with("needed", needed).with("free", spool.freeSpace()).with("min-free", kept)
    }
    let isNews = isShortageNews(isForSpace)
    if account.summary.waiting > 0, !isStopping { log(Event("waiting", isNews ? .warning : .info, fields)) }
  }

  /// Whether to warn about the lack of space: if the run had no other result, and no earlier run has warned.
  private func isShortageNews(_ isForSpace: Bool) -> Bool {
    // A worker that stays has reported it when it occurred.
    guard !admission.stays, environment.space.kept > 0 else { return false }
    if !isForSpace { ShortageMark(spool).remove() }
    return isForSpace && account.summary.done == 0 && account.summary.givenUp == 0 && ShortageMark(spool).leave()
  }
}

extension Worker {
  /// Says what the spool's file system can do, makes `urgent/` if an older version left the spool without it, and
  /// removes files that no job needs and that have not changed for 36 hours. Errors are only logged, because the worker
  /// does not depend on this.
  func prepare() {
    let log = environment.log
    if let fileSystem = environment.options.fileSystem {
      let limits = fileSystem.limits.isEmpty ? nil : fileSystem.limits.joined(separator: "; ")
      let facts = Fields().with("type", fileSystem.type).with("fitness", limits == nil ? "fit" : "fit with limits")
      log(Event("file-system", .info, facts.with("limits", limits)))
    }
    do throws(SpoolError) { try spool.provide(Path(.urgent)) } catch {
      log(Event("urgent-missing", .warning, Fields().with("reason", "\(error)")))
    }
    let cleanup = Cleanup(spool) { finding in
      if let obstacle = finding.obstacle {
        return log(Event("sweep-failed", .warning, Fields().with("reason", "\(obstacle)")))
      }
      let facts = Fields().with("file", finding.place).with("kind", finding.kind.rawValue)
      log(Event("swept", .info, facts.with("bytes", UInt64(finding.bytes))))
    }
    do throws(SpoolError) {
      try cleanup.run()
      try ServerFiles(spool).sweep()
    } catch {
      log(Event("sweep-failed", .warning, Fields().with("reason", "\(error)")))
    }
  }
}

/// Loads libcurl on another thread while a worker starts, which takes as long as all else before the first request.
/// Only if there seems to be work: most runs from cron find nothing to do.
package struct LibcurlAhead {
  private let hasBegun: Bool
  /// Names to look at in each directory: a job that is not due says nothing of those behind it.
  private static let most = 16

  /// Begins if a job seems to be due.
  package init(for spool: Spool) {
    hasBegun = Self.seemsNeeded(in: spool)
    if hasBegun { BlockingThread.run { Self.start() } }
  }

  /// Waits for the thread. To be called before the process exits: libraries that are being set up must not be torn down
  /// at the same time.
  package func finish() { if hasBegun { Self.start() } }

  /// Whoever needs libcurl finds what is wrong with it.
  private static func start() { _ = Result { () throws(TransferError) in try Libcurl.start() } }

  /// Not in `cur/`: another worker may be running what is there. What cannot be read, the worker's own look reports.
  private static func seemsNeeded(in spool: Spool) -> Bool {
    [Directory.partial, .new, .urgent].contains { (try? hasDueJob(in: $0, of: spool)) == true }
  }

  private static func hasDueJob(in directory: Directory, of spool: Spool) throws(SpoolError) -> Bool {
    var reader = SpoolReader(spool)
    try reader.begin(directory)
    let now = spool.now()
    for _ in 0..<most {
      guard let name = try reader.next(directory) else { return false }
      if case .candidate = try reader.look(directory, name, at: now) { return true }
    }
    return false
  }
}
