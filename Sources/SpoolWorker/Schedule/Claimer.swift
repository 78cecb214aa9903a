internal import Spool
internal import SystemPackage

/// Claims the jobs that the scheduler chose, and reports those that it cannot claim.
@WorkerLoop struct Claimer {
  enum Outcome {
    case claimed(Claim)
    /// It was not claimed, because its URLs are not those that were looked at, and the slot may be another server's: a
    /// person has edited it, another job has got its name, or it had no name while it moved.
    case changed(JobText)
    /// It is due at this time, in seconds since the epoch.
    case due(at: Int64)
    /// The same, and it waits in `partial/` now, under this name.
    case parked(FileName, until: Int64)
    /// Another worker has it, or a running job of this worker has its name.
    case unavailable
    /// It does not fit on the disk. It was not claimed, because there is nothing to record while it waits.
    case lacksSpace(DiskSpace.Shortage)
    /// It is not a valid job and is now in `failed/` under this name. The `failed` hook has to run.
    case rejected(FileName, Fields)
    case left
  }

  private let spool: Spool
  private let environment: JobEnvironment
  private let account: RunAccount
  private var clock: ClaimClock
  private var others: OtherWorkers
  /// A job could not be claimed for lack of space, and none has been claimed since.
  private var isFullTold = false
  /// Seconds between two looks at a claim while heartbeats may be late.
  private static let pause: Int64 = 5

  init(_ spool: Spool, _ environment: JobEnvironment, _ account: RunAccount, _ claims: ClaimReader) {
    (self.spool, self.environment, self.account) = (spool, environment, account)
    clock = ClaimClock(spool)
    others = OtherWorkers(spool, claims)
  }

  /// - Throws: ``SpoolError`` that affects all jobs.
  mutating func claim(_ choice: Choice) throws(SpoolError) -> Outcome {
    let candidate = choice.candidate
    if let needed = choice.peek.needed, let shortage = environment.space.shortage(of: needed) {
      return .lacksSpace(shortage)
    }
    if candidate.origin == .cur, Leases(spool).areBeatsLate { return .due(at: spool.now().seconds + Self.pause) }
    let outcome: ClaimOutcome
    var changed: JobText?
    do throws(SpoolError) {
      outcome = try Claims(spool).claim(
        candidate.name, from: candidate.origin, now: try clock.now(for: candidate),
        knownDue: candidate.knownDue ?? .min
      ) { text in
        if text.request.urls != choice.peek.urls { changed = text }
        return changed == nil
      }
    } catch {
      guard error.isLackOfSpace else { throw error }
      let job = candidate.origin == .cur ? ClaimName(candidate.name)?.job.fileName : nil
      noteUnclaimable(job ?? candidate.name, error)
      return .left
    }
    if let changed { return .changed(changed) }
    switch outcome {
    case .claimed(let claim):
      isFullTold = false
      account.claims.own += 1
      claim.priority = choice.peek.priority
      return try putBackForOutput(claim) ?? .claimed(claim)
    case .unavailable:
      if candidate.origin != .cur { account.claims.lost += 1 }
      return .unavailable
    case .gone:
      if candidate.origin != .cur { account.claims.missed += 1 }
      return .unavailable
    case .leased(let end): return .due(at: soonest(end + 1))
    // Another worker, or this one, has tried it since it was found.
    case .notDue(let due): return .due(at: due)
    case .unfinished(let why, let end):
      // A missing newline is a warning, because the dropper seems to have finished. Once, not at each look.
      if why == .unsettled { account.noteUnsettled(candidate.name, in: candidate.origin) }
      let isNews = why == .lacksNewline && account.noteNewlineMissing(candidate.name)
      log(Event("unfinished", isNews ? .warning : .debug, job: candidate.name, Fields().with("reason", why.reason)))
      return .due(at: soonest(end))
    case .barred(let defect):
      noteBarred(candidate.name, Path(candidate.origin, candidate.name), defect.reason)
      return .left
    case .rejected(let name, let defect):
      let facts = Fields().with("code", FailureCode.malformed.rawValue).with("line", defect.line).with(
        "reason", defect.reason)
      account.summary.givenUp += 1
      log(Event("rejected", .error, job: name, facts))
      return .rejected(name, facts.with("class", FailureCode.Class.permanent.rawValue).with("attempt", 0))
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
      try claim.park(until: awaited.until, first: awaited.reason)
    } catch  where error.isGone {
      try spool.checkDirectories()
      return .unavailable
    }
    let name = claim.job.fileName
    if account.noteOutputAwaited(name) { log(awaited.event(of: name)) }
    return .parked(name, until: awaited.until.seconds)
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

  private func noteBarred(_ name: FileName, _ path: Path, _ reason: String) {
    if account.noteBarred(path) { log(Event("barred", .error, job: name, Fields().with("reason", reason))) }
  }

  /// A job cannot be moved any more. It stays as it is, and the next run takes it over. If the spool itself failed, not
  /// only that file, this run ends.
  func noteBroken(_ error: any Error, job: FileName) {
    let error = error as? SpoolError ?? SpoolError(call: .write, path: job.display, errno: .ioError)
    if spool.concernsOneFile(error, in: .cur) {
      let claim = JobName(job).map { ClaimName.fileName($0, spool.owner) } ?? job
      return noteBarred(job, Path(.cur, claim), "\(error)")
    }
    account.summary.spoolError = account.summary.spoolError ?? error
    // It is reported once, for all jobs.
    if spool.isLost(error) { return }
    log(Event("broken", .error, job: job, Fields().with("reason", "\(error)")))
  }

  private func log(_ event: Event) { environment.log(event) }
}

/// The time by which a claim is judged. Only the age of another host's claim and of a file that may still be written
/// needs the file system's own clock to the second. Reading that clock means writing a file; for the rest it is enough
/// what ``Spool/now()`` knows of it.
private struct ClaimClock {
  private let spool: Spool
  private var read = LastAnswer<String?, Timestamp>()
  /// In milliseconds.
  private static let validity: Int64 = 1000

  init(_ spool: Spool) { self.spool = spool }

  mutating func now(for candidate: Candidate) throws(SpoolError) -> Timestamp {
    let now = spool.now()
    if candidate.origin == .partial || candidate.origin == .standing { return now }
    if candidate.origin == .cur, let owner = ClaimName(candidate.name)?.owner, Leases(spool).sharesLocks(with: owner) {
      return now
    }
    // Old by any clock that is not wrong by hours.
    if candidate.origin.takesNewJobs, candidate.modified + 86_400 < now.seconds { return now }
    return try read.answer(to: nil, at: LoopExecutor.milliseconds(), for: Self.validity) {
      () throws(SpoolError) in
      // So that it is noticed if that clock was set.
      try spool.learnClock()
      return spool.now()
    }
  }
}

/// The outputs of the jobs that other workers of the spool run. Their claims are in `cur/`. Each is read once.
@WorkerLoop private struct OtherWorkers {
  private let spool: Spool
  private let claims: ClaimReader
  private let own: [UInt8]
  private var outputs: [FileName: ExactText?] = [:]
  /// When ``outputs`` was read, in milliseconds of the loop's clock.
  private var readAt: Int64?
  /// For so many milliseconds nobody new is looked for, because each claim of a backlog of small files would read the
  /// directory. Two workers that claim within this time may fetch the same bytes.
  private static let pause: Int64 = 250

  init(_ spool: Spool, _ claims: ClaimReader) {
    (self.spool, self.claims) = (spool, claims)
    own = Array(":\(spool.owner.text)".utf8)
  }

  /// The job of another worker that has the same output, and that output; nil if there is none.
  ///
  /// To be asked after the claim's rename: of two workers that claim at the same time, the later one sees the other's
  /// claim. A worker that died still has its claims, and they come first.
  private mutating func job(like request: JobRequest) throws(SpoolError) -> (name: FileName, output: ExactText)? {
    let now = LoopExecutor.milliseconds()
    let isFresh = readAt.map { now - $0 < Self.pause } ?? false
    // Most workers are alone, and the output is in a URL that has to be parsed.
    if isFresh, outputs.isEmpty { return nil }
    guard let output = JobPlan.rootAndOutput(of: request) else { return nil }
    if isFresh, !outputs.values.contains(output) { return nil }
    readAt = now
    let stream = try spool.stream(.cur)
    var current: [FileName: ExactText?] = [:]
    // For all claims together: if others write many, reading them must not take the time of this worker's transfers.
    let end = now + ClaimReader.patience
    while let name = try stream.next() {
      guard ClaimName(name)?.owner != nil, name.bytes.suffix(own.count) != own[...] else { continue }
      if let known = outputs[name] {
        current[name] = known
      } else if let text = claims.read(name, patience: max(0, end - LoopExecutor.milliseconds())) {
        current[name] = self.output(of: text)
      }
    }
    outputs = current
    let other = outputs.first { $0.value == output }.flatMap { ClaimName($0.key)?.job.fileName }
    return other.map { ($0, output) }
  }

  /// The output for which a claimed job has to wait; nil if it need not wait.
  mutating func awaited(by claim: Claim) throws(SpoolError) -> JobWait? {
    let journal = claim.text.journal
    // Without its last attempt's end, a job may need just its last move, or have data of which nothing is recorded.
    guard claim.origin != .cur, !journal.attempts.isOpen, !claim.isStandingOrder,
      // Otherwise the next claim would not know that it came through `new/` again.
      !claim.origin.takesNewJobs || journal.isEmpty || claim.isRequeueNoted,
      let other = try job(like: claim.text.request)
    else { return nil }
    return JobWait(forOutput: other.output.text, of: other.name, now: spool.now())
  }

  /// A claim that cannot be read is another user's or gone, and no reason to wait.
  private func output(of text: JobText?) -> ExactText? {
    guard let request = text?.request, !request.isStandingOrder else { return nil }
    return JobPlan.rootAndOutput(of: request)
  }
}
