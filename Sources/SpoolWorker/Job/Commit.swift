internal import Spool
internal import SystemPackage

/// Takes verified data to `done/`. The order of the steps guarantees that the payload of each job in `done/` is durable
/// (INTERNALS.md, invariant 7): data fdatasync → `verified:` → payload linked → its directory fsync → receipt fsync →
/// job renamed → both directories fsync.
@WorkerLoop struct Commit {
  let claim: Claim
  let plan: JobPlan
  let environment: JobEnvironment
  let account: AttemptAccount
  let outputs: CurrentOutputRoot
  /// Passes the published payload on, and returns when that was done; nil if there is nobody to do it.
  private let deliver: @WorkerLoop (Journal.Verified, CurrentOutputRoot) async throws -> Timestamp?

  var spool: Spool { claim.spool }
  private var durable: GroupCommit { environment.durable }
  private var overwrites: Bool { plan.request.overwrite ?? false }

  init(
    _ claim: Claim, _ plan: JobPlan, _ environment: JobEnvironment, _ account: AttemptAccount,
    deliver: @escaping @WorkerLoop (Journal.Verified, CurrentOutputRoot) async throws -> Timestamp?
  ) throws(Failure) {
    outputs = try environment.outputs(of: plan)
    (self.deliver, self.claim, self.plan, self.environment) = (deliver, claim, plan, environment)
    self.account = account
  }

  /// - Returns: what is published.
  /// - Throws: what ``acceptExisting(_:fetched:)`` throws if another file took the name meanwhile; ``SpoolError``.
  func publish(_ part: PartFile, unproven: String?, signed: String? = nil) async throws -> Journal.Verified {
    // Before the payload gets its name: a link changes the same inode, so after a power cut no payload has the name
    // without these permissions.
    try part.set(plan.request.mode)
    // Otherwise a power cut could keep the payload's name and bring the job back to new/, where no line says whose
    // the payload is.
    if !spool.kind.ordersNames { try await claim.makeDurable(durable) }
    try await part.makeDurable(durable)
    let verified = Journal.Verified(part.mark, part: part.inode, unproven: unproven, signed: signed)
    try claim.append(.verified(spool.now(), verified))
    guard try await name(part, verified) else {
      // Another job, or a worker that took this one for dead, may have published the same content first.
      guard let existing = try await acceptExisting(part, fetched: verified) else { throw await conflict() }
      await afterMove { try part.close() }
      return existing
    }
    try await finish(verified, existing: false, part)
    await afterMove { try part.close() }
    return verified
  }

  /// Gives the verified data its final name, durably.
  /// - Returns: false if another file has it.
  private func name(_ part: PartFile, _ verified: Journal.Verified) async throws -> Bool {
    let place = try writing { try outputs.place(plan.output, plan.request.mode) }
    try claim.check()
    var inode = part.inode
    switch try writing({ try place.publish(part, overwrite: overwrites) }) {
    case .published: break
    case .exists:
      guard try place.isSameFile(as: part) else { return false }
    case .otherFileSystem:
      guard let copy = try await publishCopy(part, place, verified) else { return false }
      inode = copy
    }
    do {
      try await sync(place)
      return true
    } catch let problem as OutputRootProblem {
      // Nobody would find the payload there, and data with a second name would be taken for another job's.
      try place.withdraw(inode)
      throw problem
    }
  }

  /// Makes sure, before anything is fetched or read, that the payload can be put into its directory.
  /// - Throws: `no-output`; ``OutputRootProblem``, ``SpoolError``.
  func checkRoom() throws { try writing { try outputs.root.checkWritable(plan.output) } }

  private func writing<Value>(_ body: () throws -> Value) throws -> Value {
    try outputs.writing(to: plan.output, body)
  }

  /// - Returns: the inode of the published file; nil if another file has the name.
  private func publishCopy(_ part: PartFile, _ place: OutputPlace, _ verified: Journal.Verified) async throws -> UInt64?
  {
    let copy = try writing { try place.beginCopy(of: part, plan.request.mode) }
    do {
      let whole = part.mark
      let copied = await runBlocking { Result { try copy.run(whole.states.algorithms) } }
      let found = try writing { try copied.get() }
      if let mismatch = Expectation(digests: whole.digests).mismatch(found) {
        throw Failure(mismatch, reason: "the data read back differs from what was received")
      }
      // Recovery has to look for the copy's inode.
      try claim.append(
        .verified(spool.now(), .init(whole, part: copy.inode(), unproven: verified.unproven, signed: verified.signed)))
      // Two file systems write in no common order. Without this line, recovery would not recognize a payload that was
      // published just before a power cut.
      try await claim.makeDurable(durable)
      // The copy may have taken minutes.
      try claim.check()
      try outputs.check(place, plan.output)
      if try writing({ try place.publish(copy, overwrite: overwrites) }) { return try copy.inode() }
      try? place.discard(copy)
      return nil
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
  /// - Parameter mayHaveReceipt: whether a receipt in the journal is this payload's, because nothing was fetched since.
  func finish(
    _ payload: Journal.Verified, existing: Bool, _ part: PartFile? = nil, mayHaveReceipt: Bool = false
  ) async throws {
    try claim.confirmAfterSilence()
    let journal = claim.history
    if !mayHaveReceipt || journal.publication.receipt == nil {
      let delivered = try await deliver(payload, outputs)
      let now = spool.now()
      account.end(now, since: journal.attempts.firstStarted)
      account.fetchedInAll = journal.traffic.fetched &+ account.fetched
      try claim.append(
        .done(
          now, attempts: account.number, output: plan.output.text, fetched: account.fetchedInAll,
          milliseconds: account.milliseconds,
          existing: existing, unproven: payload.unproven, directory: outputs.location, delivered: delivered))
    } else if let written = journal.publication.receiptTime {
      account.end(written, since: journal.attempts.firstStarted ?? account.began)
      account.fetchedInAll = journal.traffic.fetched
    }
    try await claim.makeDurable(durable)
    try claim.confirmAfterSilence()
    // Before the move, because a job that is done is not processed again. Nobody removes a name of a file that a hook
    // has made immutable, or opens a program for writing that is being run.
    do {
      if let part { try part.remove() } else { try claim.removeData(publishedAs: outputs.opened().status(plan.output)) }
    } catch let error as SpoolError where [.notPermitted, .textFileBusy].contains(error.errno) {}
    // Data that was replaced by a response of another kind stays for a person to examine, until `spoolrun clean`
    // or the sweep removes it.
    if !claim.text.journal.isEmpty || account.hasSetAside, !claim.text.journal.answers.mayHaveReplacedKind {
      try? JobData(spool).removeSetAside(of: claim.job)
    }
    try moveToDone()
    await afterMove { try await durable([spool.flush(.done), spool.flush(.cur)]) }
  }

  /// Does what is left once the job is in `done/`: it is done all the same if this fails.
  private func afterMove(_ step: () async throws -> Void) async {
    do { try await step() } catch { account.doubt = account.doubt ?? error }
  }

  /// - Throws: ``Ending/Unmoved``: the job has been done all the same; `disk-full`, which costs no attempt.
  private func moveToDone() throws {
    do throws(SpoolError) { try claim.finish() } catch {
      if claim.endDirectory == .done { return account.doubt = error }
      if error.isLackOfSpace { throw error }
      throw Ending.Unmoved(error: error)
    }
  }

  /// Whether the job still asks for what its data is. A person may have edited it since.
  private var isOfPlan: Bool { claim.text.journal.data.source.map { plan.asks(for: $0) } ?? !claim.origin.takesNewJobs }

  /// What the journal says of this file. It may already be published: a person moved the job between the receipt and
  /// the move to done/, or a crash came between the payload's name and the receipt. A payload that has changed since
  /// must not get a receipt.
  private func record(of file: UInt64) -> Journal.Verified? {
    let records = [claim.text.journal.publication.published, claim.history.publication.verified]
    return isOfPlan ? records.compactMap { $0 }.first { $0.part == file } : nil
  }

  /// Whether the job was done here once. Its receipt outlasts what other lines say of the payload.
  private var hasReceipt: Bool { claim.text.journal.publication.lastReceipt?.output.exact == plan.output.text.exact }

  /// Whether what a record tells of has the signature that the job asks for now, which may be newer.
  private func isSigned(_ record: Journal.Verified?) -> Bool { plan.request.signature == nil || record?.signed != nil }

  var isOutputThere: Bool { get throws { try outputs.status(plan.output) != nil } }

  /// Accepts a file that already has the output's name, if it is this job's own data, published before a crash, or has
  /// the declared size and digests.
  /// - Parameter fetched: the data, if all of it was received: then the file has to be the same.
  /// - Returns: nil if there is no such file any more, if it is to be overwritten, or if it is the job's own and has no
  ///   signature yet: that is checked with the data.
  /// - Throws: `output-exists`; `bad-output` for a directory; ``JobStop/waits(_:)``.
  func acceptExisting(_ part: PartFile? = nil, fetched: Journal.Verified? = nil) async throws -> Journal.Verified? {
    guard let status = try outputs.status(plan.output) else { return nil }
    if status.isDirectory {
      throw Failure(.badOutput, "\(escaped(plan.output.text)) is a directory: add the file's name")
    }
    if overwrites, try !outputs.opened().isReplaceable(plan.output, status) {
      throw Failure(.badOutput, "\(escaped(plan.output.text)) is no regular file, and is not overwritten")
    }
    let journal = claim.text.journal
    let data = try claim.dataStatus()
    // A new job that is to replace a file must replace it, even if older data with the job's name is the same inode as
    // that file.
    let isNew = overwrites && claim.origin.takesNewJobs && journal.isEmpty
    let vouched = record(of: status.inode)
    let isUnsigned = !isSigned(fetched ?? vouched)
    if !overwrites, !isOfPlan || isUnsigned, try await withdraw(plan.output, below: outputs) { return nil }
    let isOwn = status.isRegular && data?.isSameFile(as: status) == true && !isNew && isOfPlan
    if overwrites, !isOwn || isUnsigned {
      // Another job could not deliver any more what it has published.
      if let other = try await findUndelivered(), let wait = try awaited(other) { throw JobStop.waits(wait) }
      return nil
    }
    if isUnsigned, isOwn || hasReceipt { return nil }
    let expected = fetched?.expectation ?? plan.request.expected
    let isKnown = isOwn || vouched != nil || expected.provesContent && !isUnsigned
    let shared = isKnown || isUnsigned || !status.isRegular ? nil : try await sharedPayload()
    guard status.isRegular, expected.mismatch(size: UInt64(status.size)) == nil, isKnown || shared != nil else {
      throw await conflict(expected.mismatch(size: UInt64(status.size)))
    }
    var known = fetched ?? vouched ?? shared
    let digests = plan.request.computedDigests.union(known?.digests.algorithms ?? [])
    let place = try writing { try outputs.place(plan.output, plan.request.mode) }
    guard
      let existing = try orNil(
        place.openExisting(fromDisk: journal.data.lostWrites), where: { !isOwn && $0.errno == .permissionDenied })
    else {
      throw await conflict()
    }
    let mark = try await runBlocking { [reading = existing.reading(digests, pieces: plan.pieces)] in try reading.run() }
    if let mismatch = expected.mismatch(mark) { throw await conflict(mismatch) }
    if let mismatch = known?.expectation.mismatch(mark) {
      // What the job declares now is enough, but for a signature.
      guard expected.provesContent, plan.request.signature == nil else { throw await conflict(mismatch) }
      known = nil
    }
    try await durable(data: existing.flush)
    let isProven = plan.request.expected.provesContent || plan.request.expected.size != nil
    let unproven = isProven ? nil : known?.unproven
    let verified = Journal.Verified(
      mark, part: existing.status.inode, unproven: unproven, signed: known?.signed,
      isOthers: !isOwn && journal.publication.own?.part != status.inode)
    try claim.append(.verified(spool.now(), verified))
    try await sync(place)
    try await finish(verified, existing: !isOwn, part)
    return verified
  }
}

/// A payload that a job has published and that its text, which was changed before the job was done, does not ask for.
extension Commit {
  /// Takes back what waits for its delivery elsewhere than the job says now.
  func withdrawPayloadElsewhere() async throws {
    guard let there = claim.text.journal.publication.undelivered, let output = OutputPath(there.output),
      there.place != [plan.output.text.exact, outputs.location?.exact],
      // What is on a disk that is not mounted stays there.
      let former = try? CurrentOutputRoot(there.directory, spool: spool, reach: .directly)
    else { return }
    _ = try await withdraw(output, below: former)
  }

  /// Takes it back, if the file at the output is still exactly what the journal says that this job verified.
  /// - Returns: false for any other file, and for the payload of a job that was done.
  private func withdraw(_ output: OutputPath, below outputs: CurrentOutputRoot) async throws -> Bool {
    guard let own = claim.text.journal.publication.own, try !wasDone(own),
      try outputs.status(output)?.inode == own.part,
      let place = try await verifiedOutput(own, own.digests.algorithms, at: output, below: outputs)?.place
    else { return false }
    try claim.check()
    try place.withdraw(own.part)
    return true
  }

  /// No job is done without a receipt. Its data has its own name until the job is about to move to `done/`.
  private func wasDone(_ own: Journal.Verified) throws(SpoolError) -> Bool {
    let journal = claim.text.journal
    if journal.publication.published == nil { return false }
    let data = try claim.dataStatus()
    return data.map { $0.inode != own.part && $0.inode != journal.data.part } ?? true
  }
}

/// A commit that a crash interrupted: the journal has `verified:`, and the inode that it names is still the data, or
/// already the output.
extension Commit {
  /// - Returns: nil if there was no such commit.
  /// - Throws: a mismatch if the inode's content has changed; what ``publish(_:unproven:)`` throws.
  func finishInterrupted() async throws -> Journal.Verified? {
    let journal = claim.text.journal
    guard let verified = journal.publication.verified, isOfPlan, isSigned(verified) else { return nil }
    // The hook may have taken the payload away.
    if journal.publication.receipt?.isDelivered == true {
      try await finish(verified, existing: false, mayHaveReceipt: true)
      return verified
    }
    // Data that still has a second name would be taken for another job's.
    try outputs.removeTemporaries(beside: plan.output, of: [verified.part] + (journal.data.part.map { [$0] } ?? []))
    if let (place, existing, mark) = try await verifiedOutput(
      verified, digests(verified), at: plan.output, below: outputs)
    {
      if declared.mismatch(mark) != nil {
        // Whoever reads a file that is replaced sees it until another one takes its place.
        if overwrites {
          try claim.removeData(publishedAs: existing.status)
        } else {
          _ = try await withdraw(plan.output, below: outputs)
        }
        return nil
      }
      // It may be another file with the same bytes.
      try await durable(data: existing.flush)
      try await sync(place)
      let payload = Journal.Verified(
        mark, part: verified.part, unproven: verified.unproven, signed: verified.signed,
        isOthers: journal.publication.own == nil)
      // It also has the digests that were declared since.
      if payload.digests != verified.digests { try claim.append(.verified(spool.now(), payload)) }
      try await finish(payload, existing: false, mayHaveReceipt: true)
      return payload
    }
    // A second fsync of this inode would not bring back what the failed one lost.
    if journal.data.lostWrites { return nil }
    return try await publishVerified(verified)
  }

  /// What the job declares now: a person may have added to it since the data was verified. A list of pieces that is
  /// gone is not needed any more.
  private var declared: Expectation {
    var declared = plan.request.expected
    if plan.pieces == nil { declared.pieces = nil }
    return declared
  }

  private func digests(_ verified: Journal.Verified) -> Set<DigestAlgorithm> {
    plan.request.computedDigests.union(verified.digests.algorithms)
  }

  /// The file at the output, if it has what was verified. The inode's number proves nothing: another file may have got
  /// it, and SSHFS gives each host other numbers. So the whole file is read; it is rarely needed.
  /// - Parameter digests: those to compute, at least the verified ones.
  /// - Returns: its size and digests, beside its place; nil for any other file.
  private func verifiedOutput(
    _ verified: Journal.Verified, _ digests: Set<DigestAlgorithm>, at output: OutputPath,
    below outputs: CurrentOutputRoot
  ) async throws -> (place: OutputPlace, file: ExistingOutput, mark: Mark)? {
    guard let status = try outputs.status(output), status.isRegular, status.size == verified.size else { return nil }
    let place = try outputs.writing(to: output) { try outputs.place(output, plan.request.mode) }
    let lostWrites = claim.text.journal.data.lostWrites
    guard let existing = try orNil(place.openExisting(fromDisk: lostWrites), on: .permissionDenied) else { return nil }
    let mark = try await runBlocking { [reading = existing.reading(digests, pieces: plan.pieces)] in try reading.run() }
    return verified.expectation.mismatch(mark) == nil ? (place, existing, mark) : nil
  }

  /// Whether the file that the data is to replace may be newer: it was changed after the data was written.
  private func mayBeOlder() throws -> Bool {
    guard overwrites, !plan.request.expected.provesContent else { return false }
    return try outputs.isNewer(plan.output, than: claim.dataStatus())
  }

  /// - Returns: nil unless the data is the verified inode.
  private func publishVerified(_ verified: Journal.Verified) async throws -> Journal.Verified? {
    guard var part = try PartFile.open(claim.job, in: spool, own: verified.part, removeTemporary: { _ in }),
      part.inode == verified.part, part.length == verified.size, try !mayBeOlder()
    else { return nil }
    try checkRoom()
    // Where flock(2) does not exclude other hosts, another file may have this inode number by now. So the whole file is
    // read here, too.
    let mark = try await part.read(from: .zero(digests(verified), pieces: plan.pieces), to: part.length)
    if let mismatch = verified.expectation.mismatch(mark) {
      // Somebody has changed it by its final name, and has it now.
      if try outputs.status(plan.output)?.inode == verified.part { return nil }
      try part.setAside(claim.job)
      account.hasSetAside = true
      throw Failure(mismatch, reason: "the data is not what was verified")
    }
    // The attempt goes on as if nothing had been verified: its check refuses the data.
    if declared.mismatch(mark) != nil { return nil }
    if part.isShared {
      // A hook has moved the payload, which is somebody else's now.
      let copy = part.rebuilding(to: part.length, owner: claim.job)
      part = part.replaced(by: try await runBlocking { () throws(SpoolError) in try copy.run() })
    }
    part.adopt(mark)
    return try await publish(part, unproven: verified.unproven, signed: verified.signed)
  }
}

/// The job that has published the file at this one's output, as far as receipts and journals show.
extension Commit {
  /// Why the job cannot publish to its output, which is another file.
  /// - Parameter mismatch: in what the file differs from what the job declares.
  /// - Returns: ``JobStop/waits(_:)`` if the file may go when its job has delivered it; otherwise the failure.
  private func conflict(_ mismatch: Mismatch? = nil) async -> any Error {
    // If nobody can be found, the output is taken all the same.
    let publisher = (try? await findPublisher()) ?? nil
    if let publisher, let awaited = try? awaited(publisher) { return JobStop.waits(awaited) }
    let whose = publisher.map { ", as the output of \($0.place.display)" } ?? ""
    return Failure(
      .outputExists, "\(escaped(plan.output.text)) exists already\(whose): remove it, or set `overwrite: yes`",
      expected: mismatch?.expected, found: mismatch?.found)
  }

  /// nil if the job has delivered the file, or does not run until a person wants it to.
  private func awaited(_ other: FoundJob) throws(SpoolError) -> JobWait? {
    // Two that have published it, and find another file there, would wait for each other.
    guard other.text.journal.publication.awaitsDelivery, !claim.text.journal.publication.awaitsDelivery else {
      return nil
    }
    return try JobSearch(spool).nextRun(of: other.place).map {
      JobWait(forOutput: plan.output.text, of: other.place.job, now: spool.now(), next: $0)
    }
  }

  /// The payload of a job with the same URLs and header lines that was still running when this one was dropped. To
  /// fetch it again could only give the same file, or a newer one that the dropper did not ask for.
  private func sharedPayload() async throws -> Journal.Verified? {
    guard let known = claim.knownSince, let other = try await findPublisher() else { return nil }
    let publication = other.text.journal.publication
    // What is not delivered is not done.
    guard publication.awaitsDelivery || publication.receiptTime.map({ known <= $0 }) == true,
      other.text.request.urls.map(\.text.exact) == plan.request.urls.map(\.text.exact),
      other.text.request.resolve?.text.exact == plan.request.resolve?.text.exact,
      // Without its credentials, the job might not get the file.
      other.text.request.headers == claim.text.request.headers
    else { return nil }
    return publication.published
  }

  /// What waits for its delivery is later than what is done: it has replaced that.
  private func findPublisher() async throws -> FoundJob? {
    if let other = try await findUndelivered() { return other }
    return try await runBlocking { [spool, output = plan.output.text, root = outputs.location, job = claim.job] in
      try JobSearch(spool).publisher(of: output, in: root, like: job)
    }
  }

  private func findUndelivered() async throws -> FoundJob? {
    // Without the hook no job waits for its delivery longer than until its next attempt.
    guard try Hook.find(Hooks.Name.deliver.rawValue, in: spool) != nil else { return nil }
    return try await runBlocking { [spool, output = plan.output.text, root = outputs.location, own = claim.fileName] in
      try JobSearch(spool).undelivered(output, in: root, besides: own)
    }
  }
}
