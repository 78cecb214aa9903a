internal import Spool
internal import SystemPackage

/// Performs what the ``Scheduler`` decides: reads the spool, claims jobs, starts their attempts, and tells it how they end.
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
  private let peeks: PeekReader
  private(set) var scheduler: Scheduler
  private var reader: SpoolReader
  private var clock: ClaimClock
  private var running: [UInt64: Running] = [:]
  private var nextID: UInt64 = 1
  /// A job could not be claimed for want of space, and none was since.
  private var isFullTold = false

  init(
    _ spool: Spool, _ environment: JobEnvironment, _ admission: Admission, _ account: RunAccount,
    _ childStop: ChildStop
  ) {
    self.spool = spool
    self.environment = environment
    self.admission = admission
    self.account = account
    self.childStop = childStop
    let options = environment.options
    scheduler = Scheduler(
      Slots.Limits(jobs: options.jobs, perHost: options.perHost, commits: WorkerOptions.mostCommits))
    peeks = PeekReader(spool, environment)
    reader = SpoolReader(spool)
    clock = ClaimClock(spool)
  }

  /// The running attempts, in the order in which they began.
  var attempts: [Attempt] { running.sorted { $0.key < $1.key }.map(\.value.attempt) }

  // MARK: what to look at

  func requestPass() { scheduler.requestPass() }
  func requestPeriodicPass() { scheduler.requestPeriodicPass(at: LoopExecutor.milliseconds()) }

  /// The spool's directories are gone.
  func abandonPasses() {
    scheduler.abandonPasses()
    reader.abandon()
  }

  /// Requests a pass where one of the jobs that wait for space fits by now.
  func lookForSpace() {
    guard let least = scheduler.spaceWait.least, environment.space.shortage(of: least) == nil else { return }
    scheduler.spaceCame()
  }

  /// Jobs that failed on this machine's way to the network are tried as soon as there is one, not when their time has come.
  func retryAfterNetworkChange() {
    if NetworkPresence.hasAddress() { scheduler.force(account.takeThoseForNetwork()) }
  }

  /// Takes in what inotify told of; a name that is claimed by now costs one lost claim.
  func take(_ changes: [SpoolWatch.Change]) throws(SpoolError) {
    var seen: Set<SpoolWatch.Change> = []
    let now = Timestamp.now().seconds
    for change in changes where change.directory != .cur && !change.name.isIgnored && seen.insert(change).inserted {
      if scheduler.passesOver() { continue }
      if let candidate = try look(change.directory, change.name, now) { scheduler.appeared(candidate) }
    }
  }

  private func look(_ directory: Directory, _ name: FileName, _ now: Int64) throws(SpoolError) -> Candidate? {
    switch try reader.look(directory, name, at: now) {
    case .candidate(let candidate): return candidate
    case .later(let time): scheduler.willBeDue(at: time)
    case .nothing: break
    }
    return nil
  }

  // MARK: a turn

  /// Reads on, and starts what may start.
  /// - Throws: ``SpoolError`` for what would stop every job.
  func turn() throws(SpoolError) {
    scheduler.beginTurn()
    while let reading = scheduler.nextReading() { try perform(reading) }
    guard scheduler.backlog.isEmpty || admission.mayStart() && mayFetch() else { return }
    while let step = scheduler.nextStep(at: LoopExecutor.milliseconds()) {
      switch step {
      case .look(let candidate): scheduler.looked(at: candidate, try peeks.peek(at: candidate))
      case .search(let count): try search(count)
      case .start(let choice): try start(choice)
      }
    }
  }

  private func perform(_ reading: Scheduler.Reading) throws(SpoolError) {
    let began = LoopExecutor.milliseconds()
    switch reading {
    case .begin(let directories):
      for directory in directories { try reader.begin(directory) }
      scheduler.began(directories, at: began)
    case .read(let count):
      let found = try read(count)
      scheduler.found(found, names: count, took: LoopExecutor.milliseconds() - began)
    }
  }

  /// The candidates among the next `count` names.
  private func read(_ count: Int) throws(SpoolError) -> [Candidate] {
    var found: [Candidate] = []
    var names = 0
    let now = Timestamp.now().seconds
    while names < count, let directory = scheduler.nextDirectory() {
      guard let name = try reader.next(directory) else {
        scheduler.ended(directory)
        continue
      }
      names += 1
      if let candidate = try look(directory, name, now) { found.append(candidate) }
    }
    return found
  }

  private func search(_ count: Int) throws(SpoolError) {
    let start = LoopExecutor.milliseconds()
    var kept: [(Candidate, Peek)] = []
    for candidate in try read(count).sorted(by: { $0.modified < $1.modified }) {
      let peek = try peeks.peek(at: candidate)
      if scheduler.keeps(peek) { kept.append((candidate, peek)) }
    }
    scheduler.searched(kept, from: start, to: LoopExecutor.milliseconds())
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

  // MARK: claims

  private func start(_ choice: Choice) throws(SpoolError) {
    let candidate = choice.candidate
    if tellsShortage(of: choice) { return }
    let outcome: ClaimOutcome
    do throws(SpoolError) {
      outcome = try spool.claim(
        candidate.name, from: candidate.origin, now: try clock.now(for: candidate), isForced: candidate.isForced)
    } catch  where error.isWantOfRoom {
      // Neither it nor what is wrong with it can be written down. It waits; others may need no space, and what runs may
      // make some.
      account.noteUnclaimable(candidate.name)
      if !isFullTold { log(Event("broken", .error, job: candidate.name, Fields().with("reason", "\(error)"))) }
      isFullTold = true
      return
    }
    switch outcome {
    case .claimed(let claim): begin(claim, choice)
    case .lost: try noteDroppedAnew(candidate)
    // Another worker has tried it since it was found, or this one has.
    case .notDue(let due): scheduler.willBeDue(at: due)
    case .unfinished:
      scheduler.willBeDue(at: Timestamp.now().seconds + Spool.settlingTime)
      log(Event("unfinished", .debug, job: candidate.name))
    case .barred(let defect): noteBarred(candidate.name, defect.reason)
    case .rejected(let name, let defect): noteRejected(name, defect)
    }
  }

  /// Sets a job aside that is known not to fit, without a claim: one that waits for space has nothing to record.
  private func tellsShortage(of choice: Choice) -> Bool {
    guard let needed = choice.peek.needed, let shortage = environment.space.shortage(of: needed) else { return false }
    if scheduler.lacksSpace(choice, at: LoopExecutor.milliseconds()) {
      let fields = Fields().with("needed", needed).with("free", shortage.free).with("min-free", shortage.kept)
      log(Event("waits-for-room", .info, job: choice.candidate.name, fields))
    }
    return true
  }

  /// A job of this name is in hand, without data: the new one's turn comes when that has ended.
  private func noteDroppedAnew(_ candidate: Candidate) throws(SpoolError) {
    guard candidate.origin == .new else { return }
    let inHand = running.first { $0.value.attempt.name == candidate.name }
    // A name may have been seen twice, and be gone since.
    if let inHand, try spool.status(.new, candidate.name) != nil { running[inHand.key]?.isDroppedAnew = true }
  }

  private func noteBarred(_ name: FileName, _ reason: String) {
    if account.noteBarred(name) { log(Event("barred", .error, job: name, Fields().with("reason", reason))) }
  }

  /// What was no valid job counts as given up, and the `failed` hook is told; the run waits for that.
  private func noteRejected(_ name: FileName, _ defect: Defect) {
    account.noteRejected()
    let facts = Fields().with("code", FailureCode.malformed.rawValue).with("line", defect.line).with(
      "reason", defect.reason)
    log(Event("rejected", .error, job: name, facts))
    scheduler.beginTelling()
    WorkerLoop.start {
      let hooks = self.environment.hooks(of: self.spool, self.childStop)
      _ = await hooks.run(.failed, job: name, Hooks.failure(facts.with("attempt", 0)))
      self.scheduler.endTelling()
      WorkerLoop.wakeUp()
    }
  }

  // MARK: attempts

  private func begin(_ claim: Claim, _ choice: Choice) {
    isFullTold = false
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
    if let problem = end.problem { noteBroken(problem, job: attempt.name) }
    account.noteEnd(end, of: attempt.name, first: ended.firstName, gained: attempt.gained)
    if let retry = end.retry { scheduler.willBeDue(at: retry.seconds) }
    // One that was moved away may be back in new/ by now, and have been passed over for its lock. One that was dropped
    // anew has its turn now, unless the claim stays, which comes before what is in `new/`.
    if end.fate == .moved || ended.isDroppedAnew && !attempt.claim.isHeld { scheduler.isDueNow() }
    WorkerLoop.wakeUp()
  }

  /// A job can be moved no more, and stays as it is, for the next run to take over. Where the spool itself failed, and
  /// not that file alone, this run ends.
  private func noteBroken(_ error: any Error, job: FileName) {
    if let error = error as? SpoolError, spool.concernsOneFile(error, in: .cur) {
      return noteBarred(job, "\(error)")
    }
    let spoolError = error as? SpoolError ?? SpoolError(call: .write, path: job.display, errno: .ioError)
    account.summary.spoolError = account.summary.spoolError ?? spoolError
    log(Event("broken", .error, job: job, Fields().with("reason", "\(spoolError)")))
  }

  private func log(_ event: Event) { environment.log(event) }
}
