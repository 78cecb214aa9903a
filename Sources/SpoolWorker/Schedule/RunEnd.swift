internal import Spool

/// At the end of a run, counts the jobs that still wait and logs why: for exit status 75.
@WorkerLoop
struct RunEnd {
  private let spool: Spool
  private let environment: JobEnvironment
  private let account: RunAccount
  private let scheduler: Scheduler
  /// What kept the remaining jobs from starting.
  var obstacle: Admission.Obstacle?
  /// The worker ran until it was stopped, and has reported a lack of space when it occurred.
  var stays = false
  /// The worker was told to stop, and has logged that.
  var isStopping = false

  init(_ spool: Spool, _ environment: JobEnvironment, _ account: RunAccount, _ scheduler: Scheduler) {
    self.spool = spool
    self.environment = environment
    self.account = account
    self.scheduler = scheduler
  }

  func tell() {
    guard account.summary.spoolError == nil, account.summary.obstacle == nil else { return }
    do throws(SpoolError) {
      let next = try account.recountWaiting(in: spool)
      let obstacle = try isAnyCandidateLeft() ? obstacle : nil
      let unsettled = stays ? 0 : try account.recountUnsettled(in: spool)
      account.summary.waiting = account.waiting.count + unsettled + (obstacle == nil ? 0 : 1)
      tell(obstacle, next: next, unsettled: unsettled)
    } catch {
      account.summary.spoolError = error
    }
  }

  /// Whether the jobs that could not start still exist. Jobs that wait for space are not in the backlog, but were seen
  /// a moment ago.
  private func isAnyCandidateLeft() throws(SpoolError) -> Bool {
    for candidate in scheduler.backlog.candidates {
      if try spool.status(candidate.origin, candidate.name) != nil { return true }
    }
    return scheduler.backlog.isEmpty
  }

  /// - Parameter unsettled: how many dropped files were left because they may still be written.
  private func tell(_ obstacle: Admission.Obstacle?, next: Timestamp?, unsettled: Int) {
    // Jobs that were parked for lack of space, or for a stop, are due at once.
    let isDue = next.map { $0 <= spool.now() } ?? false
    let kept = environment.space.kept
    var isForSpace = kept > 0 && isDue && !isStopping
    let waiting = account.waiting.count
    var fields = Fields().with("jobs", waiting > 0 ? waiting : nil).with("next", isDue ? nil : next)
    switch obstacle {
    case nil: break
    case .proxy: break
    case .gate(let reason): fields = fields.with("gate", reason)
    case .space: isForSpace = true
    case .output(let reason):
      isForSpace = false
      fields = fields.with("output-root", reason)
    }
    fields = fields.with("proxy", scheduler.slots.proxies.reason).with("unsettled", unsettled > 0 ? unsettled : nil)
    if isForSpace {
      fields = fields.with("needed", scheduler.spaceWait.least).with("free", spool.freeSpace()).with("min-free", kept)
    }
    let isNews = isShortageNews(isForSpace)
    if account.summary.waiting > 0, !isStopping {
      environment.log(Event("waiting", isNews ? .warning : .info, fields))
    }
  }

  /// Whether to warn about the lack of space: if the run had no other result, and no earlier run has warned.
  private func isShortageNews(_ isForSpace: Bool) -> Bool {
    guard !stays, environment.space.kept > 0 else { return false }
    if !isForSpace { ShortageMark(spool).remove() }
    return isForSpace && account.summary.done == 0 && account.summary.givenUp == 0 && ShortageMark(spool).leave()
  }
}
