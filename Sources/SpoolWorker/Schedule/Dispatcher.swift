internal import Spool

/// Performs what the ``Scheduler`` decides: has the spool read and jobs claimed, starts their attempts, and tells it how
/// they end.
@WorkerLoop
final class Dispatcher {
  private struct Running {
    let attempt: Attempt
    /// The job's name when it was claimed.
    let firstName: FileName
    /// Another job of its name was dropped, whose turn comes when this one has ended.
    var isDroppedAnew = false
  }

  private let spool: Spool
  private let environment: JobEnvironment
  private let admission: Admission
  private let account: RunAccount
  /// Ends a hook that is told of what was no job.
  private let childStop: ChildStop
  private(set) var scheduler: Scheduler
  private var lookout: Lookout
  private var claimer: Claimer
  private var running: [UInt64: Running] = [:]
  private var nextID: UInt64 = 1

  init(
    _ spool: Spool, _ environment: JobEnvironment, _ admission: Admission, _ account: RunAccount,
    _ childStop: ChildStop
  ) {
    self.spool = spool
    self.environment = environment
    self.admission = admission
    self.account = account
    self.childStop = childStop
    scheduler = Scheduler(environment.options.limits)
    lookout = Lookout(spool, environment)
    claimer = Claimer(spool, environment, account)
  }

  /// The running attempts, in the order in which they began.
  var attempts: [Attempt] { running.sorted { $0.key < $1.key }.map(\.value.attempt) }

  // MARK: what to look at

  func requestPass() { scheduler.requestPass() }
  func requestPeriodicPass() { scheduler.requestPeriodicPass(at: LoopExecutor.milliseconds()) }

  /// The spool's directories are gone.
  func abandonPasses() { lookout.abandon(&scheduler) }

  /// Takes in what inotify told of.
  func take(_ news: SpoolWatch.News) throws(SpoolError) { try lookout.take(news.changes, &scheduler) }

  /// Requests a pass where one of the jobs that wait for space fits by now.
  func lookForSpace() {
    guard let least = scheduler.spaceWait.least, environment.space.shortage(of: least) == nil else { return }
    scheduler.spaceCame()
  }

  /// Jobs that failed on this machine's way to the network are tried as soon as there is one, not when their time has come.
  func networkCame() { scheduler.force(account.takeThoseForNetwork()) }

  // MARK: a turn

  /// Reads on, and starts what may start.
  /// - Throws: ``SpoolError`` for what would stop every job.
  func turn() throws(SpoolError) {
    scheduler.beginTurn()
    while let reading = scheduler.nextReading() { try lookout.perform(reading, &scheduler) }
    guard scheduler.backlog.isEmpty || admission.mayStart() && mayFetch() else { return }
    while let step = scheduler.nextStep(at: LoopExecutor.milliseconds()) {
      switch step {
      case .look(let candidate): try lookout.look(at: candidate, &scheduler)
      case .search(let count): try lookout.search(count, &scheduler)
      case .start(let choice): try start(choice)
      }
    }
  }

  /// Whether libcurl is there; else that is what the run ends with.
  func mayFetch() -> Bool {
    account.summary.obstacle = admission.libcurlProblem()
    return account.summary.obstacle == nil
  }

  private func start(_ choice: Choice) throws(SpoolError) {
    switch try claimer.claim(choice) {
    case .claimed(let claim): begin(claim, choice)
    case .due(let time): scheduler.willBeDue(at: time)
    case .lost: try noteDroppedAnew(choice.candidate)
    case .lacksSpace(let shortage):
      let isNews = scheduler.lacksSpace(choice, at: LoopExecutor.milliseconds())
      if isNews { claimer.tell(shortage, of: choice) }
    case .rejected(let name, let facts):
      // The run waits until the `failed` hook has been told.
      scheduler.beginTelling()
      WorkerLoop.start {
        await self.environment.tellFailed(name, facts, in: self.spool, self.childStop)
        self.scheduler.endTelling()
        WorkerLoop.wakeUp()
      }
    case .left: break
    }
  }

  /// A job of this name is in hand, without data: the new one's turn comes when that has ended.
  private func noteDroppedAnew(_ candidate: Candidate) throws(SpoolError) {
    guard candidate.origin == .new else { return }
    let inHand = running.first { $0.value.attempt.name == candidate.name }
    // A name may have been seen twice, and be gone since.
    if let inHand, try spool.status(.new, candidate.name) != nil { running[inHand.key]?.isDroppedAnew = true }
  }

  // MARK: attempts

  private func begin(_ claim: Claim, _ choice: Choice) {
    let id = nextID
    nextID += 1
    let attempt = Attempt(claim, id: id, environment) { [unowned self] milestone in
      scheduler.reached(milestone, id)
      WorkerLoop.wakeUp()
    }
    running[id] = Running(attempt: attempt, firstName: attempt.name)
    scheduler.started(id, choice)
    WorkerLoop.start {
      let end = await attempt.run()
      self.ended(id, end)
    }
  }

  private func ended(_ id: UInt64, _ end: AttemptEnd) {
    scheduler.ended(id)
    guard let ended = running.removeValue(forKey: id) else { return }
    let attempt = ended.attempt
    if let problem = end.problem { claimer.noteBroken(problem, job: attempt.name) }
    account.noteEnd(end, of: attempt.name, first: ended.firstName, gained: attempt.gained)
    if let retry = end.retry { scheduler.willBeDue(at: retry.seconds) }
    // One that was moved away may be back in new/ by now, and have been passed over for its lock. One that was dropped
    // anew has its turn now, unless the claim stays, which comes before what is in `new/`.
    if end.fate == .moved || ended.isDroppedAnew && !attempt.claim.isHeld { scheduler.isDueNow() }
    WorkerLoop.wakeUp()
  }
}
