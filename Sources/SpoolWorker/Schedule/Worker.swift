package import Spool

/// A worker: runs the jobs of a spool that are due, several at once up to a limit. All its state that outlives it is in
/// the spool.
@WorkerLoop
package final class Worker {
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
    defaults = LiveDefaults(spool, environment)
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
    await run(stopSignals: stopSignals, survivesErrors: false) { () throws(SpoolError) in
      let now = LoopExecutor.milliseconds()
      self.dispatcher.lookForSpace()
      let scheduler = self.dispatcher.scheduler
      let isStale = !scheduler.isFresh
      if try self.dispatcher.wantsToLookAround(at: now) || scheduler.wantsPass(at: now, isStale: isStale)
        || isStale && scheduler.proxyObstacle(at: now) != nil
      {
        self.readDefaults()
        self.dispatcher.requestPeriodicPass()
      }
      try self.dispatcher.turn()
      if !self.isBusy, let found = self.obstacle {
        obstacle = found
        return nil
      }
      if self.dispatcher.canGoOn { return 0 }
      // Only a pass that began after the last job's end can show that nothing is left.
      return !self.isBusy && self.dispatcher.scheduler.isSettled ? nil : self.untilNextTurn(Self.tickInterval)
    }
    tellWaiting(stays: false, obstacle)
    return account.summary
  }

  // MARK: turns

  /// - Parameters:
  ///   - survivesErrors: whether the run continues after an error of the spool, and leaves the job to the next pass.
  ///   - turn: finds and starts jobs. Returns the milliseconds to wait for the next event; nil when all is done.
  func run(stopSignals: Int32, survivesErrors: Bool, turn: () throws(SpoolError) -> Int64?) async {
    if stopSignals >= 0 {
      signals = StopSignals(stopSignals)
      WorkerLoop.executor.watched.append(stopSignals)
    }
    do throws(SpoolError) {
      try await takeTurns(survivesErrors: survivesErrors, turn)
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

  private func takeTurns(survivesErrors: Bool, _ turn: () throws(SpoolError) -> Int64?) async throws(SpoolError) {
    while true {
      lookForStop()
      let untilNews = tellServiceManager(isStopping ? .stopping : .ready, most: .max)
      if survivesErrors { account.summary.spoolError = nil }
      var wait: Int64? = isBusy ? Self.tickInterval : nil
      if !isStopping, account.summary.spoolError == nil {
        wait = try turn()
        if account.summary.obstacle != nil { return }
        if dispatcher.scheduler.isSlotWanted { admission.askGateIfDue() }
      }
      guard let wait else { return }
      reportProgress()
      await WorkerLoop.pause(milliseconds: max(0, min(wait, untilNews, untilReport)))
      tick()
    }
  }

  /// Milliseconds until the next check, which also gives the worker's sign of life.
  func untilTick(at now: Int64) -> Int64 { max(0, lastTick + Self.tickInterval - now) }

  private func tick() {
    let now = LoopExecutor.milliseconds()
    guard untilTick(at: now) == 0 else { return }
    lastTick = now
    environment.shareRates()
    for attempt in dispatcher.attempts { attempt.tick() }
    keepPresence()
  }

  /// Whether the end of the run has to wait for a job or a hook.
  var isBusy: Bool { dispatcher.scheduler.slots.areBusy }

  func untilNextTurn(_ most: Int64) -> Int64 {
    // While no job may start there is no search, and the time of the next search stays in the past.
    if admission.isAskingGate || obstacle != nil { return most }
    return dispatcher.scheduler.untilNextStep(at: LoopExecutor.milliseconds(), most: most)
  }

  /// Why jobs that exist do not start.
  var obstacle: Admission.Obstacle? {
    let scheduler = dispatcher.scheduler
    if scheduler.isFresh, let reason = scheduler.proxyObstacle(at: LoopExecutor.milliseconds()) {
      return .proxy(reason)
    }
    if scheduler.backlog.isEmpty { return scheduler.onlySpaceIsWantedFor ? .space : nil }
    return admission.obstacle
  }

  // MARK: stopping

  /// Checks whether the worker was told to stop.
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

  func stopAttempts() {
    for attempt in dispatcher.attempts { attempt.stop(.shutdown) }
  }

  func prepare() { StartSweep(spool, environment.options.fileSystem, log: environment.log).run() }

  /// Reads `defaults` again.
  func readDefaults() {
    switch defaults.read() {
    case .unchanged: break
    // They may give jobs that wait another priority.
    case .changed: dispatcher.requestPass()
    case .changedNetwork:
      dispatcher.networkCame()
      dispatcher.requestPass()
    }
  }

  func tellWaiting(stays: Bool, _ obstacle: Admission.Obstacle?) {
    var end = RunEnd(spool, environment, account, dispatcher.scheduler)
    (end.stays, end.isStopping, end.obstacle) = (stays, isStopping, obstacle)
    end.tell()
  }

  func log(_ event: Event) { environment.log(event) }
}
