internal import CLinux
internal import Glibc
package import Spool
internal import SystemPackage

/// A worker that runs until it is stopped.
extension Worker {
  /// Runs jobs as they are dropped and become due. Returns soon after `stopSignals` becomes readable, or after the
  /// spool's path leads to another spool, the ``successor``.
  /// - Throws: ``SpoolError`` that ends the worker.
  package func watch(stopSignals: Int32) async throws(SpoolError) -> RunSummary {
    admission.stays = true
    // Checked at the start, so that a missing libcurl is reported before the first job arrives.
    guard dispatcher.loadLibcurl() else { return account.summary }
    prepare()
    keepPresence()
    let watch = try SpoolWatch(spool)
    let links = WorkerLoop.executor.surroundings.watchNetwork()
    WorkerLoop.executor.watched = [watch.descriptor, links?.descriptor].compactMap(\.self)
    noteLimit(of: watch)
    log(Event("watching", .info))
    var outage = Outage()
    await run(stopSignals: stopSignals, survivesErrors: true) { () throws(SpoolError) in
      if self.successor != nil { return self.isBusy ? Self.tickInterval : nil }
      let now = LoopExecutor.milliseconds()
      if links?.hasNews() == true, WorkerLoop.executor.surroundings.hasAddress() { self.dispatcher.networkCame() }
      do throws(SpoolError) {
        try self.attend(watch, &outage, at: now)
      } catch {
        try self.endure(error, &outage, at: now)
      }
      if self.successor != nil { return 0 }
      let scheduler = self.dispatcher.scheduler
      if self.dispatcher.canGoOn { return 0 }
      if !scheduler.slots.areIdle { return self.untilNextTurn(Self.tickInterval) }
      if !scheduler.backlog.isEmpty || !scheduler.spaceWait.isEmpty {
        return min(2000, scheduler.slots.untilFree(at: now))
      }
      if !self.environment.servers.rests.isEmpty { return 2000 }
      self.rest()
      let beat = max(self.account.presence.untilBeat(at: now, in: spool), self.untilTick(at: now))
      return min(scheduler.untilPass(at: now), outage.nextLook - now, scheduler.untilDue(at: spool.now().seconds), beat)
    }
    // Jobs that wait in a spool that was replaced do not count for this run.
    if successor == nil { tellWaiting(stays: true, nil) }
    return account.summary
  }

  /// Looks where the spool's path leads if it is time, handles changes, and starts jobs.
  private func attend(_ watch: SpoolWatch, _ outage: inout Outage, at now: Int64) throws(SpoolError) {
    let news = watch.read()
    if news.needsScan || now >= outage.nextLook {
      let isInPlace = try lookForSuccessor()
      if successor != nil { return }
      outage.looked(at: now, isInPlace: isInPlace)
    }
    let looksAtAll = try look(watch, news, at: now)
    try dispatcher.turn()
    if looksAtAll, outage.ended() { log(Event("spool-back", .warning)) }
  }

  /// Waits where the spool may come back: inotify or the next look reports it.
  private func endure(_ error: SpoolError, _ outage: inout Outage, at now: Int64) throws(SpoolError) {
    let cause: Outage.Trouble =
      error.errno == .noSuchFileOrDirectory || spool.isLost(error)
      ? .gone : error.isOfLostMount(on: spool.kind) ? .doubtful : .other
    switch outage.failed(cause, at: now) {
    case .tell: log(Event("spool-missing", .error, Fields().with("reason", "\(error)")))
    case .wait: break
    case .end: throw error
    }
    dispatcher.abandonPasses()
  }

  /// Handles changes, or requests a pass over everything.
  /// - Returns: whether it requested a pass over everything.
  private func look(_ watch: SpoolWatch, _ news: SpoolWatch.News, at now: Int64) throws(SpoolError) -> Bool {
    let looksAtAll = try dispatcher.wantsToLookAround(at: now) || news.needsScan
    if looksAtAll || news.areDefaultsNew { readDefaults() }
    // Also before a pass: one of high priority among many others would be found late.
    try dispatcher.take(news)
    if looksAtAll {
      dispatcher.requestPeriodicPass()
      try watch.renew()
      noteLimit(of: watch)
    }
    dispatcher.lookForSpace()
    let scheduler = dispatcher.scheduler
    if scheduler.isDue(at: spool.now().seconds) || scheduler.wantsPass(at: now, isStale: false) {
      dispatcher.requestPass()
    }
    return looksAtAll
  }

  /// Where inotify reports too little, the worker looks around every few seconds instead, and says so once.
  private func noteLimit(of watch: SpoolWatch) {
    guard let limit = watch.limit, dispatcher.becomeBlind() else { return }
    let reason = "\(limit): the spool is read every few seconds instead; inotify(7) says how to raise the limits"
    log(Event("inotify-limit", .warning, Fields().with("reason", reason)))
  }

  /// Returns memory that only transfers need to the kernel, after a whole pass without a job.
  private func rest() {
    guard dispatcher.scheduler.isFresh, restedAfter != account.ended else { return }
    restedAfter = account.ended
    malloc_trim(0)
  }

  /// Stops this worker's jobs if the spool's path leads to another spool.
  /// - Returns: whether the path leads to this spool.
  private func lookForSuccessor() throws(SpoolError) -> Bool {
    if try spool.isInPlace() { return true }
    guard let next = try spool.reopened() else { return false }
    successor = next
    log(Event("spool-replaced", .warning))
    // The readable descriptors of the old spool would end each wait at once.
    WorkerLoop.executor.watched = signals.map { [$0.descriptor] } ?? []
    stopAttempts()
    return false
  }
}

/// How a worker that keeps running bears with errors of its spool: when it looks where the spool's path leads, what it
/// says, and when it gives up. Pure.
///
/// Times are milliseconds of the loop's clock.
struct Outage: Equatable {
  /// What an error means.
  enum Trouble {
    /// The spool's directories or their mount are gone. They may come back at any time.
    case gone
    /// The mount may have been gone for a moment: that was its answer, but now the spool can be read.
    case doubtful
    case other
  }

  enum Reaction: Equatable {
    /// Wait, and say so.
    case tell
    case wait
    case end
  }

  /// When the path is to be looked at again.
  private(set) var nextLook: Int64 = 0
  /// When the first error came; nil if the spool can be read.
  private var began: Int64?

  /// Between looks for a spool whose path does not exist.
  private static let interval: Int64 = 2000
  /// How long errors of doubtful cause may last: one that stays is of a file, and no wait would end.
  static let patience: Int64 = 60_000

  mutating func looked(at now: Int64, isInPlace: Bool) {
    nextLook = now + (isInPlace ? Scheduler.interval : Self.interval)
  }

  mutating func failed(_ cause: Trouble, at now: Int64) -> Reaction {
    if cause == .other || cause == .doubtful && now - (began ?? now) >= Self.patience { return .end }
    // Errors may come more often than that.
    if nextLook <= now || nextLook > now + Self.interval { nextLook = now + Self.interval }
    defer { began = began ?? now }
    return began == nil ? .tell : .wait
  }

  /// All directories could be read.
  /// - Returns: whether that is new.
  mutating func ended() -> Bool {
    defer { began = nil }
    return began != nil
  }
}
