internal import Spool
internal import Transfer

/// Performs what the ``Scheduler`` decides: reads the spool, claims jobs, starts their attempts, and reports to the
/// scheduler how they end.
@WorkerLoop final class Dispatcher {
  private struct Running {
    let attempt: Attempt
    let firstName: FileName
    /// Another job of the same name was dropped and runs when this one has ended.
    var isDroppedAnew = false
  }

  private let spool: Spool
  private let environment: JobEnvironment
  private let admission: Admission
  private let account: RunAccount
  /// Stops the `failed` hook of a rejected file.
  private let childStop: ChildStop
  private(set) var scheduler: Scheduler
  private var lookout: Lookout
  private var claimer: Claimer
  private var running: [UInt64: Running] = [:]
  private var nextID: UInt64 = 1
  /// The last turn ended after one start.
  private var mayStartMore = false
  /// Whether the next turn should follow at once.
  var canGoOn: Bool { mayStartMore || scheduler.canReadOn }

  init(
    _ spool: Spool, _ environment: JobEnvironment, _ admission: Admission, _ account: RunAccount, _ childStop: ChildStop
  ) {
    (self.spool, self.environment, self.admission, self.account) = (spool, environment, admission, account)
    self.childStop = childStop
    scheduler = Scheduler(
      TransferLimits(environment.options), Rescan(isBlind: !spool.kind.isLocal, interval: environment.options.rescan))
    let claims = ClaimReader(spool)
    lookout = Lookout(spool, environment, claims)
    claimer = Claimer(spool, environment, account, claims)
    environment.servers.cameBack = { [unowned self] in scheduler.backlog.add(account.waiting.take(awaiting: $0)) }
  }

  /// The running attempts, in the order of their start.
  var attempts: [Attempt] { running.sorted { $0.key < $1.key }.map(\.value.attempt) }

  /// Bytes of the running attempts after their last checkpoints, which may be in the page cache only.
  var undurable: UInt64 { running.values.reduce(0) { $0 &+ $1.attempt.undurable } }

  // MARK: what to look at

  func requestPass() { scheduler.requestPass() }
  func requestDuePass() { scheduler.requestDuePass(at: LoopExecutor.milliseconds(), spool.now().seconds) }
  func requestPeriodicPass() { scheduler.requestPeriodicPass(at: LoopExecutor.milliseconds()) }

  /// Whether a pass is due, or another host may have changed a directory.
  func wantsToLookAround(at now: Int64) throws(SpoolError) -> Bool {
    if scheduler.isPassDue(at: now) { return true }
    return scheduler.looksForChanges(at: now) ? try lookout.seesChanges(at: now) : false
  }

  /// inotify does not report all changes any more.
  /// - Returns: whether that is new.
  func becomeBlind() -> Bool { scheduler.becomeBlind(environment.options.rescan) }

  func abandonPasses() { lookout.abandon(&scheduler) }

  func take(_ news: SpoolWatch.News) throws(SpoolError) { try lookout.take(news.changes, &scheduler) }

  /// Requests a pass if one of the jobs that wait for space fits now.
  func lookForSpace() {
    guard let least = scheduler.spaceWait.least, environment.space.shortage(of: least) == nil else { return }
    scheduler.spaceCame()
  }

  // MARK: a turn

  /// Continues to read the spool, and starts the jobs that may start, or one of them if servers are far away: a request
  /// goes out when the loop waits, and another claim would delay it.
  /// - Throws: ``SpoolError`` that affects all jobs.
  func turn() throws(SpoolError) {
    mayStartMore = false
    defer { if !mayStartMore { environment.limits.giveSpareBack() } }
    environment.servers.look()
    scheduler.beginTurn()
    scheduler.slots.sweep(at: LoopExecutor.milliseconds())
    scheduler.slots.limits.rules = environment.options.defaults.servers.perHost
    try lookout.lookForUrgent(&scheduler)
    while let reading = scheduler.nextReading() { try lookout.perform(reading, &scheduler) }
    guard scheduler.hasNoCandidates || admission.mayStart() && loadLibcurl() else { return }
    while let step = scheduler.nextStep(at: LoopExecutor.milliseconds(), environment.servers.rests) {
      switch step {
      case .look(let candidate): try lookout.look(at: candidate, &scheduler)
      case .search(let count): try lookout.search(count, &scheduler)
      case .start(let choice):
        let now = LoopExecutor.milliseconds()
        guard environment.servers.takeTurn(choice.way) else {
          scheduler.putBack(choice, until: now)
          continue
        }
        if let (wait, isForTurn) = environment.limits.take(choice.host, choice.peek.priority, at: now) {
          scheduler.putBack(choice, until: now + wait, isForTurn: isForTurn)
          continue
        }
        try start(choice)
        mayStartMore = environment.isFar
        if mayStartMore { return }
      case .park(let id): running[id]?.attempt.stop(.outranked)
      }
    }
  }

  /// Loads libcurl, before the first job is read: without it every URL would count as malformed. If that fails, the
  /// summary says why, and the run ends.
  /// - Returns: whether it is loaded.
  func loadLibcurl() -> Bool {
    do throws(TransferError) { try Libcurl.load() } catch { account.summary.obstacle = error.description }
    return account.summary.obstacle == nil
  }

  private func start(_ choice: Choice) throws(SpoolError) {
    switch try claimer.claim(choice) {
    case .claimed(let claim): begin(claim, choice)
    case .due(let time): scheduler.willBeDue(choice, at: time)
    case .parked(let name, let time): scheduler.willRetry(name, choice.peek.priority, at: time)
    case .changed(let text): try lookout.look(at: choice.candidate, text, &scheduler)
    case .unavailable: try noteDroppedAnew(choice.candidate)
    case .lacksSpace(let shortage):
      let isNews = scheduler.noteLackOfSpace(choice, at: LoopExecutor.milliseconds())
      if isNews { claimer.tell(shortage, of: choice) }
    case .rejected(let name, let facts):
      // The run waits for the `failed` hook.
      scheduler.slots.tellings += 1
      WorkerLoop.start {
        let hooks = self.environment.hooks(of: self.spool, self.childStop)
        await self.environment.tellFailed(name, facts, of: nil, seconds: nil, hooks)
        self.scheduler.slots.tellings -= 1
        WorkerLoop.wakeUp()
      }
    case .left: break
    }
  }

  /// A job of this name is running, without data. The new one runs when it has ended.
  private func noteDroppedAnew(_ candidate: Candidate) throws(SpoolError) {
    guard candidate.origin.takesNewJobs else { return }
    let inHand = running.first { $0.value.attempt.name == candidate.name }
    // The file may have been seen twice, and have been claimed since.
    if let inHand, try spool.status(candidate.origin, candidate.name) != nil {
      running[inHand.key]?.isDroppedAnew = true
    }
  }

  // MARK: attempts

  private func begin(_ claim: Claim, _ choice: Choice) {
    let id = nextID
    nextID += 1
    let attempt = Attempt(
      claim, id: id, environment, firstURL: choice.peek.firstURL?.parts, checkOrder: { try await OrderCheck($0).run() }
    ) { [unowned self] milestone in
      switch milestone {
      case .cleared: scheduler.slots.clear(id)
      case .transferred:
        let gained = running[id]?.attempt.gained ?? 0
        scheduler.slots.note(id, received: gained, end: LoopExecutor.milliseconds())
        scheduler.slots.transferred(id)
        environment.limits.ended(id)
        environment.servers.ended(id)
      }
      WorkerLoop.wakeUp()
    }
    running[id] = Running(attempt: attempt, firstName: attempt.name)
    scheduler.started(id, choice)
    if environment.limits.started(id, choice.host, choice.peek.priority) { environment.shareRates() }
    environment.servers.started(id, choice.way)
    WorkerLoop.start {
      let end = await attempt.run()
      self.ended(id, end)
    }
  }

  /// To be called a few times a second.
  func measure() { scheduler.measure(running.mapValues(\.attempt.gained), at: LoopExecutor.milliseconds()) }

  private func ended(_ id: UInt64, _ end: AttemptEnd) {
    environment.servers.ended(id)
    scheduler.ended(id)
    environment.limits.ended(id)
    guard let ended = running.removeValue(forKey: id) else { return }
    let attempt = ended.attempt
    if let problem = end.problem { claimer.noteBroken(problem, job: attempt.name) }
    account.noteEnd(end, of: attempt.name, first: ended.firstName, gained: attempt.gained)
    if let retry = end.retry { scheduler.willRetry(attempt.name, attempt.claim.priority, at: retry.seconds) }
    // A job that was moved away may be back in new/ and may have been skipped because of its lock. A job of the same
    // name that was dropped meanwhile can run now, unless the claim stays, which has priority over `new/`.
    let isGone = !attempt.claim.isOpen || end.fate == .cancelled
    if end.fate == .moved || end.hasDropped || ended.isDroppedAnew && isGone {
      for directory in [Directory.new, .urgent] { scheduler.willBeDue(at: 0, in: directory) }
    }
    WorkerLoop.wakeUp()
  }
}
