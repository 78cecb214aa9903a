internal import Spool
internal import Transfer

/// One attempt at a claimed job: claim → plan → recover → transfer → verify → commit → record.
@WorkerLoop final class Attempt {
  enum Milestone: Sendable {
    /// It has run long enough to show that it does not kill the worker.
    case cleared
    /// It no longer needs its connection, which another transfer may have: only disk work and hooks are left.
    case transferred
  }

  let claim: Claim
  let id: UInt64
  let environment: JobEnvironment
  let account: AttemptAccount
  let hookStop = ChildStop()
  private(set) lazy var hooks = environment.hooks(of: claim.spool, hookStop)
  private(set) lazy var checkpointer = Checkpointer(claim, environment) { [unowned self] in
    checkpointFailed($0, hasLostWrites: $1)
  }
  private var signature: [UInt8]?
  /// The data, from its recovery to the end of the attempt.
  var data: PartData?
  var trust: Trust
  var stopped: JobStop?
  var transfer: (any RunningTransfer)?
  var probation: Probation
  var lastHeartbeat = LoopExecutor.milliseconds()
  private let firstURL: URLParts?
  private let reached: (Milestone) -> Void
  private let checkOrder: @WorkerLoop (Attempt) async throws -> AttemptEnd

  /// - Parameter id: unique among the worker's attempts; the ids of its requests derive from it.
  /// - Parameter firstURL: that of the claimed job, if it has been read already.
  init(
    _ claim: Claim, id: UInt64, _ environment: JobEnvironment, firstURL: URLParts?,
    checkOrder: @escaping @WorkerLoop (Attempt) async throws -> AttemptEnd, reached: @escaping (Milestone) -> Void
  ) {
    (self.claim, self.id, self.environment, self.checkOrder) = (claim, id, environment, checkOrder)
    (self.firstURL, self.reached) = (firstURL, reached)
    account = AttemptAccount(began: claim.spool.now())
    trust = claim.isTakenOver ? .doubtful : .sound
    probation = Probation(
      deaths: claim.history.attempts.deaths(askedBy: claim.spool.owner, isLastFrozen: claim.formerOwner == .mayWake),
      period: environment.options.probation)
  }

  var name: FileName { claim.job.fileName }

  /// Takes the job to `done/`, or ends the attempt otherwise. Throws nothing, because each error leads to an
  /// ``Ending``.
  func run() async -> AttemptEnd {
    defer {
      data?.leaveSpace()
      // The cookies that servers set during the attempt.
      environment.startedEngine?.forget(id << 6)
    }
    do {
      return try await takeToDone()
    } catch {
      noteLoss(error)
      return await self.end(error)
    }
  }

  func log(_ event: Event) { environment.log(event) }
}

extension Attempt {
  // To call an asynchronous function takes a thousand instructions. Steps that few jobs have are asked for here.
  private func takeToDone() async throws -> AttemptEnd {
    if claim.origin == .cur, claim.text.journal.attempts.endsInFailure { return try await finishRecordedFailure() }
    let isRequeued = try begin()
    if claim.isStandingOrder { return try await checkOrder(self) }
    let request = claim.text.request.bounded(by: environment.options)
    if let failure = probation.failure(attempts: request.attempts) { throw failure }
    // What is published is still delivered, whatever is allowed by now.
    let isPublished = claim.text.journal.publication.awaitsDelivery
    let isRefused = environment.options.defaults.requiresSignature == true && !request.isSigned
    if isRefused, !isPublished { throw Failure.unsigned }
    let pieces = if let key = request.expected.pieces { try await readPieces(key) } else { PieceResult.success(nil) }
    let protocols = environment.options.protocols
    let plan = try JobPlan(
      request, protocols: protocols, isPublished: isPublished, pieces: try? pieces.get(), first: firstURL)
    let commit = try Commit(claim, plan, environment, account) { [unowned self] payload, outputs in
      try await deliver(plan, payload, in: outputs.location)
    }
    let place = commit.outputs.location
    if isPublished { try await commit.withdrawPayloadElsewhere() }
    // A job that came through new/ again may have been edited, so what was verified for its old text does not count.
    let isVerified = !isRequeued && claim.text.journal.publication.verified != nil
    if isVerified, let payload = try await commit.finishInterrupted() { return await succeed(plan, payload, in: place) }
    // What is verified already needs no list.
    _ = try pieces.get()
    if let expires = request.expires, expires <= claim.spool.now(), !isPublished {
      throw Failure(.expired, "the job expired at \(expires)")
    }
    if try commit.isOutputThere, let payload = try await commit.acceptExisting() {
      return await succeed(plan, payload, in: place)
    }
    if isRefused { throw Failure.unsigned }
    try commit.checkRoom()

    let resolver = LinkResolver(plan, of: claim, attempt: account.number, environment, hooks)
    let resolved = if let resolver { try await orStopped { try await resolver.ask() } } else { plan }
    // Before the data is opened and read.
    try AttemptContext(claim, environment, attempt: id, request).wait(for: resolved.mirrors)
    if plan.request.signature != nil { signature = try await fetchSignature(plan.request) }
    let data = try await recoverData(resolved)
    try await fetchAndVerify(resolved, resolver, data, in: place)
    reached(.transferred)
    let unproven = data.isLengthUnproven ? "length" : nil
    let payload = try await commit.publish(data.part, unproven: unproven, signed: data.signed)
    return await succeed(plan, payload, in: place)
  }

  private typealias PieceResult = Result<PieceList?, Failure>

  private func readPieces(_ key: PieceKey) async throws -> PieceResult {
    do {
      return .success(try await runBlocking { [spool = claim.spool] in try PieceLists(spool).list(key) })
    } catch let failure as Failure {
      return .failure(failure)
    }
  }

  /// Counts the attempt and makes sure that the claim's file lacks no line.
  /// - Returns: whether the job came through `new/` again, so that its history does not count.
  private func begin() throws(SpoolError) -> Bool {
    let journal = claim.text.journal
    let isRequeued = claim.origin.takesNewJobs && !journal.isEmpty
    account.number = (isRequeued ? 0 : journal.attempts.failures) + 1
    // A failed fsync has lost journal lines, or may have done so in a worker that died before it recorded the failure.
    // A claim that was taken over is a copy already.
    if claim.origin != .cur, claim.isTakenOver || journal.data.lostWrites { try claim.renew() }
    // Otherwise the claim already contains this line.
    if isRequeued, !claim.isRequeueNoted { try claim.append(.requeued(claim.spool.now())) }
    if probation.deaths > 0 { log(Event("suspected", .info, job: name, Fields().with("deaths", probation.deaths))) }
    return isRequeued
  }

  /// Opens the data of earlier attempts, and cuts off what cannot be trusted.
  private func recoverData(_ plan: JobPlan) async throws -> PartData {
    let recovery = DataRecovery(claim: claim, plan: plan, environment: environment)
    let recovered = try await recovery.run()
    let data = recovered.data
    // Before anything can fail, because the data has reserved disk space.
    self.data = data
    trust = .sound
    // Bytes fetched by a worker that was killed before it recorded them.
    account.fetched += recovered.unrecorded
    // The journal names the data's inode, so a change of inode is journaled.
    if claim.text.journal.data.part != data.part.inode { try data.noteInode() }
    if plan.pieces != nil { try await recovery.takeReplaced(into: data) }
    account.lengthAtStart = data.part.length
    return data
  }

  private func fetchAndVerify(
    _ plan: JobPlan, _ resolver: LinkResolver?, _ data: PartData, in directory: String?
  ) async throws {
    let verification = Verification(
      plan: plan, directory: directory, data: data, environment: environment, hooks: hooks, signature: signature
    ) { [unowned self] in try await fetchSignature(plan.request) }
    let context = AttemptContext(claim, environment, attempt: id, plan.request)
    let transfer = JobFetch(plan, resolver, data, context, account, checkpointer, verification) {
      [unowned self] in probation.begin(at: Host.current.awakeMilliseconds())
    }
    self.transfer = transfer
    defer { self.transfer = nil }
    checkpointer.isAllowed = true
    defer { checkpointer.isAllowed = false }
    let (began, before) = (LoopExecutor.milliseconds(), account.fetched)
    try await orStopped { try await transfer.run() }
    account.transfer = (account.fetched - before, LoopExecutor.milliseconds() - began)
    // A later checkpoint would write after the receipt, or, after the move, to another file that has reused the
    // descriptor's number.
    checkpointer.isAllowed = false
    if checkpointer.isBusy { await checkpointer.finish() }
    if let stopped { throw stopped }
  }

  /// Fetches the signature of the payload, or of a standing order's list, before what is signed: it is small.
  /// - Returns: nil if the job asks for none, or the list has it in itself.
  /// - Throws: `bad-response` for what is none, such as a page.
  func fetchSignature(_ request: JobRequest) async throws -> [UInt8]? {
    guard let url = request.signature, url.text != JobRequest.inlineSignature else { return nil }
    var request = request
    request.urls = [url]
    let mirrors = try MirrorURL.all(of: request, environment.options.protocols)
    let file = try ScratchFile(claim.spool)
    let context = AttemptContext(claim, environment, attempt: id, request)
    let fetch = ListFetch(.signature, request, mirrors, context)
    let outer = transfer
    transfer = fetch
    defer {
      account.fetched += fetch.fetched
      transfer = outer
    }
    _ = try await orStopped { try await fetch.run(into: file) }
    let signature = try file.contents(limit: SignatureCheck.longest)
    if SignatureForm(signature) == nil { throw Failure(.badResponse, SignatureForm.missing) }
    return signature
  }
}

extension Attempt {
  private func end(_ cause: any Error) async -> AttemptEnd {
    await checkpointer.finish()
    var (ending, problem) = (Ending.decide(cause, ownership, fullTrust), Ending.problem(cause))
    while true {
      do {
        return try await perform(ending, problem)
      } catch {
        if !claim.isOpen { problem = error }
        // A person can move or remove the job between any two steps. Then the attempt ends because of that, and the
        // error is no failure.
        let next = Ending.decide(cause, ownership, fullTrust)
        guard ending.needsClaim, !next.needsClaim else { return AttemptEnd(.waiting, problem: error) }
        ending = next
      }
    }
  }

  private var fullTrust: Trust { trust.joined(with: claim.lostWrites) }

  /// nil after the claim's last move.
  private var ownership: Claim.Ownership? {
    guard claim.isOpen else { return nil }
    // If the ownership cannot be determined, the attempt ends with its first error.
    do throws(SpoolError) { return try claim.ownership() } catch { return .ours }
  }

  private func perform(_ ending: Ending, _ problem: any Error) async throws -> AttemptEnd {
    switch ending {
    case .fail(let failure): return try await fail(failure)
    case .park(let reason): return try park(reason)
    case .wait(let wait): return try self.wait(wait)
    case .letGo(let owner): return try letGo(owner)
    case .doubtMove: return doubtMove(problem)
    case .leaveReceipt: return AttemptEnd(.waiting, problem: problem)
    }
  }

  /// The claim's file is in its new place, but what was written to it may be lost (close(2), on a network file system).
  private func doubtMove(_ problem: any Error) -> AttemptEnd {
    let fate: AttemptEnd.Fate = claim.endDirectory == .failed ? .givenUp : .waiting
    // A full disk stops no other job.
    guard (problem as? SpoolError)?.isLackOfSpace == true else { return AttemptEnd(fate, problem: problem) }
    log(Event("broken", .error, job: name, Fields().with("reason", "\(problem)")))
    return AttemptEnd(fate)
  }

  // MARK: failure

  private func fail(_ failure: Failure) async throws -> AttemptEnd {
    // A file that is too large ends the job, so it leaves no data.
    if !failure.keepsData || failure.code == .tooLarge { try data?.dropData(after: failure.code) }
    if data == nil, failure.code == .tooLarge { try claim.removeData() }
    let record = try write(failure)
    // Before the job appears in its new directory, where another worker may claim it: a claim without data starts from
    // 0.
    try closeData()
    if let retry = record.retry { try claim.park(until: retry) } else { try claim.giveUp() }
    // It may have another number now.
    let job = name
    let isNews = environment.servers.isNews(record)
    log(Event("failed", isNews ? record.eventLevel : .info, job: job, record.facts))
    guard let retry = record.retry else {
      if isNews { await tellGivenUp(job, record.facts) }
      return AttemptEnd(.givenUp)
    }
    var end = AttemptEnd(.waiting, retry: retry)
    end.isOrder = claim.isStandingOrder
    end.awaited = environment.servers.awaited(after: record.failure, of: claim.text.request)
    return end
  }

  /// When the job, or the standing order, is tried again after a failure; nil if it is given up.
  /// - Parameter failures: how often it has failed, including this time.
  private func nextAttempt(after failure: Failure, failures: Int) -> Timestamp? {
    var random = HostRandom()
    let jitter = Double.random(in: 0...1, using: &random)
    var request = claim.text.request
    let (now, deferrals) = (claim.spool.now(), claim.history.attempts.deferrals)
    if let every = request.standing.every {
      return RetryDecision.ofOrder(
        failure, failures: failures, deferrals: deferrals, every: every, now: now, jitter: jitter)
    }
    request = request.inheriting(environment.options.defaults)
    // What is published is delivered, however late.
    if failure.code == .deliver { request.expires = nil }
    return RetryDecision.decide(
      failure, failures: failures, deferrals: deferrals, countsEach: environment.options.countsEachFailure,
      request: request, now: now, jitter: jitter)
  }

  private func write(_ failure: Failure) throws(SpoolError) -> FailureRecord {
    let journal = claim.history
    let attempts = journal.attempts
    let failure = RetryDecision.believed(failure, mismatches: attempts.mismatches, last: attempts.lastFailure)
    // Deliveries have attempts of their own.
    let number = failure.code == .deliver ? journal.attempts.failedDeliveries + 1 : account.number
    let retry = nextAttempt(after: failure, failures: number)
    let mark = data.flatMap { $0.part.length > 0 && !$0.isStale ? $0.part.mark : nil }
    let record = FailureRecord(
      time: claim.spool.now(), attempt: number, failure: failure, trust: fullTrust, mark: mark,
      fetched: account.fetched, broken: mark.flatMap { _ in data?.doubt?.floor }, retry: retry)
    try append(record)
    return record
  }

  private func append(_ record: FailureRecord) throws(SpoolError) {
    do throws(SpoolError) {
      try claim.forgetFailedChecks(beyond: 256 << 10)
      try claim.append(.failed(record))
      try claim.compact(beyond: environment.options.longJournal)
    } catch {
      guard error.isLackOfSpace, claim.lostWrites == nil else { throw error }
      // There is no space even for the record. The move and its mtime need none, and the log has the facts. But later
      // attempts must not trust data that a failed fsync lost, so that data is cut off.
      if record.trust.isLost { try data?.cutToCheckpoint() }
    }
  }

  /// Moves a job whose failure is recorded, if a crash came between the record and the move.
  private func finishRecordedFailure() async throws -> AttemptEnd {
    let journal = claim.text.journal
    if try claim.dataStatus()?.size == 0 { try claim.removeData() }
    let record = journal.attempts.lastFailure ?? Fields()
    let retry = record["retry"].flatMap { Timestamp($0) }
    if let retry { try claim.park(until: retry) } else { try claim.giveUp() }
    let job = name
    // The worker that wrote the record died before it logged the failure.
    var facts = Fields()
    for (key, value) in FailureRecord.facts(of: record).named { facts = facts.with(key, escaped(value)) }
    log(Event("failed", retry == nil ? .error : .warning, job: job, facts))
    if retry != nil { return AttemptEnd(.waiting) }
    await tellGivenUp(job, record)
    return AttemptEnd(.givenUp)
  }

  // MARK: no failure

  private func park(_ reason: String) throws -> AttemptEnd {
    let mark = try noteInterrupted(reason)
    try closeData()
    try claim.park(until: claim.spool.now())
    log(Event("parked", .info, job: name, Fields().with("at", mark.offset).with("reason", reason)))
    return AttemptEnd(.waiting)
  }

  private func wait(_ wait: JobWait) throws -> AttemptEnd {
    let mark = lastMark
    if data == nil, !claim.isStandingOrder {
      try claim.park(until: wait.until, first: wait.reason)
    } else {
      _ = try noteInterrupted(wait.reason)
      try closeData()
      try claim.park(until: wait.until)
    }
    log(wait.event(of: name, at: mark.offset))
    var end = AttemptEnd(.waiting, retry: wait.until)
    (end.isOrder, end.awaited) = (claim.isStandingOrder, wait.server.map { [$0] } ?? [])
    return end
  }

  private func letGo(_ owner: Claim.Ownership) throws -> AttemptEnd {
    if owner == .moved || owner == .removed { claim.removeTouched() }
    switch owner {
    case .ours: break
    case .removed: return try remove()
    case .takenOver:
      // Not a byte is written or removed any more.
      let mark = lastMark
      releaseData()
      log(Event("taken-over", .info, job: name, Fields().with("at", mark.offset)))
    case .moved:
      let mark = try noteLoss("moved away from cur")
      try closeData()
      log(Event("held", .info, job: name, Fields().with("at", mark.offset)))
    case .changed:
      _ = try noteLoss("its file was changed")
      try closeData()
      // The job stays in cur/ without an owner. The next worker that claims it reads its new text.
      let reason = "its file was changed while it ran: the job starts again with its new text"
      log(Event("changed", .warning, job: name, Fields().with("reason", reason)))
    }
    return AttemptEnd(.moved)
  }

  private func noteLoss(_ reason: String) throws(SpoolError) -> Mark {
    do throws(SpoolError) {
      // Whoever moved it may have said when it is due.
      return try claim.keepingTime { () throws(SpoolError) in try noteInterrupted(reason) }
    } catch  where error.isGone {
      // A successor on another host has written to the journal, so this worker must not write to it any more.
      return lastMark
    }
  }

  private func remove() throws -> AttemptEnd {
    try data?.part.remove()
    try closeData()
    try JobData(claim.spool).removeOrphanedData(of: [claim.job])
    log(Event("cancelled", .info, job: name))
    return AttemptEnd(.cancelled)
  }

  private var lastMark: Mark { data?.part.mark ?? claim.text.journal.data.softMark ?? Mark.zero }

  /// Journals the length of the data, if the attempt did anything.
  private func noteInterrupted(_ reason: String) throws(SpoolError) -> Mark {
    let mark = lastMark
    let hasLostWrites = fullTrust.isLost
    let broken = data == nil ? claim.text.journal.data.brokenFrom : data?.doubt?.floor
    // An order has no data, and a check without its end would count as the death of a worker.
    guard data != nil || hasLostWrites || claim.isStandingOrder else { return mark }
    do throws(SpoolError) {
      try claim.append(
        .interrupted(
          claim.spool.now(), attempt: account.number, mark: data?.isStale == true ? nil : mark,
          fetched: account.fetched, broken: broken, lostWrites: hasLostWrites, reason: reason))
    } catch  where error.isLackOfSpace {
      // The move needs no space. Without the line the next attempt only has to read more of the data, but it must not
      // find data that a failed fsync lost.
      if hasLostWrites { try data?.cutToCheckpoint() }
    }
    return mark
  }

  private func closeData() throws(SpoolError) {
    // Empty data is removed: there is nothing to resume from.
    if let part = data?.part, part.length == 0 { try part.remove() }
    releaseData()
  }

  private func releaseData() {
    // Closing only releases the lock. Only checkpoints are promised to be durable, and they already are.
    try? data?.part.close()
    account.lengthAtEnd = data?.part.length ?? 0
    data?.leaveSpace()
    data = nil
  }
}

extension Attempt {
  func stop(_ reason: JobStop) {
    switch reason {
    case .shutdown, .cancelled, .notOurs, .outranked: hookStop.request()
    // The `failed` hook may still have to run.
    case .failed(let error): noteLoss(error)
    case .noSpace, .noOutput, .waits: break
    }
    guard stopped == nil else {
      transfer?.stop()
      return
    }
    stopped = reason
    stopTransfer(reason)
    environment.deliveries.sendAway(id)
  }

  private func stopTransfer(_ reason: JobStop) {
    if case .outranked = reason { transfer?.windDown() } else { transfer?.stop() }
  }

  /// To be called a few times a second: whether the job is still ours, and what is due.
  func tick() {
    guard claim.isOpen else { return }
    let now = LoopExecutor.milliseconds()
    do throws(SpoolError) {
      if stopped == nil {
        let ownership = try claim.ownership()
        if ownership != .ours { return stop(.notOurs(ownership)) }
      }
      // Also after a stop: a copy or a hook may run longer than the lease.
      if Leases(claim.spool).isBeatDue(since: lastHeartbeat, at: now) {
        lastHeartbeat = now
        try claim.heartbeat()
      }
      if let stopped {
        // Again, because a request may have been about to begin.
        stopTransfer(stopped)
        transfer?.tick()
        return
      }
      try data?.writePending()
      if checkpointer.isAllowed, probation.isOver(at: Host.current.awakeMilliseconds()) {
        try claim.append(.cleared(claim.spool.now()))
        log(Event("cleared", .info, job: name, Fields().with("deaths", probation.deaths)))
        reached(.cleared)
      }
    } catch {
      return stop(.failed(error))
    }
    // Fetched again from 0: all of it is growth.
    if let data { account.lengthAtStart = min(account.lengthAtStart, data.part.length) }
    transfer?.tick()
    if let data { checkpointer.beginIfDue(data) }
  }

  private func checkpointFailed(_ error: SpoolError, hasLostWrites: Bool) {
    if hasLostWrites { trust = .lost(error) }
    stop(.failed(error))
  }

  var progress: JobProgress { JobProgress(id: id, name: name, bytes: data?.part.length, total: data?.total) }

  var undurable: UInt64 { data?.undurable ?? 0 }

  /// Bytes by which the data has grown since the job was claimed.
  var gained: UInt64 {
    let length = data?.part.length ?? account.lengthAtEnd
    return length > account.lengthAtStart ? length - account.lengthAtStart : 0
  }
}

extension Attempt {
  /// - Parameter directory: where it was published, whatever the root of the job is by now.
  /// - Returns: when the hook `deliver` accepted the payload; nil if there is no hook.
  func deliver(_ plan: JobPlan, _ payload: Journal.Verified, in directory: String?) async throws -> Timestamp? {
    guard hooks.has(.deliver) else { return nil }
    reached(.transferred)
    return try await orStopped {
      try await notePublished(plan, in: directory)
      if hookStop.isRequested { throw JobStop.cancelled }
      guard await environment.deliveries.enter(id) else { throw JobStop.cancelled }
      defer { environment.deliveries.leave() }
      let facts = environment.facts(plan, directory, payload.size, payload.digests, in: claim.spool)
      switch await hooks.run(.deliver, job: name, facts) {
      case nil: return nil
      case .yes: return claim.spool.now()
      case .no(let reason), .nothing(let reason):
        throw environment.failure(.deliver, "the deliver hook failed: \(reason)")
      }
    }
  }

  /// Records that only the delivery is left. After a power cut the next worker must know this as well, because others
  /// may have seen the payload by then.
  private func notePublished(_ plan: JobPlan, in directory: String?) async throws {
    let noted = claim.history.publication.undelivered?.place
    // Failed deliveries are counted from this line on. Where data was opened, `started:` has ended an earlier one.
    if data == nil, noted == [plan.output.text.exact, directory?.exact] { return }
    try claim.append(.published(claim.spool.now(), output: plan.output.text, directory: directory))
    try await claim.makeDurable(environment.durable)
    log(Event("published", .info, job: name, Fields().with("output", plan.output.text)))
  }

  func succeed(_ plan: JobPlan, _ payload: Journal.Verified, in directory: String?) async -> AttemptEnd {
    reached(.transferred)
    if environment.options.tellsSuccess {
      log(
        Event(
          "done", .info, job: name,
          Fields().with("output", plan.output.text).with("directory", directory)
            .with("size", payload.size).with("attempt", account.number)
            .with("fetched", account.fetched).with("bytes-fetched", account.fetchedInAll)
            .with("seconds", account.seconds).with("milliseconds", account.milliseconds).with("rate", account.rate)
            .with(payload.digests)))
    }
    if FeedEntry.isKeyed(claim.job), !claim.spool.isBesideFiles {
      await OldVersions(spool: claim.spool, log: environment.log, stop: hookStop).remove(after: claim.job)
    }
    if hooks.mayExist { await environment.tellDone(name, plan, directory, payload, account, hooks) }
    return AttemptEnd(.done, problem: account.doubt)
  }

  private func tellGivenUp(_ job: FileName, _ record: Fields) async {
    reached(.transferred)
    let began = claim.history.attempts.firstStarted ?? account.began
    let seconds = max(0, claim.spool.now().seconds - began.seconds)
    await environment.tellFailed(job, record, of: claim.text.request, seconds: seconds, hooks)
  }

  /// Runs a step that a stop of the attempt ends. The step only knows that it was stopped; this attempt knows why.
  private func orStopped<Result>(_ step: @WorkerLoop () async throws -> Result) async throws -> Result {
    do {
      if let stopped { throw stopped }
      return try await step()
    } catch {
      noteLoss(error)
      throw stopped ?? error
    }
  }

  /// The kernel reports a lost write only once.
  private func noteLoss(_ error: any Error) {
    if let problem = Ending.problem(error) as? SpoolError, error is LostWrites || claim.mayHaveLost(problem) {
      trust = .lost(problem)
    }
  }
}
