internal import CLinux
internal import Glibc
package import Spool
internal import SystemPackage
internal import Transfer

/// A worker: scans the spool, claims what is due, runs each job's way, many at once under a limit. It keeps no state that is not in the spool.
@WorkerLoop
package final class Worker {
  let options: WorkerOptions
  let spool: Spool
  let outputs: CurrentOutputRoot
  private let report: @Sendable (Event) -> Void
  private var running: [UInt64: JobRun] = [:]
  /// Those of ``running`` that have not come to their commit yet, by host: what the limits count.
  private var transfersByHost: [String: Int] = [:]
  private var transfers: Set<UInt64> = []
  /// A job that may have killed workers, and has no other beside it.
  private var alone: UInt64?
  let began = LoopExecutor.milliseconds()
  /// Dirty bytes beyond which a file is not made durable together with all else.
  private static let littleDirty: UInt64 = 64 << 20
  var backlog = Backlog()
  var scan = Scan()
  /// When the last pass began, and how long the loop was kept by reading since, in milliseconds.
  var scanBegan: Int64 = 0
  var scanTook: Int64 = 0
  var nextSearch: Int64 = 0
  /// Something was seen that is not in the backlog: only another scan finds it.
  var isSomethingPassedOver = false
  private var nextID: UInt64 = 1
  var summary = RunSummary()
  private(set) var isStopping = false
  var waiting = WaitingJobs()
  /// What is no valid job, and what the `failed` hook is told of at this moment.
  private var rejectionsTold = 0
  /// The last scan began after the last job's end.
  var isScanFresh = false
  /// When the next job falls due that a scan saw waiting, in seconds since the epoch.
  var nextDue: Int64?
  /// What stands in `new/`, is no job and cannot be moved, as far as it was told of.
  private var barred: Set<FileName> = []
  /// After so many it is told of anew: other users can put any number there, one after another.
  private static let mostBarred = 1000
  /// Running jobs whose name another one in `new/` has.
  private var droppedAnew: Set<UInt64> = []
  private var gateAnswer: Gate.Answer?
  private var askedAt: Int64?
  private var isAskingGate = false
  /// Ends the gate's command, and a hook that is told of what was no job.
  private let childStop = ChildStop()
  private var isSpaceShort = false
  /// Why nothing can be published.
  private var outputProblem: String?
  /// A job could not be claimed for want of room, and none was since.
  private var isFullTold = false
  let room: DiskSpace
  let blocks = BlockPool()
  private(set) lazy var memory = MemoryBudget(limit: options.maxMemory ?? MemoryLimit.ofConnections())
  var spaceWait = SpaceWait()
  /// It watches, and does not end when all is done.
  private(set) var stays = false
  private var hasLibcurl = false
  private(set) var engineIfRunning: TransferEngine?
  /// A job ran since the last scan that found nothing to do.
  private var hasWorked = false
  /// What jobs make durable, together.
  private(set) lazy var durable = GroupCommit { [unowned self] in
    [spoolFileSystem, outputs.fileSystem]
  } isLittleDirty: { [unowned self] in
    running.values.reduce(0) { $0 &+ $1.undurable } < Self.littleDirty
  }
  private let spoolFileSystem: FileSystem
  /// The spool that has taken this one's place, once ``watch(stopSignals:)`` has ended for it.
  package private(set) var successor: Spool?
  /// Called about five times a second while jobs run, and once when none does any more.
  package var onProgress: ((WorkerProgress) -> Void)?
  private var progressReported: (at: Int64, isRunning: Bool) = (0, false)
  private var gainedByEnded: UInt64 = 0

  /// - Parameter report: called for each event, on the loop's thread.
  /// - Throws: ``OutputRootProblem`` where the output root cannot be opened, or is none to publish to.
  package init(_ spool: Spool, _ options: WorkerOptions, report: @escaping @Sendable (Event) -> Void)
    throws(OutputRootProblem)
  {
    self.spool = spool
    self.options = options
    self.report = report
    room = DiskSpace(spool, kept: options.minFree)
    outputs = try CurrentOutputRoot(options.directory, spool: spool)
    do throws(SpoolError) { spoolFileSystem = try spool.fileSystem() } catch { throw .missing(error) }
  }

  /// Runs all that is due, and what is dropped meanwhile; returns when nothing is left, or soon after `stopSignals` became readable.
  /// - Parameter stopSignals: a signalfd(2); negative for none.
  package func runOnce(stopSignals: Int32 = -1) async -> RunSummary {
    sweepAtStart()
    var nextScan: Int64 = 0
    var obstacle: Obstacle?
    await run(stopSignals: stopSignals, survivesErrors: false) { () throws(SpoolError) in
      if self.hasRoomForWaiting() { try self.rescan() }
      let now = LoopExecutor.milliseconds()
      if now >= nextScan && !self.isLookingForRoom || self.needsRescan(!self.isScanFresh) {
        try self.rescan()
        nextScan = now + Self.scanInterval
      }
      try self.fill()
      if !self.isBusy, let found = self.heldBackBy {
        obstacle = found
        return nil
      }
      if self.canLookAhead { return 0 }
      // Only a scan that came after the last job's end may say that nothing is left.
      let isOver = self.backlog.isEmpty && self.scan.isSettled && self.isScanFresh && !self.isSomethingPassedOver
      return !self.isBusy && isOver ? nil : self.untilNextTurn(200)
    }
    countWaiting(heldBackBy: obstacle)
    return summary
  }

  /// Stays, runs what is dropped and what falls due; returns soon after `stopSignals` became readable, or the spool's path leads to another one, the
  /// ``successor``.
  /// - Throws: ``SpoolError`` where inotify is not to be had.
  package func watch(stopSignals: Int32) async throws(SpoolError) -> RunSummary {
    stays = true
    // A worker that stays says at its start what it lacks, not when the first job comes.
    guard mayFetch() else { return summary }
    sweepAtStart()
    let watch = try SpoolWatch(spool)
    let links = NetworkWatch()
    WorkerLoop.executor.watched = [watch.descriptor] + (links.map { [$0.descriptor] } ?? [])
    var nextScan: Int64 = 0
    var nextLook: Int64 = 0
    var isMissing = false
    await run(stopSignals: stopSignals, survivesErrors: true) { () throws(SpoolError) in
      if self.successor != nil { return self.isBusy ? 200 : nil }
      let now = LoopExecutor.milliseconds()
      let news = watch.read()
      if news.needsScan || now >= nextLook {
        let isInPlace = try self.lookForSuccessor(stopSignals)
        if self.successor != nil { return 0 }
        nextLook = now + (isInPlace ? Self.scanInterval : Self.missingInterval)
      }
      if links?.hasNews() == true { self.retryAfterNetworkChange() }
      do throws(SpoolError) {
        if news.needsScan || now >= nextScan && !self.isLookingForRoom {
          try watch.renew()
          try self.rescan()
          nextScan = now + Self.scanInterval
          if isMissing { self.log(Event("spool-back", .warning)) }
          isMissing = false
        } else {
          try self.take(news.changes)
        }
        if self.wallClockDue() || self.hasRoomForWaiting() || self.needsRescan(false) { try self.rescan() }
        try self.fill()
      } catch  where error.errno == .noSuchFileOrDirectory {
        // Its directories were removed: perhaps they come back, which inotify tells of, or the next scan.
        if !isMissing { self.log(Event("spool-missing", .error, Fields().with("reason", "\(error)"))) }
        isMissing = true
        self.scan.abandon()
        nextScan = now + Self.scanInterval
        nextLook = now + Self.missingInterval
      }
      if self.canLookAhead { return 0 }
      if !self.running.isEmpty { return self.untilNextTurn(200) }
      if !self.backlog.isEmpty || !self.spaceWait.isEmpty { return 2000 }
      self.rest()
      return min(nextScan - now, nextLook - now, self.millisecondsUntilDue())
    }
    // What waits in a spool that is gone or moved away is none of this run's.
    if successor == nil { countWaiting(heldBackBy: nil) }
    return summary
  }

  static let scanInterval: Int64 = 60_000
  /// How often to look for a spool whose path leads nowhere.
  private static let missingInterval: Int64 = 2000

  /// Ends this worker's jobs where the spool's path leads to another spool.
  /// - Returns: whether it leads to this one.
  private func lookForSuccessor(_ stopSignals: Int32) throws(SpoolError) -> Bool {
    if try spool.isInPlace() { return true }
    guard let next = try spool.reopened() else { return false }
    successor = next
    log(Event("spool-replaced", .warning))
    // What is readable of the old one would end each wait at once.
    WorkerLoop.executor.watched = stopSignals >= 0 ? [stopSignals] : []
    for run in running.values { run.stop(.shutdown) }
    return false
  }

  /// Lets go of the memory that only transfers need, where a whole rescan has passed without one: not between two drops, and without a wake-up of its own.
  private func rest() {
    guard isScanFresh, hasWorked else { return }
    hasWorked = false
    malloc_trim(0)
    spoolrun_forget_code()
  }

  /// - Parameter turn: looks for work and starts it; gives the milliseconds to wait for something to happen, nil when all is done.
  /// - Parameter survivesErrors: whether a job that the spool failed under is left to the next scan, and the run goes on.
  private func run(stopSignals: Int32, survivesErrors: Bool, turn: () throws(SpoolError) -> Int64?) async {
    await runTurns(stopSignals: stopSignals, survivesErrors: survivesErrors, turn: turn)
    childStop.request()
    while isAskingGate { await WorkerLoop.pause(milliseconds: 200) }
  }

  private func runTurns(stopSignals: Int32, survivesErrors: Bool, turn: () throws(SpoolError) -> Int64?) async {
    self.stopSignals = stopSignals
    if stopSignals >= 0 { WorkerLoop.executor.watched.append(stopSignals) }
    defer { WorkerLoop.executor.watched = [] }
    do throws(SpoolError) {
      while true {
        lookForStop()
        if survivesErrors { summary.spoolError = nil }
        var wait: Int64? = isBusy ? 200 : nil
        if !isStopping, summary.spoolError == nil {
          wait = try turn()
          if summary.obstacle != nil { return }
          updateGate()
        }
        guard let wait else { return }
        reportProgress()
        await WorkerLoop.pause(milliseconds: max(0, wait))
        tick()
      }
    } catch {
      summary.spoolError = error
      WorkerLoop.executor.watched = []
      childStop.request()
      for run in running.values { run.stop(.shutdown) }
      while isBusy {
        await WorkerLoop.pause(milliseconds: 200)
        tick()
      }
    }
  }

  private func tick() {
    let now = LoopExecutor.milliseconds()
    guard now - lastTick >= Self.tickInterval else { return }
    lastTick = now
    for run in running.values { run.tick() }
  }
  private var lastTick: Int64 = 0
  private var stopSignals: Int32 = -1

  /// Looks whether the worker was told to stop: what ends a service ends its hooks at the same moment, and their end may be heard of first.
  func lookForStop() { if stopSignals >= 0, hasSignal(stopSignals) { beginStop() } }

  /// How often running jobs are looked after: a gesture has to be seen within a second.
  private static let tickInterval: Int64 = 200

  private func hasSignal(_ descriptor: Int32) -> Bool {
    var info = signalfd_siginfo()
    return read(descriptor, &info, MemoryLayout<signalfd_siginfo>.size) > 0
  }

  private func beginStop() {
    if isStopping { return }
    isStopping = true
    successor = nil
    // Nobody reads what is seen of the spool any more, and what is readable would end each wait at once.
    WorkerLoop.executor.watched = []
    log(Event("stopping", .info))
    childStop.request()
    for run in running.values { run.stop(.shutdown) }
  }

  // MARK: scan

  /// Nothing is left of the last scan, and another one may find more.
  private func needsRescan(_ isStale: Bool) -> Bool {
    backlog.hasOnlySuspects && !scan.isUnderWay && (isStale || isSomethingPassedOver) && mayRescan
  }

  /// - Parameter most: milliseconds, if there is nothing to search for.
  private func untilNextTurn(_ most: Int64) -> Int64 {
    // While nothing may start nothing is searched for, and the time of the next search stays in the past.
    guard scan.isUnderWay, hasRoom, !isAskingGate, heldBackBy == nil, spaceWait.mayGoOn(at: LoopExecutor.milliseconds())
    else { return most }
    return min(most, max(0, nextSearch - LoopExecutor.milliseconds()))
  }

  private func wallClockDue() -> Bool { nextDue.map { $0 <= Timestamp.now().seconds } ?? false }

  private func millisecondsUntilDue() -> Int64 {
    guard let nextDue else { return Self.scanInterval }
    return max(0, min(nextDue - Timestamp.now().seconds, 3600)) * 1000
  }

  /// Jobs that failed on this machine's way to the net are tried as soon as there is one, not when their time has come.
  private func retryAfterNetworkChange() {
    guard NetworkPresence.hasAddress() else { return }
    backlog.add(waiting.takeThoseForNetwork())
  }

  private var isGateAnswerOld: Bool { askedAt.map { LoopExecutor.milliseconds() - $0 >= Gate.validity } ?? true }

  /// Asks the gate when there is work for it to decide on, and its last answer is old. Running jobs are looked after meanwhile.
  private func updateGate() {
    guard let gate = options.gate, !backlog.isEmpty, hasRoom, isGateAnswerOld, !isAskingGate else { return }
    isAskingGate = true
    WorkerLoop.start {
      let answer = await gate.ask(self.childStop)
      self.isAskingGate = false
      if self.childStop.isRequested { return WorkerLoop.wakeUp() }
      self.askedAt = LoopExecutor.milliseconds()
      let isNew = answer != self.gateAnswer
      self.gateAnswer = answer
      switch answer {
      case .open: break
      case .closed(let reason): if isNew { self.log(Event("gate-closed", .info, Fields().with("reason", reason))) }
      case .broken(let reason): if isNew { self.log(Event("gate-broken", .error, Fields().with("reason", reason))) }
      }
      WorkerLoop.wakeUp()
    }
  }

  /// What keeps work that there is from starting, as far as gate and disk were asked.
  private var heldBackBy: Obstacle? {
    if backlog.isEmpty { return isScanFresh && scan.isSettled && !spaceWait.isEmpty ? .room : nil }
    // It is being asked.
    if options.gate != nil, isGateAnswerOld { return nil }
    if let outputProblem { return .output(outputProblem) }
    if isSpaceShort { return .room }
    switch gateAnswer {
    case nil, .open: return nil
    case .closed(let reason), .broken(let reason): return .gate(reason)
    }
  }

  /// Whether anything may start now at all.
  private func mayStart() -> Bool {
    if options.gate != nil, gateAnswer != .open || isGateAnswerOld { return false }
    guard isOutputThere() else { return false }
    guard let free = room.freeIfShort else {
      isSpaceShort = false
      return true
    }
    if !isSpaceShort {
      // Not with --once, whose end tells of it: a line each minute is mail each minute, and nothing has failed.
      log(Event("disk-short", stays ? .warning : .info, Fields().with("free", free).with("min-free", room.kept)))
    }
    isSpaceShort = true
    return false
  }

  /// Whether payloads can be put in their place. Else jobs wait, and none fails.
  private func isOutputThere() -> Bool {
    do throws(OutputRootProblem) {
      _ = try outputs.opened()
      if outputProblem != nil { log(Event("output-back", .warning)) }
      outputProblem = nil
    } catch {
      if outputProblem == nil { log(Event("output-missing", .error, Fields().with("reason", "\(error)"))) }
      outputProblem = "\(error)"
    }
    return outputProblem == nil
  }

  /// Asked before the first job is looked at: without libcurl every URL would seem malformed.
  private func mayFetch() -> Bool {
    if hasLibcurl { return true }
    // The start is over, and what it took of the program's code is not needed again.
    spoolrun_forget_code()
    do throws(TransferError) {
      try Libcurl.load()
      spoolrun_keep_freed_memory()
      hasLibcurl = true
      return true
    } catch {
      summary.obstacle = error.description
      return false
    }
  }

  var hasRoom: Bool {
    alone == nil && transfers.count < options.jobs
      && running.count - transfers.count + rejectionsTold < WorkerOptions.mostCommits
  }

  /// Starts candidates while there is room.
  private func fill() throws(SpoolError) {
    try lookAhead()
    guard backlog.isEmpty || mayStart() && mayFetch() else { return }
    while hasRoom, spaceWait.mayGoOn(at: LoopExecutor.milliseconds()) {
      guard let choice = try nextChoice() else { return }
      let candidate = choice.candidate
      if try waitsForRoom(candidate) { continue }
      let outcome: ClaimOutcome
      do throws(SpoolError) {
        outcome = try spool.claim(
          candidate.name, from: candidate.origin, now: clock(for: candidate), isForced: candidate.isForced)
      } catch  where error.isWantOfRoom {
        // Neither it nor what is wrong with it can be written down. It waits; others may need no room, and what runs may make some.
        waiting.ended(candidate.name, isWaiting: true)
        summary.waiting = waiting.count
        if !isFullTold { log(Event("broken", .error, job: candidate.name, Fields().with("reason", "\(error)"))) }
        isFullTold = true
        continue
      }
      switch outcome {
      case .claimed(let claim):
        isFullTold = false
        start(claim, host: choice.host, isAlone: Suspicion.wantsToBeAlone(choice.deaths))
      case .lost: try noteDroppedAnew(candidate)
      // Another worker has tried it since it was found, or this one has.
      case .notDue(let due): nextDue = min(nextDue ?? .max, due)
      case .unfinished:
        nextDue = min(nextDue ?? .max, Timestamp.now().seconds + Spool.settlingTime)
        log(Event("unfinished", .debug, job: candidate.name))
      case .barred(let defect): noteBarred(candidate.name, defect.reason)
      case .rejected(let name, let defect):
        summary.givenUp += 1
        log(
          Event(
            "rejected", .error, job: name,
            Fields().with("code", FailureCode.malformed.rawValue).with("line", defect.line).with(
              "reason", defect.reason)))
        tellRejected(name, defect)
      }
    }
  }

  /// What was no valid job counts as given up, and the `failed` hook is told; the run waits for that.
  private func tellRejected(_ name: FileName, _ defect: Defect) {
    rejectionsTold += 1
    WorkerLoop.start {
      let facts = Fields().with("code", FailureCode.malformed.rawValue).with("reason", defect.reason).with(
        "line", defect.line
      ).with("attempt", 0)
      _ = await self.hooks(self.childStop).run(.failed, job: name, Hooks.failure(facts))
      self.rejectionsTold -= 1
      WorkerLoop.wakeUp()
    }
  }

  /// It cannot be taken, or not be moved any more, and stays where it is.
  private func noteBarred(_ name: FileName, _ reason: String) {
    // Seen again with each scan.
    guard !barred.contains(name) else { return }
    if barred.count >= Self.mostBarred { barred = [] }
    barred.insert(name)
    summary.givenUp += 1
    log(Event("barred", .error, job: name, Fields().with("reason", reason)))
  }

  /// What may run now; what may have killed workers only where there is nothing else.
  private func nextChoice() throws(SpoolError) -> Backlog.Choice? {
    repeat {
      let next = backlog.next(perHost: options.perHost, running: transfersByHost) { prospect(of: $0) }
      if let next { return next }
    } while try searchOn()
    if canLookAhead { return nil }
    return backlog.nextSuspect(perHost: options.perHost, running: transfersByHost, isIdle: running.isEmpty)
  }

  /// A job of this name is in hand, without data: the new one's turn comes when that has ended.
  private func noteDroppedAnew(_ candidate: Backlog.Candidate) throws(SpoolError) {
    guard candidate.origin == .new else { return }
    let inHand = running.first { $0.value.claim.job.fileName == candidate.name }
    // A name may have been seen twice, and be gone since.
    if let inHand, try spool.status(.new, candidate.name) != nil { droppedAnew.insert(inHand.key) }
  }

  /// Only the age of another host's claim, and of a file that may still be written, is a matter of the file system's own clock.
  private func clock(for candidate: Backlog.Candidate) throws(SpoolError) -> Timestamp {
    let now = Timestamp.now()
    if candidate.origin == .partial { return now }
    if candidate.origin == .cur, let claim = ClaimName(candidate.name), claim.host == spool.owner.host { return now }
    // Old by any clock that is not hours off: not worth a file.
    if candidate.origin == .new, candidate.modified + 86_400 < now.seconds { return now }
    if let cached = fileSystemClock, LoopExecutor.milliseconds() - cached.at < 1000 { return cached.time }
    let time = try spool.fileSystemTime()
    fileSystemClock = (time, LoopExecutor.milliseconds())
    return time
  }
  private var fileSystemClock: (time: Timestamp, at: Int64)?

  var isRunning: Bool { !running.isEmpty }

  /// Something is under way that the end of a run waits for.
  private var isBusy: Bool { isRunning || rejectionsTold > 0 }

  /// Whether a job of `host` might start now; nil for one that names none, see ``prospect(of:)``.
  func hasRoom(_ host: String?) -> Bool { host.map { transfersByHost[$0] ?? 0 < options.perHost } ?? true }

  private func start(_ claim: Claim, host: String, isAlone: Bool) {
    let id = nextID
    nextID += 1
    if isAlone { alone = id }
    let run = JobRun(claim, host: host, worker: self, id: id)
    running[id] = run
    transfers.insert(id)
    transfersByHost[host, default: 0] += 1
    WorkerLoop.start {
      let outcome = await run.run()
      self.ended(id, outcome)
    }
  }

  /// The job needs its connection no more: another may start.
  func transferEnded(_ id: UInt64) {
    guard let host = running[id]?.host, transfers.remove(id) != nil else { return }
    let left = (transfersByHost[host] ?? 1) - 1
    transfersByHost[host] = left > 0 ? left : nil
    letOthersStart(beside: id)
    WorkerLoop.wakeUp()
  }

  /// The job that ran alone has shown that it may have others beside it, or has ended.
  func letOthersStart(beside id: UInt64) {
    guard alone == id else { return }
    alone = nil
    WorkerLoop.wakeUp()
  }

  private func ended(_ id: UInt64, _ outcome: JobRun.Outcome) {
    transferEnded(id)
    gainedByEnded &+= running[id]?.gained ?? 0
    if let run = running[id] {
      let name = run.claim.job.fileName
      // It may have got another name on its way.
      waiting.ended(run.firstName, isWaiting: false)
      waiting.ended(name, isWaiting: outcome == .waiting)
      summary.waiting = waiting.count
      // Not where its claim stays, which comes before what stands in `new/`.
      if droppedAnew.remove(id) != nil, !run.claim.isHeld { nextDue = 0 }
    }
    running[id] = nil
    isScanFresh = false
    hasWorked = true
    switch outcome {
    case .done: summary.done += 1
    case .waiting: break
    case .givenUp: summary.givenUp += 1
    case .cancelled: summary.cancelled += 1
    case .moved:
      // Perhaps it is back in new/ by now, and was passed over for its lock.
      nextDue = 0
    }
    WorkerLoop.wakeUp()
  }

  // MARK: progress

  private func reportProgress() {
    guard let onProgress, !running.isEmpty || progressReported.isRunning else { return }
    let now = LoopExecutor.milliseconds()
    if !running.isEmpty, progressReported.isRunning, now - progressReported.at < 190 { return }
    progressReported = (now, !running.isEmpty)
    onProgress(progress())
  }

  package func progress() -> WorkerProgress {
    let runs = running.sorted { $0.key < $1.key }.map(\.value)
    var progress = WorkerProgress(
      running: runs.map(\.progress), waiting: backlog.count, summary: summary,
      gained: runs.reduce(gainedByEnded) { $0 &+ $1.gained })
    progress.moreWait = scan.isUnderWay || isSomethingPassedOver
    return progress
  }

  // MARK: for the jobs

  func engine() throws(TransferError) -> TransferEngine {
    if let engineIfRunning { return engineIfRunning }
    // Before and after: to be loaded and to be initialised libcurl and its libraries touch far more than they need later.
    spoolrun_forget_code()
    defer { spoolrun_forget_code() }
    let engine = try TransferEngine(
      TransferEngine.Options(
        protocols: options.protocols, caFile: options.caFile, userAgent: options.userAgent,
        bytesPerSecond: options.limitRate))
    engineIfRunning = engine
    WorkerLoop.executor.driver = EngineDriver(engine)
    return engine
  }

  func log(_ event: Event) { report(event) }

  func hooks(_ stop: ChildStop) -> Hooks { Hooks(spool: spool, stop: stop) { [report] event in report(event) } }

  /// A failed attempt, as one line for people.
  func failed(_ job: FileName, _ record: FailureRecord) {
    waiting.failed(job, wantsNetwork: record.failure.code.isOfTheWay)
    if let retry = record.retry { nextDue = min(nextDue ?? .max, retry.seconds) }
    log(Event("failed", record.retry == nil ? .error : .warning, job: job, record.facts))
  }

  /// A job can be moved no more, and stays as it is, for the next run to take over. Where the spool itself failed, and not that file alone, this run ends.
  func broke(_ error: any Error, job: FileName) {
    if let error = error as? SpoolError, spool.concernsOneFile(error, in: .cur) {
      return noteBarred(job, "\(error)")
    }
    let spoolError = error as? SpoolError ?? SpoolError(call: .write, path: job.display, errno: .ioError)
    summary.spoolError = summary.spoolError ?? spoolError
    log(Event("broken", .error, job: job, Fields().with("reason", "\(spoolError)")))
  }
}

/// Lets libcurl do the waiting.
private final class EngineDriver: LoopDriver {
  private let engine: TransferEngine
  init(_ engine: TransferEngine) { self.engine = engine }
  func wait(milliseconds: Int32, descriptors: [Int32]) {
    engine.poll(milliseconds: milliseconds, descriptors: descriptors)
  }
}
