internal import Spool

/// Takes verified data to `done/`. The order of the steps guarantees that the payload of each job in `done/` is durable
/// (INTERNALS.md, invariant 7): data fdatasync → `verified:` → payload linked → its directory fsync → receipt fsync →
/// job renamed → both directories fsync.
@WorkerLoop
struct Commit {
  let claim: Claim
  let plan: JobPlan
  let environment: JobEnvironment
  let account: AttemptAccount
  let outputs: CurrentOutputRoot
  /// Passes the published payload on, and returns when that was done; nil if there is nobody to do it.
  private let deliver: @WorkerLoop (Mark) async throws -> Timestamp?

  var spool: Spool { claim.spool }
  private var durable: GroupCommit { environment.durable }
  private var publisher: OutputPublisher { OutputPublisher(claim: claim, plan: plan, root: outputs.location) }
  private var overwrites: Bool { plan.request.overwrite ?? false }

  /// - Throws: as ``JobEnvironment/outputs(of:)``.
  init(
    _ claim: Claim, _ plan: JobPlan, _ environment: JobEnvironment, _ account: AttemptAccount,
    deliver: @escaping @WorkerLoop (Mark) async throws -> Timestamp?
  ) throws(Failure) {
    outputs = try environment.outputs(of: plan)
    self.deliver = deliver
    self.claim = claim
    self.plan = plan
    self.environment = environment
    self.account = account
  }

  /// Commits verified data.
  /// - Parameter unproven: see ``Journal/Verified/unproven``.
  /// - Throws: what ``acceptExisting(_:fetched:)`` throws if another file took the name meanwhile; ``SpoolError``.
  func publish(_ part: PartFile, unproven: String?) async throws {
    // Before the payload gets its name: a link changes the same inode, so after a power cut no payload has the name
    // without these permissions.
    try part.set(plan.request.mode)
    // Otherwise a power cut could keep the payload's name and bring the job back to new/, where no line says whose
    // the payload is.
    if !spool.kind.ordersNames { try await claim.makeDurable(durable) }
    try await part.makeDurable(durable)
    let verified = Journal.Verified(part.mark, part: part.inode, unproven: unproven)
    try claim.append(.verified(.now(), verified))
    do {
      try await name(part, verified)
    } catch is NameTaken {
      // Another job, or a worker that took this one for dead, may have published the same content first.
      guard try await acceptExisting(part, fetched: part.mark) != nil else { throw await publisher.conflict() }
      return try part.close()
    }
    try await finish(part.mark, existing: false, unproven: unproven, part)
    try part.close()
  }

  /// Another file has the output's name.
  private struct NameTaken: Error {}

  /// Gives the verified data its final name, durably.
  /// - Throws: ``NameTaken``; ``OutputRootProblem``, ``SpoolError``.
  private func name(_ part: PartFile, _ verified: Journal.Verified) async throws {
    let place = try writing { try outputs.place(plan.output, plan.request.mode) }
    try checkClaim()
    var inode = part.inode
    switch try writing({ try place.publish(part, overwrite: overwrites) }) {
    case .published: break
    case .exists:
      guard try place.isSameFile(as: part) else { throw NameTaken() }
    case .otherFileSystem:
      inode = try await publishCopy(part, place, unproven: verified.unproven)
    }
    do {
      try await sync(place)
    } catch let problem as OutputRootProblem {
      // Nobody would find the payload there, and data with a second name would be taken for another job's.
      try place.withdraw(inode)
      throw problem
    }
  }

  /// Makes sure, before anything is fetched or read, that the payload can be put into its directory.
  /// - Throws: `no-output`; ``OutputRootProblem``, ``SpoolError``.
  func checkRoom() throws { try writing { try outputs.opened().checkWritable(plan.output) } }

  /// Does what writes to the output's directory, and names it if that fails.
  private func writing<Value>(_ body: () throws -> Value) throws -> Value {
    do { return try body() } catch let error as SpoolError {
      throw Failure(error, writingTo: try outputs.opened().path(of: plan.output))
    }
  }

  private func checkClaim() throws {
    try claim.checkLock()
    try claim.checkOwnership()
  }

  /// - Returns: the inode of the published file.
  private func publishCopy(_ part: PartFile, _ place: OutputPlace, unproven: String?) async throws -> UInt64 {
    let copy = try writing { try place.beginCopy(of: part, plan.request.mode) }
    do {
      let whole = part.mark
      let copied = await runBlocking { Result { try copy.run(whole.states.algorithms) } }
      let found = try writing { try copied.get() }
      if let mismatch = Expectation(digests: whole.digests).mismatch(found) {
        throw Failure(mismatch, reason: "the data read back differs from what was received")
      }
      // Recovery has to look for the copy's inode.
      try claim.append(.verified(.now(), .init(whole, part: copy.inode(), unproven: unproven)))
      // Two file systems write in no common order. Without this line, recovery would not recognize a payload that was
      // published just before a power cut.
      try await claim.makeDurable(durable)
      // The copy may have taken minutes.
      try checkClaim()
      try outputs.check(place, plan.output)
      guard try place.publish(copy, overwrite: overwrites) else { throw NameTaken() }
      return try copy.inode()
    } catch {
      try? place.discard(copy)
      throw error
    }
  }

  /// Makes the payload's name durable.
  /// - Throws: ``OutputRootProblem`` if the output's path leads to another directory by then; no receipt may name it.
  func sync(_ place: OutputPlace) async throws {
    try await durable(place.unsynced)
    place.noteSynced()
    try outputs.check(place, plan.output)
  }

  /// Passes the payload on, writes the receipt, removes the data's own name, and moves the job. The payload and its
  /// directory entry are durable by now. The data's name is removed only after the receipt is durable: until then it
  /// shows that the payload is this job's.
  /// - Parameters:
  ///   - part: the data, if it is open.
  ///   - mayHaveReceipt: whether a receipt in the claim's journal is this payload's, because nothing was fetched since.
  func finish(
    _ whole: Mark, existing: Bool, unproven: String?, _ part: PartFile? = nil, mayHaveReceipt: Bool = false
  ) async throws {
    try claim.confirmAfterSilence()
    // The journal of a job that came through new/ again describes earlier runs, perhaps with a receipt.
    let journal = claim.origin.takesDrops ? Journal() : claim.text.journal
    if !mayHaveReceipt || journal.publication.receipt == nil {
      let delivered = try await deliver(whole)
      let now = Timestamp.now()
      account.end(now, since: journal.attempts.firstStarted)
      account.fetchedInAll = journal.traffic.fetched &+ account.fetched
      try claim.append(
        .done(
          now, attempts: account.number, output: plan.output.text, fetched: account.fetchedInAll,
          milliseconds: account.milliseconds,
          existing: existing, unproven: unproven, directory: outputs.location, delivered: delivered))
    } else if let written = journal.publication.receiptTime {
      account.end(written, since: journal.attempts.firstStarted ?? account.began)
      account.fetchedInAll = journal.traffic.fetched
    }
    try await claim.makeDurable(durable)
    try claim.confirmAfterSilence()
    if let part {
      try part.remove()
    } else {
      try spool.removeData(of: claim.job, publishedAs: outputs.opened().status(plan.output))
    }
    // Before the move, because a job that is done is not processed again. If this fails, the sweep removes the file
    // later. Data that was replaced by a response of another kind stays for a person to examine, until `spoolrun clean`
    // or the sweep removes it.
    if !claim.text.journal.isEmpty || account.hasSetAside, !claim.text.journal.answers.mayHaveReplacedKind {
      try? spool.removeSetAside(of: claim.job)
    }
    try moveToDone()
    try await durable(spool.flush(.done), spool.flush(.cur))
  }

  /// - Throws: ``UnmovedReceipt``: the job has been done all the same; `disk-full`, which costs no attempt.
  private func moveToDone() throws {
    do throws(SpoolError) { try claim.finish() } catch {
      if error.isLackOfSpace { throw error }
      throw UnmovedReceipt(error: error)
    }
  }

  /// Whether the job still asks for what its data is. A person may have edited it since.
  var isOfPlan: Bool {
    claim.text.journal.data.source.map { plan.asks(for: $0) } ?? !claim.origin.takesDrops
  }

  /// Accepts a file that already has the output's name, if it is this job's own data, published before a crash, or has
  /// the declared size and digests.
  /// - Parameters:
  ///   - part: the data, if it is open.
  ///   - fetched: the end of the data, if all of it was received: then the file has to be the same.
  /// - Returns: the payload's size and digests; nil if there is no such file any more, or it is to be overwritten.
  /// - Throws: `output-exists`; `bad-output` for a directory; ``JobStop/outputAwaited(_:)``.
  func acceptExisting(_ part: PartFile? = nil, fetched: Mark? = nil) async throws -> Mark? {
    guard let status = try outputs.opened().status(plan.output) else { return nil }
    if status.isDirectory {
      throw Failure(.badOutput, "\(escaped(plan.output.text)) is a directory: add the file's name")
    }
    if overwrites, !status.isReplaceable {
      throw Failure(.badOutput, "\(escaped(plan.output.text)) is no regular file, and is not overwritten")
    }
    let journal = claim.text.journal
    let data = try spool.status(.partial, claim.job.part)
    // A new job that is to replace a file must replace it, even if older data with the job's name is the same inode as
    // that file.
    let isNew = overwrites && claim.origin.takesDrops && journal.isEmpty
    if !overwrites, !isOfPlan, try await withdrawEarlierPayload() { return nil }
    let isOwn = status.isRegular && data?.isSameFile(as: status) == true && !isNew && isOfPlan
    if overwrites, !isOwn {
      // The other job could not deliver any more what it has published.
      try await publisher.waitForDelivery()
      return nil
    }
    // The payload may already be published: a person moved the job between the receipt and the move to done/, or a
    // crash came between the payload's name and the receipt. A payload that has changed since must not get a receipt.
    let vouched = journal.publication.published ?? (claim.origin.takesDrops ? nil : journal.publication.verified)
    let published = vouched.flatMap { $0.part == status.inode && isOfPlan ? $0.digests : nil }
    var expected = plan.request.expected
    if let fetched { expected = Expectation(size: fetched.offset, digests: fetched.digests) }
    let isKnown = isOwn || published != nil || expected.provesContent
    let shared = isKnown || !status.isRegular ? nil : try await publisher.sharedPayload()
    guard status.isRegular, expected.mismatch(size: UInt64(status.size)) == nil, isKnown || shared != nil else {
      throw await publisher.conflict(expected.mismatch(size: UInt64(status.size)))
    }
    if !expected.provesContent {
      if let digests = published ?? shared?.digests { expected.digests = digests }
      expected.size = expected.size ?? shared?.size
    }
    let digests = plan.request.computedDigests.union(expected.digests.algorithms)
    let place = try outputs.place(plan.output, plan.request.mode)
    let existing = try place.openExisting()
    let mark = try await runBlocking { [reading = existing.reading(digests)] in try reading.run() }
    if let mismatch = expected.mismatch(mark) { throw await publisher.conflict(mismatch) }
    try await durable(existing.flush)
    let unproven = (shared ?? journal.publication.verified)?.unproven
    try claim.append(.verified(.now(), .init(mark, part: existing.status.inode, unproven: unproven)))
    try await sync(place)
    try await finish(mark, existing: !isOwn, unproven: unproven, part)
    return mark
  }
}
