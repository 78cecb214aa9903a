internal import CLinux
internal import Glibc
package import Spool
internal import SystemPackage

/// A worker that runs until it is stopped.
extension Worker {
  /// Milliseconds between checks for a spool whose path does not exist.
  private static let missingInterval: Int64 = 2000

  /// Runs jobs as they are dropped and become due. Returns soon after `stopSignals` becomes readable, or after the
  /// spool's path leads to another spool, the ``successor``.
  /// - Throws: ``SpoolError`` if inotify is not available.
  package func watch(stopSignals: Int32) async throws(SpoolError) -> RunSummary {
    admission.stays = true
    // Checked at the start, so that a missing libcurl is reported before the first job arrives.
    guard dispatcher.loadLibcurl() else { return account.summary }
    prepare()
    keepPresence()
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
      if links?.hasNews() == true, NetworkPresence.hasAddress() { self.dispatcher.networkCame() }
      do throws(SpoolError) {
        let looksAtAll = try self.look(watch, news, at: now)
        try self.dispatcher.turn()
        if isMissing, looksAtAll {
          self.log(Event("spool-back", .warning))
          isMissing = false
        }
      } catch  where error.errno == .noSuchFileOrDirectory || self.spool.isLost(error) {
        // The directories were removed, or their mount is gone. If they come back, inotify or the next look reports it.
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
      let beat = self.account.presence.untilBeat(at: now, in: spool)
      return min(scheduler.untilPass(at: now), nextLook - now, scheduler.untilDue(at: spool.now().seconds), beat)
    }
    // Jobs that wait in a spool that was replaced do not count for this run.
    if successor == nil { tellWaiting(stays: true, nil) }
    return account.summary
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
    }
    dispatcher.lookForSpace()
    let scheduler = dispatcher.scheduler
    if scheduler.isDue(at: spool.now().seconds) || scheduler.wantsPass(at: now, isStale: false) {
      dispatcher.requestPass()
    }
    return looksAtAll
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
