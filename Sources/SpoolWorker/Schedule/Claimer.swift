internal import Spool
internal import SystemPackage

/// Claims the jobs that the scheduler chose, and reports those that it cannot claim.
@WorkerLoop
struct Claimer {
  enum Outcome {
    case claimed(Claim)
    /// It is due at this time, in seconds since the epoch.
    case due(at: Int64)
    /// The same, and it waits in `partial/` now.
    case parked(until: Int64)
    /// Another worker has it, or a running job of this worker has its name.
    case unavailable
    /// It does not fit on the disk. It was not claimed, because there is nothing to record while it waits.
    case lacksSpace(DiskSpace.Shortage)
    /// It is not a valid job and is now in `failed/` under this name. The `failed` hook has to run.
    case rejected(FileName, Fields)
    /// Nothing more can be done for it now.
    case left
  }

  private let spool: Spool
  private let environment: JobEnvironment
  private let account: RunAccount
  private var clock: ClaimClock
  private var others: OtherWorkers
  /// A job could not be claimed for lack of space, and none has been claimed since.
  private var isFullTold = false

  init(_ spool: Spool, _ environment: JobEnvironment, _ account: RunAccount, _ claims: ClaimReader) {
    self.spool = spool
    self.environment = environment
    self.account = account
    clock = ClaimClock(spool)
    others = OtherWorkers(spool, claims)
  }

  /// - Throws: ``SpoolError`` that affects all jobs.
  mutating func claim(_ choice: Choice) throws(SpoolError) -> Outcome {
    let candidate = choice.candidate
    if let needed = choice.peek.needed, let shortage = environment.space.shortage(of: needed) {
      return .lacksSpace(shortage)
    }
    if candidate.origin == .cur, clock.hasJustWoken() { return .due(at: spool.now().seconds + ClaimClock.waking) }
    let outcome: ClaimOutcome
    do throws(SpoolError) {
      outcome = try spool.claim(
        candidate.name, from: candidate.origin, now: try clock.now(for: candidate), isForced: candidate.isForced)
    } catch {
      guard error.isLackOfSpace else { throw error }
      noteUnclaimable(candidate.name, error)
      return .left
    }
    switch outcome {
    case .claimed(let claim):
      isFullTold = false
      account.noteClaimed()
      claim.priority = choice.peek.priority
      return try putBackForOutput(claim) ?? .claimed(claim)
    case .unavailable:
      if candidate.origin != .cur { account.noteLost() }
      return .unavailable
    case .gone:
      if candidate.origin != .cur { account.noteMissed() }
      return .unavailable
    case .leased(let end): return .due(at: soonest(end + 1))
    // Another worker, or this one, has tried it since it was found.
    case .notDue(let due): return .due(at: due)
    case .unfinished(let why, let end):
      // A missing newline is a warning, because the dropper seems to have finished. Once, not at each look.
      if why == .unsettled { account.noteUnsettled(candidate.name, in: candidate.origin) }
      let isNews = why == .lacksNewline && account.noteNewlineMissing(candidate.name)
      log(
        Event(
          "unfinished", isNews ? .warning : .debug, job: candidate.name, Fields().with("reason", why.reason)))
      return .due(at: soonest(end))
    case .barred(let defect):
      noteBarred(candidate.name, defect.reason)
      return .left
    case .rejected(let name, let defect):
      let facts = Fields().with("code", FailureCode.malformed.rawValue).with("line", defect.line).with(
        "reason", defect.reason)
      account.noteRejected()
      log(Event("rejected", .error, job: name, facts))
      return .rejected(name, facts.with("attempt", 0))
    }
  }

  /// Not before the next second, because what was waited for may end by a clock that is read once a second.
  private func soonest(_ end: Int64) -> Int64 { max(end, spool.now().seconds + 1) }

  /// Puts the job back if another worker has a job with the same output, because both would fetch the same bytes. It is
  /// looked at again every few seconds.
  /// - Returns: nil if there is no such job.
  private mutating func putBackForOutput(_ claim: Claim) throws(SpoolError) -> Outcome? {
    guard let awaited = try others.awaited(by: claim) else { return nil }
    do throws(SpoolError) {
      try claim.wait(for: awaited)
    } catch  where error.isGone {
      return .unavailable
    }
    let name = claim.job.fileName
    if account.noteOutputAwaited(name) {
      log(Event("waits-for-output", .info, job: name, awaited.facts))
    }
    return .parked(until: awaited.until.seconds)
  }

  func tell(_ shortage: DiskSpace.Shortage, of choice: Choice) {
    let fields = Fields().with("needed", shortage.needed).with("free", shortage.free).with("min-free", shortage.kept)
    log(Event("waits-for-room", .info, job: choice.candidate.name, fields))
  }

  /// There is no space even to record a failure. The job waits, because other jobs may need no space, and running ones
  /// may free some.
  private mutating func noteUnclaimable(_ name: FileName, _ error: SpoolError) {
    account.noteUnclaimable(name)
    if !isFullTold { log(Event("broken", .error, job: name, Fields().with("reason", "\(error)"))) }
    isFullTold = true
  }

  private func noteBarred(_ name: FileName, _ reason: String) {
    if account.noteBarred(name) { log(Event("barred", .error, job: name, Fields().with("reason", reason))) }
  }

  /// A job cannot be moved any more. It stays as it is, and the next run takes it over. If the spool itself failed, not
  /// only that file, this run ends.
  func noteBroken(_ error: any Error, job: FileName) {
    let error = error as? SpoolError ?? SpoolError(call: .write, path: job.display, errno: .ioError)
    if spool.concernsOneFile(error, in: .cur) { return noteBarred(job, "\(error)") }
    account.summary.spoolError = account.summary.spoolError ?? error
    // It is reported once, for all jobs.
    if spool.isLost(error) { return }
    log(Event("broken", .error, job: job, Fields().with("reason", "\(error)")))
  }

  private func log(_ event: Event) { environment.log(event) }
}
