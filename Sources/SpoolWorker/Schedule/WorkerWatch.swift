internal import CLinux
internal import Glibc
package import Spool
internal import SystemPackage

/// A worker that stays.
extension Worker {
  /// How often to look for a spool whose path leads nowhere.
  private static let missingInterval: Int64 = 2000

  /// Stays, runs what is dropped and what falls due; returns soon after `stopSignals` became readable, or the spool's
  /// path leads to another one, the ``successor``.
  /// - Throws: ``SpoolError`` where inotify is not to be had.
  package func watch(stopSignals: Int32) async throws(SpoolError) -> RunSummary {
    admission.stays = true
    // A worker that stays says at its start what it lacks, not when the first job comes.
    guard dispatcher.mayFetch() else { return account.summary }
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
      if links?.hasNews() == true, NetworkPresence.hasAddress() { self.dispatcher.networkCame() }
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
      try dispatcher.take(news)
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
}
