internal import CLinux
internal import Glibc
package import Spool
internal import SystemPackage

/// A worker: runs the jobs of a spool that are due, many at once under a limit. It keeps no state that is not in the
/// spool.
@WorkerLoop
package final class Worker {
  private let spool: Spool
  private let environment: JobEnvironment
  private let account = RunAccount()
  private let admission: Admission
  private let dispatcher: Dispatcher
  /// Ends what runs for no job: the gate's command, and a hook that is told of what was no job.
  private let childStop = ChildStop()
  private var signals: StopSignals?
  private var isStopping = false
  private var lastTick: Int64 = 0
  private var restedAfter = 0
  /// The spool that has taken this one's place, once ``watch(stopSignals:)`` has ended for it.
  package private(set) var successor: Spool?
  /// Called about five times a second while jobs run, and once when none does any more.
  package var onProgress: ((WorkerProgress) -> Void)?
  private var progressReported: (at: Int64, isRunning: Bool) = (0, false)
  /// How often running jobs are looked after, in milliseconds: a gesture has to be seen within a second.
  private static let tickInterval: Int64 = 200
  /// How often to look for a spool whose path leads nowhere.
  private static let missingInterval: Int64 = 2000

  /// - Parameter report: called for each event, on the loop's thread.
  /// - Throws: ``OutputRootProblem`` where the output root cannot be opened, or is none to publish to.
  package init(_ spool: Spool, _ options: WorkerOptions, report: @escaping @Sendable (Event) -> Void)
    throws(OutputRootProblem)
  {
    self.spool = spool
    environment = try JobEnvironment(spool, options, log: report)
    admission = Admission(environment, childStop)
    dispatcher = Dispatcher(spool, environment, admission, account, childStop)
    environment.lookForStop = { [unowned self] in lookForStop() }
    environment.undurable = { [unowned self] in dispatcher.attempts.reduce(0) { $0 &+ $1.undurable } }
  }

  // MARK: once

  /// Runs all that is due, and what is dropped meanwhile; returns when nothing is left, or soon after `stopSignals`
  /// became readable.
  /// - Parameter stopSignals: a signalfd(2); negative for none.
  package func runOnce(stopSignals: Int32 = -1) async -> RunSummary {
    sweep()
    var obstacle: Admission.Obstacle?
    await run(stopSignals: stopSignals, survivesErrors: false) { () throws(SpoolError) in
      let now = LoopExecutor.milliseconds()
      self.dispatcher.lookForSpace()
      let scheduler = self.dispatcher.scheduler
      if scheduler.isPassDue(at: now) || scheduler.wantsPass(at: now, isStale: !scheduler.isFresh) {
        self.dispatcher.requestPeriodicPass()
      }
      try self.dispatcher.turn()
      if !self.isBusy, let found = self.obstacle {
        obstacle = found
        return nil
      }
      if self.dispatcher.scheduler.canReadOn { return 0 }
      // Only a pass that began after the last job's end may say that nothing is left.
      return !self.isBusy && self.dispatcher.scheduler.isSettled ? nil : self.untilNextTurn(200)
    }
    tellWaiting(stays: false, obstacle)
    return account.summary
  }

  // MARK: watching

  /// Stays, runs what is dropped and what falls due; returns soon after `stopSignals` became readable, or the spool's
  /// path leads to another one, the ``successor``.
  /// - Throws: ``SpoolError`` where inotify is not to be had.
  package func watch(stopSignals: Int32) async throws(SpoolError) -> RunSummary {
    admission.stays = true
    // A worker that stays says at its start what it lacks, not when the first job comes.
    guard mayFetch() else { return account.summary }
    sweep()
    let watch = try SpoolWatch(spool)
    let links = NetworkWatch()
    WorkerLoop.executor.watched = [watch.descriptor] + (links.map { [$0.descriptor] } ?? [])
    var nextLook: Int64 = 0
    var isMissing = false
    await run(stopSignals: stopSignals, survivesErrors: true) { () throws(SpoolError) in
      if self.successor != nil { return self.isBusy ? Self.tickInterval : nil }
      let now = LoopExecutor.milliseconds()
      let news = watch.read()
      if news.needsScan || now >= nextLook {
        let isInPlace = try self.lookForSuccessor()
        if self.successor != nil { return 0 }
        nextLook = now + (isInPlace ? Scheduler.interval : Self.missingInterval)
      }
      if links?.hasNews() == true { self.dispatcher.retryAfterNetworkChange() }
      do throws(SpoolError) {
        let looksAtAll = try self.look(watch, news, at: now)
        try self.dispatcher.turn()
        if isMissing, looksAtAll {
          self.log(Event("spool-back", .warning))
          isMissing = false
        }
      } catch  where error.errno == .noSuchFileOrDirectory {
        // Its directories were removed: perhaps they come back, which inotify tells of, or the next pass.
        if !isMissing { self.log(Event("spool-missing", .error, Fields().with("reason", "\(error)"))) }
        isMissing = true
        self.dispatcher.abandonPasses()
        nextLook = now + Self.missingInterval
      }
      let scheduler = self.dispatcher.scheduler
      if scheduler.canReadOn { return 0 }
      if !scheduler.slots.areIdle { return self.untilNextTurn(Self.tickInterval) }
      if !scheduler.backlog.isEmpty || !scheduler.spaceWait.isEmpty { return 2000 }
      self.rest()
      return min(scheduler.untilPass(at: now), nextLook - now, scheduler.untilDue(at: Timestamp.now().seconds))
    }
    // What waits in a spool that is gone or moved away is none of this run's.
    if successor == nil { tellWaiting(stays: true, nil) }
    return account.summary
  }

  /// Takes in what is new, or requests a pass over all.
  /// - Returns: whether it is a pass over all.
  private func look(_ watch: SpoolWatch, _ news: SpoolWatch.News, at now: Int64) throws(SpoolError) -> Bool {
    let looksAtAll = news.needsScan || dispatcher.scheduler.isPassDue(at: now)
    if looksAtAll {
      dispatcher.requestPeriodicPass()
      try watch.renew()
    } else {
      try dispatcher.take(news.changes)
    }
    dispatcher.lookForSpace()
    let scheduler = dispatcher.scheduler
    if scheduler.isDue(at: Timestamp.now().seconds) || scheduler.wantsPass(at: now, isStale: false) {
      dispatcher.requestPass()
    }
    return looksAtAll
  }

  /// Gives back the memory that only transfers need, once a whole pass has gone by without one.
  private func rest() {
    guard dispatcher.scheduler.isFresh, restedAfter != account.ended else { return }
    restedAfter = account.ended
    malloc_trim(0)
  }

  /// Ends this worker's jobs where the spool's path leads to another spool.
  /// - Returns: whether it leads to this one.
  private func lookForSuccessor() throws(SpoolError) -> Bool {
    if try spool.isInPlace() { return true }
    guard let next = try spool.reopened() else { return false }
    successor = next
    log(Event("spool-replaced", .warning))
    // What is readable of the old one would end each wait at once.
    WorkerLoop.executor.watched = signals.map { [$0.descriptor] } ?? []
    stopAttempts()
    return false
  }

  // MARK: turns

  /// - Parameters:
  ///   - survivesErrors: whether a job that the spool failed under is left to the next pass, and the run goes on.
  ///   - turn: looks for work and starts it; gives the milliseconds to wait for something to happen, nil when all is done.
  private func run(stopSignals: Int32, survivesErrors: Bool, turn: () throws(SpoolError) -> Int64?) async {
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
    while isBusy || admission.isAskingGate {
      await WorkerLoop.pause(milliseconds: Self.tickInterval)
      tick()
    }
  }

  private func takeTurns(survivesErrors: Bool, _ turn: () throws(SpoolError) -> Int64?) async throws(SpoolError) {
    while true {
      lookForStop()
      if survivesErrors { account.summary.spoolError = nil }
      var wait: Int64? = isBusy ? Self.tickInterval : nil
      if !isStopping, account.summary.spoolError == nil {
        wait = try turn()
        if account.summary.obstacle != nil { return }
        let scheduler = dispatcher.scheduler
        if !scheduler.backlog.isEmpty, scheduler.slots.areFree { admission.askGateIfDue() }
      }
      guard let wait else { return }
      reportProgress()
      await WorkerLoop.pause(milliseconds: max(0, wait))
      tick()
    }
  }

  private func tick() {
    let now = LoopExecutor.milliseconds()
    guard now - lastTick >= Self.tickInterval else { return }
    lastTick = now
    for attempt in dispatcher.attempts { attempt.tick() }
  }

  /// Something is under way that the end of a run waits for.
  private var isBusy: Bool { dispatcher.scheduler.slots.areBusy }

  private func untilNextTurn(_ most: Int64) -> Int64 {
    // While nothing may start nothing is searched for, and the time of the next search stays in the past.
    if admission.isAskingGate || obstacle != nil { return most }
    return dispatcher.scheduler.untilNextStep(at: LoopExecutor.milliseconds(), most: most)
  }

  /// What keeps work that there is from starting.
  private var obstacle: Admission.Obstacle? {
    let scheduler = dispatcher.scheduler
    if scheduler.backlog.isEmpty { return scheduler.onlySpaceIsWantedFor ? .space : nil }
    return admission.obstacle
  }

  // MARK: stopping

  /// Looks whether the worker was told to stop.
  private func lookForStop() {
    guard signals?.arrived() == true, !isStopping else { return }
    isStopping = true
    successor = nil
    // Nobody reads what is seen of the spool any more, and what is readable would end each wait at once.
    WorkerLoop.executor.watched = []
    log(Event("stopping", .info))
    childStop.request()
    stopAttempts()
  }

  private func stopAttempts() {
    for attempt in dispatcher.attempts { attempt.stop(.shutdown) }
  }

  private func mayFetch() -> Bool {
    do {
      try admission.loadLibcurl()
      return true
    } catch {
      account.summary.obstacle = "\(error)"
      return false
    }
  }

  private func sweep() { StartSweep(spool, log: environment.log).run() }

  private func tellWaiting(stays: Bool, _ obstacle: Admission.Obstacle?) {
    var end = RunEnd(spool, environment, account, dispatcher.scheduler)
    (end.stays, end.isStopping, end.obstacle) = (stays, isStopping, obstacle)
    end.tell()
  }

  private func log(_ event: Event) { environment.log(event) }

  // MARK: progress

  private func reportProgress() {
    let isRunning = !dispatcher.scheduler.slots.areIdle
    guard let onProgress, isRunning || progressReported.isRunning else { return }
    let now = LoopExecutor.milliseconds()
    if isRunning, progressReported.isRunning, now - progressReported.at < 190 { return }
    progressReported = (now, isRunning)
    onProgress(progress())
  }

  package func progress() -> WorkerProgress {
    let attempts = dispatcher.attempts
    let scheduler = dispatcher.scheduler
    var progress = WorkerProgress(
      running: attempts.map(\.progress), waiting: scheduler.backlog.count, summary: account.summary,
      gained: attempts.reduce(account.gained) { $0 &+ $1.gained })
    progress.moreWait = scheduler.areMore
    return progress
  }
}
