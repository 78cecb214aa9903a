internal import Spool

extension Attempt {
  /// The whole way of a job that succeeds.
  func takeToDone() async throws -> AttemptEnd {
    if let end = try await finishRecordedFailure() { return end }
    let isRequeued = try begin()
    let request = claim.text.request.bounded(by: environment.options)
    if let failure = probation.failure(attempts: request.attempts) { throw failure }
    let plan = try JobPlan(request, protocols: environment.options.protocols)
    let commit = Commit(claim, plan, environment, account)

    // A job that comes anew may have been edited: what was verified for its old text proves nothing.
    if !isRequeued, let whole = try await commit.finishInterrupted() { return await succeed(plan, whole) }
    if let expires = request.expires, expires <= .now() { throw Failure(.expired, "the job expired at \(expires)") }
    if let whole = try await commit.acceptExisting() { return await succeed(plan, whole) }

    let data = try await recoverData(plan)
    try await fetch(plan, data)
    // From here on it is the disk's turn: another transfer may have the connection.
    reached(.transferred)
    try await commit.publish(data.part, unproven: data.isLengthUnproven ? "length" : nil)
    return await succeed(plan, data.part.mark)
  }

  /// Counts the attempt and makes the claim's file trustworthy.
  /// - Returns: whether the job comes through `new/` again, and its history counts no more.
  private func begin() throws(SpoolError) -> Bool {
    let journal = claim.text.journal
    let isRequeued = claim.origin == .new && !journal.isEmpty
    account.number = (isRequeued ? 0 : journal.attempts.failures) + 1
    // A failed fsync is known to have lost lines of the journal, or may have done so unknown to all but a dead worker.
    if claim.isTakenOver || journal.data.lostWrites { try claim.renew() }
    // Else the claim has it already.
    if isRequeued, !claim.isRequeueNoted { try claim.append(.requeued(.now())) }
    if probation.deaths > 0 { log(Event("suspected", .info, job: name, Fields().with("deaths", probation.deaths))) }
    return isRequeued
  }

  /// The data that earlier attempts left, as far as it is to be trusted, ready to grow.
  private func recoverData(_ plan: JobPlan) async throws -> PartData {
    let recovered = try await DataRecovery(claim, plan, environment).run()
    let data = recovered.data
    // Before anything can fail: it takes part in the disk's space.
    self.data = data
    trust = .sound
    // What a worker fetched that was killed before it could record it.
    account.fetched += recovered.unrecorded
    account.lengthAtStart = data.part.length
    // The journal names the data's inode: after a change of inode it has to name the new one.
    if let version = data.version, claim.text.journal.data.part != data.part.inode { try data.begin(version) }
    return data
  }

  private func fetch(_ plan: JobPlan, _ data: PartData) async throws {
    let verification = Verification(plan, data, environment, hookStop: hookStop)
    let download = Download(plan, data, environment, account, checkpointer, verification, requests: id << 6) {
      [unowned self] in
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
    reached(.transferred)
    log(Event("done", .info, job: name, Fields().with("output", plan.output.text)))
    await environment.tellDone(name, plan, whole, in: claim.spool, hookStop)
    return AttemptEnd(.done)
  }

  /// Tells the `failed` hook of a job that is given up.
  func tellGivenUp(_ job: FileName, _ record: Fields) async {
    reached(.transferred)
    await environment.tellFailed(job, record, in: claim.spool, hookStop)
  }

  func clear() {
    log(Event("cleared", .info, job: name, Fields().with("deaths", probation.deaths)))
    reached(.cleared)
  }
}
