internal import Spool

/// One attempt at a claimed job: claim → recover → plan → transfer → verify → commit → record.
@WorkerLoop
final class Attempt {
  /// What the schedule is told while the attempt goes on.
  enum Milestone: Sendable {
    /// It has run for long enough to show that it kills no worker.
    case cleared
    /// It needs its connection no more.
    case transferred
  }

  let claim: Claim
  let id: UInt64
  let environment: JobEnvironment
  let account = AttemptAccount()
  let hookStop = ChildStop()
  private(set) lazy var checkpointer = Checkpointer(claim, environment) { [unowned self] in checkpointFailed($0) }
  /// The data, from its recovery to the attempt's end.
  var data: PartData?
  var trust: Trust
  var stopped: JobStop?
  var download: Download?
  var probation: Probation
  var lastHeartbeat = LoopExecutor.milliseconds()
  private let note: (Milestone) -> Void

  /// - Parameters:
  ///   - id: tells this attempt from all others of the worker, and its requests from theirs.
  ///   - note: called at each milestone.
  init(_ claim: Claim, id: UInt64, _ environment: JobEnvironment, note: @escaping (Milestone) -> Void) {
    self.claim = claim
    self.id = id
    self.environment = environment
    self.note = note
    trust = claim.isTakenOver ? .doubtful : .sound
    probation = Probation(
      deaths: claim.origin == .new ? 0 : claim.text.journal.deaths(askedBy: claim.spool.owner),
      period: environment.options.probation)
  }

  var name: FileName { claim.job.fileName }

  /// Takes the job to `done/`, or ends the attempt in another way; throws nothing, because each trouble has its ending.
  func run() async -> AttemptEnd {
    defer { data?.leaveSpace() }
    do {
      return try await takeToDone()
    } catch {
      if let loss = error as? LostWrites { trust = .lost(loss.error) }
      return await end(Ending.Cause(error))
    }
  }

  /// The whole way of a job that succeeds.
  private func takeToDone() async throws -> AttemptEnd {
    if let end = try await finishRecordedFailure() { return end }
    let isRequeued = try begin()
    let request = claim.text.request.bounded(by: environment.options)
    if let failure = Suspicion.failure(probation.deaths, attempts: request.attempts) { throw failure }
    let plan = try JobPlan(request, protocols: environment.options.protocols)
    let commit = Commit(claim, plan, environment, account)

    // A job that comes anew may have been edited: what was verified for its old text proves nothing.
    if !isRequeued, let whole = try await commit.finishInterrupted() { return await succeed(plan, whole) }
    if let expires = request.expires, expires <= .now() { throw Failure(.expired, "the job expired at \(expires)") }
    if let whole = try await commit.acceptExisting() { return await succeed(plan, whole) }

    let data = try await recoverData(plan)
    try await fetch(plan, data)
    // From here on it is the disk's turn: another transfer may have the connection.
    note(.transferred)
    try await commit.publish(data.part, unproven: data.isLengthUnproven ? "length" : nil)
    return await succeed(plan, data.part.mark)
  }

  /// Counts the attempt and makes the claim's file trustworthy.
  /// - Returns: whether the job comes through `new/` again, and its history counts no more.
  private func begin() throws(SpoolError) -> Bool {
    let journal = claim.text.journal
    let isRequeued = claim.origin == .new && !journal.isEmpty
    account.number = (isRequeued ? 0 : journal.failures) + 1
    // A failed fsync is known to have lost lines of the journal, or may have done so unknown to all but a dead worker.
    if claim.isTakenOver || journal.lostWrites { try claim.renew() }
    // Else the claim has it already.
    if isRequeued, !claim.isRequeueNoted { try claim.append(.requeued(.now())) }
    if probation.deaths > 0 { log(Event("suspected", .info, job: name, Fields().with("deaths", probation.deaths))) }
    return isRequeued
  }

  /// The data that earlier attempts left, as far as it is to be trusted, ready to grow.
  private func recoverData(_ plan: JobPlan) async throws -> PartData {
    let recovered = try await DataRecovery(claim, plan, environment).run()
    trust = .sound
    // What a worker fetched that was killed before it could record it.
    account.fetched += recovered.unrecorded
    let data = PartData(
      claim: claim, request: plan.request, part: recovered.part, version: recovered.version,
      space: environment.space, blocks: environment.blocks)
    // Before anything can fail: from now on it takes part in the disk's space.
    self.data = data
    account.lengthAtStart = recovered.part.length
    // The journal names the data's inode: after a change of inode it has to name the new one.
    if let version = data.version, claim.text.journal.part != data.part.inode { try data.begin(version) }
    return data
  }

  private func fetch(_ plan: JobPlan, _ data: PartData) async throws {
    let download = Download(
      plan, data, environment, account, checkpointer, requests: id << 6, hookStop: hookStop
    ) { [unowned self] in
      probation.begin(at: LoopExecutor.milliseconds())
    }
    self.download = download
    defer { self.download = nil }
    checkpointer.isAllowed = true
    defer { checkpointer.isAllowed = false }
    do {
      if let stopped { throw stopped }
      try await download.run()
    } catch {
      // The download knows that it was stopped, and this attempt for what.
      throw stopped ?? error
    }
    // A checkpoint that came later would write behind the receipt, or after the move into whatever has the descriptor's
    // number then.
    checkpointer.isAllowed = false
    await checkpointer.finish()
    if let stopped { throw stopped }
  }

  private func succeed(_ plan: JobPlan, _ whole: Mark) async -> AttemptEnd {
    // While the hook runs another transfer may have the connection.
    note(.transferred)
    log(Event("done", .info, job: name, Fields().with("output", plan.output.text)))
    let spool = claim.spool
    _ = await environment.hooks(of: spool, hookStop).run(.done, job: name, environment.facts(plan, whole, in: spool))
    return AttemptEnd(.done)
  }

  /// Tells the `failed` hook of a job that is given up.
  func tellGivenUp(_ job: FileName, _ record: Fields) async {
    note(.transferred)
    _ = await environment.hooks(of: claim.spool, hookStop).run(.failed, job: job, Hooks.failure(record))
  }

  func clear() {
    log(Event("cleared", .info, job: name, Fields().with("deaths", probation.deaths)))
    note(.cleared)
  }

  func log(_ event: Event) { environment.log(event) }
}

extension Claim {
  /// Whether whoever worked on the job last could not say how that ended, wherever the job was moved since.
  var isTakenOver: Bool { origin == .cur || text.journal.hasOpenAttempt }
}
