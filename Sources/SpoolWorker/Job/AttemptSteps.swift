internal import Spool

extension Attempt {
  /// All steps of an attempt that succeeds.
  func takeToDone() async throws -> AttemptEnd {
    if let end = try await finishRecordedFailure() { return end }
    let isRequeued = try begin()
    if claim.isStandingOrder { return try await checkOrder() }
    let request = claim.text.request.bounded(by: environment.options)
    if let failure = probation.failure(attempts: request.attempts) { throw failure }
    let plan = try JobPlan(request, protocols: environment.options.protocols)
    let commit = try Commit(claim, plan, environment, account) { [unowned self] whole in
      try await deliver(plan, whole)
    }

    // A job that came through new/ again may have been edited, so what was verified for its old text does not count.
    if !isRequeued, let whole = try await commit.finishInterrupted() { return await succeed(plan, whole) }
    // What is fetched already is still delivered.
    if let expires = request.expires, expires <= claim.spool.now(), !claim.text.journal.publication.awaitsDelivery {
      throw Failure(.expired, "the job expired at \(expires)")
    }
    if let whole = try await commit.acceptExisting() { return await succeed(plan, whole) }
    try commit.checkRoom()

    let resolver = LinkResolver(plan, of: claim, attempt: account.number, environment, hooks)
    let resolved = try await resolve(plan, resolver)
    let data = try await recoverData(resolved)
    try await fetch(resolved, resolver, data)
    // The rest is disk work, so another transfer may have the connection.
    reached(.transferred)
    try await commit.publish(data.part, unproven: data.isLengthUnproven ? "length" : nil)
    return await succeed(plan, data.part.mark)
  }

  /// Counts the attempt and makes sure that the claim's file lacks no line.
  /// - Returns: whether the job came through `new/` again, so that its history does not count.
  private func begin() throws(SpoolError) -> Bool {
    let journal = claim.text.journal
    let isRequeued = claim.origin.takesDrops && !journal.isEmpty
    account.number = (isRequeued ? 0 : journal.attempts.failures) + 1
    // A failed fsync has lost journal lines, or may have done so in a worker that died before it recorded the failure.
    if claim.isTakenOver || journal.data.lostWrites { try claim.renew() }
    // Otherwise the claim already contains this line.
    if isRequeued, !claim.isRequeueNoted { try claim.append(.requeued(.now())) }
    if probation.deaths > 0 { log(Event("suspected", .info, job: name, Fields().with("deaths", probation.deaths))) }
    return isRequeued
  }

  /// Opens the data of earlier attempts, and cuts off what cannot be trusted.
  private func recoverData(_ plan: JobPlan) async throws -> PartData {
    let recovered = try await DataRecovery(claim, plan, environment).run()
    let data = recovered.data
    // Before anything can fail, because the data has reserved disk space.
    self.data = data
    trust = .sound
    // Bytes fetched by a worker that was killed before it recorded them.
    account.fetched += recovered.unrecorded
    account.lengthAtStart = data.part.length
    // The journal names the data's inode, so a change of inode is journaled.
    if let version = data.version, claim.text.journal.data.part != data.part.inode { try data.begin(version) }
    return data
  }

  private func fetch(_ plan: JobPlan, _ resolver: LinkResolver?, _ data: PartData) async throws {
    let verification = Verification(plan, data, environment, hooks)
    let download = Download(plan, resolver, data, environment, account, checkpointer, verification, requests: id << 6) {
      [unowned self] in
      probation.begin(at: LoopExecutor.milliseconds())
    }
    self.download = download
    defer { self.download = nil }
    checkpointer.isAllowed = true
    defer { checkpointer.isAllowed = false }
    let (began, before) = (LoopExecutor.milliseconds(), account.fetched)
    try await orStopped { try await download.run() }
    account.transfer = (account.fetched - before, LoopExecutor.milliseconds() - began)
    // A later checkpoint would write after the receipt, or, after the move, to another file that has reused the
    // descriptor's number.
    checkpointer.isAllowed = false
    await checkpointer.finish()
    if let stopped { throw stopped }
  }

  func clear() {
    log(Event("cleared", .info, job: name, Fields().with("deaths", probation.deaths)))
    reached(.cleared)
  }
}
