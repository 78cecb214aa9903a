internal import Spool
internal import SystemPackage

/// Claims the jobs that the schedule chose, and tells what became of those that it cannot have.
@WorkerLoop
struct Claimer {
  enum Outcome {
    case claimed(Claim)
    /// Its time comes at this second since the epoch.
    case due(at: Int64)
    /// Another worker has it, or a running job of this one has its name.
    case lost
    /// It is known not to fit on the disk. It was not claimed, because one that waits for space has nothing to record.
    case lacksSpace(DiskSpace.Shortage)
    /// It is no job, and lies in `failed/` under this name now: the hook `failed` is to be told.
    case rejected(FileName, Fields)
    /// There is nothing more to do about it for now.
    case left
  }

  private let spool: Spool
  private let environment: JobEnvironment
  private let account: RunAccount
  private var clock: ClaimClock
  /// A job could not be claimed for want of space, and none was since.
  private var isFullTold = false

  init(_ spool: Spool, _ environment: JobEnvironment, _ account: RunAccount) {
    self.spool = spool
    self.environment = environment
    self.account = account
    clock = ClaimClock(spool)
  }

  /// - Throws: ``SpoolError`` for what would stop every job.
  mutating func claim(_ choice: Choice) throws(SpoolError) -> Outcome {
    let candidate = choice.candidate
    if let needed = choice.peek.needed, let shortage = environment.space.shortage(of: needed) {
      return .lacksSpace(shortage)
    }
    let outcome: ClaimOutcome
    do throws(SpoolError) {
      outcome = try spool.claim(
        candidate.name, from: candidate.origin, now: try clock.now(for: candidate), isForced: candidate.isForced)
    } catch {
      guard error.isWantOfRoom else { throw error }
      noteUnclaimable(candidate.name, error)
      return .left
    }
    switch outcome {
    case .claimed(let claim):
      isFullTold = false
      return .claimed(claim)
    case .lost: return .lost
    // Another worker has tried it since it was found, or this one has.
    case .notDue(let due): return .due(at: due)
    case .unfinished:
      log(Event("unfinished", .debug, job: candidate.name))
      return .due(at: Timestamp.now().seconds + Spool.settlingTime)
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

  func tell(_ shortage: DiskSpace.Shortage, of choice: Choice) {
    let fields = Fields().with("needed", shortage.needed).with("free", shortage.free).with("min-free", shortage.kept)
    log(Event("waits-for-room", .info, job: choice.candidate.name, fields))
  }

  /// Neither the job nor what is wrong with it can be written down. It waits; others may need no space, and what runs
  /// may make some.
  private mutating func noteUnclaimable(_ name: FileName, _ error: SpoolError) {
    account.noteUnclaimable(name)
    if !isFullTold { log(Event("broken", .error, job: name, Fields().with("reason", "\(error)"))) }
    isFullTold = true
  }

  private func noteBarred(_ name: FileName, _ reason: String) {
    if account.noteBarred(name) { log(Event("barred", .error, job: name, Fields().with("reason", reason))) }
  }

  /// A job can be moved no more, and stays as it is, for the next run to take over. Where the spool itself failed, and
  /// not that file alone, this run ends.
  func noteBroken(_ error: any Error, job: FileName) {
    let error = error as? SpoolError ?? SpoolError(call: .write, path: job.display, errno: .ioError)
    if spool.concernsOneFile(error, in: .cur) { return noteBarred(job, "\(error)") }
    account.summary.spoolError = account.summary.spoolError ?? error
    log(Event("broken", .error, job: job, Fields().with("reason", "\(error)")))
  }

  private func log(_ event: Event) { environment.log(event) }
}
