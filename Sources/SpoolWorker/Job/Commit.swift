internal import Spool

/// From verified data to `done/`, in the order that makes `done/` a promise (protocol, invariant 7):
/// data fdatasync → `verified:` → payload linked → its directory fsync → receipt fsync → job renamed → both directories fsync.
@WorkerLoop
struct Commit {
  private let claim: Claim
  private let plan: JobPlan
  private let environment: JobEnvironment
  private let account: AttemptAccount

  private var spool: Spool { claim.spool }
  private var outputs: CurrentOutputRoot { environment.outputs }
  private var durable: GroupCommit { environment.durable }
  private var overwrites: Bool { plan.request.overwrite ?? false }

  init(_ claim: Claim, _ plan: JobPlan, _ environment: JobEnvironment, _ account: AttemptAccount) {
    self.claim = claim
    self.plan = plan
    self.environment = environment
    self.account = account
  }

  /// Commits verified data.
  /// - Parameter unproven: see ``Journal/Verified/unproven``.
  /// - Throws: `output-exists` if another file took the name meanwhile; ``SpoolError``.
  func publish(_ part: PartFile, unproven: String?) async throws {
    try await part.makeDurable(durable)
    let verified = Journal.Verified(part.mark, part: part.inode, unproven: unproven)
    try claim.append(.verified(.now(), verified))
    do {
      try await name(part, verified)
    } catch let failure as Failure where failure.code == .outputExists && plan.request.expected.provesContent {
      // Another job, or a worker that thought this one dead, was quicker with the very same.
      guard try await acceptExisting(part) != nil else { throw failure }
      return try part.close()
    }
    try await finish(existing: false, unproven: unproven, part)
    try part.close()
  }

  /// Gives the verified data its final name, durably.
  private func name(_ part: PartFile, _ verified: Journal.Verified) async throws {
    let place = try outputs.place(plan.output)
    try checkClaim()
    var inode = part.inode
    switch try place.publish(part, overwrite: overwrites) {
    case .published: break
    case .exists:
      guard try place.holds(part) else { throw outputExists() }
    case .otherFileSystem:
      inode = try await publishCopy(part, place, unproven: verified.unproven)
    }
    do {
      try await sync(place)
    } catch let problem as OutputRootProblem {
      // Nobody finds it there; and data with a second name would be held for another job's.
      try place.withdraw(inode)
      throw problem
    }
  }

  private func checkClaim() throws {
    // A successor on another host would hold the lock now: then this worker slept too long, and the job is not its any more.
    guard try claim.holdsLock() else { throw JobStop.lost(.moved) }
    try claim.checkOwnership()
  }

  /// - Returns: the inode that bears the name then.
  private func publishCopy(_ part: PartFile, _ place: OutputPlace, unproven: String?) async throws -> UInt64 {
    let copy = try place.beginCopy(of: part)
    do {
      let found = try await runBlocking { try copy.run() }
      guard found == part.mark.checksum else {
        throw Failure(
          .mismatchChecksum, "the data read back differs from what was received", expected: "\(part.mark.checksum)",
          found: "\(found)")
      }
      // The copy's inode is the one that recovery has to look for.
      try claim.append(.verified(.now(), .init(part.mark, part: copy.inode(), unproven: unproven)))
      // Two file systems keep no order: without the line, a payload that a power cut left would be a stranger's file.
      try await claim.makeDurable(durable)
      // A copy can take minutes.
      try checkClaim()
      try outputs.check(place, plan.output)
      guard try place.publish(copy, overwrite: overwrites) else { throw outputExists() }
      return try copy.inode()
    } catch {
      try? place.discard(copy)
      throw error
    }
  }

  private func outputExists() -> Failure {
    Failure(.outputExists, "a file \(escaped(plan.output.text)) is there already: remove it, or say `overwrite: yes`")
  }

  /// Makes the payload's name durable.
  /// - Throws: ``OutputRootProblem`` where the output leads elsewhere by then: no receipt may name it.
  private func sync(_ place: OutputPlace) async throws {
    try await durable(place.unsynced())
    try place.noteSynced()
    try outputs.check(place, plan.output)
  }

  /// Writes the receipt, removes the data's own name, and moves the job. The payload and its directory entry are durable by now. The data's
  /// name goes only after the receipt is durable: until then it is what tells our own payload from a stranger's file.
  /// - Parameters:
  ///   - part: the data, where it is open.
  ///   - mayHaveReceipt: nothing was fetched since the claim's journal was read, so that a receipt in it is this payload's.
  private func finish(
    existing: Bool, unproven: String?, _ part: PartFile? = nil, mayHaveReceipt: Bool = false
  ) async throws {
    // A job that came anew has an old account, perhaps even an old receipt: neither is this run's.
    let journal = claim.origin == .new ? Journal() : claim.text.journal
    if !mayHaveReceipt || journal.publication.receipt == nil {
      let now = Timestamp.now()
      let seconds = now.seconds - (journal.attempts.firstStarted ?? account.began).seconds
      try claim.append(
        .done(
          now, attempts: account.number, output: plan.output.text, fetched: journal.traffic.fetched &+ account.fetched,
          seconds: max(0, seconds),
          existing: existing, unproven: unproven, directory: outputs.location))
    }
    try await claim.makeDurable(durable)
    if let part { try part.remove() } else { try spool.removeData(of: claim.job) }
    // Before the move, because nobody looks after a job that is done; a failure is not the job's, and leaves it to the sweep. Data that gave way to
    // an answer of another kind stays, for a person: `spoolrun clean` and the sweep remove it in time.
    if !claim.text.journal.answers.mayHaveReplacedKind { try? spool.removeSetAside(of: claim.job) }
    try claim.finish()
    try await durable(spool.flush(.done), spool.flush(.cur))
  }

  /// Goes on with a commit that a crash cut: the journal says `verified:`, and the inode it names is still the data, or is the output already.
  /// - Returns: what the payload is; nil where the job is not done by that.
  /// - Throws: `mismatch-crc32` where that inode holds something else by now; what ``publish(_:unproven:)`` throws.
  func finishInterrupted() async throws -> Mark? {
    let journal = claim.text.journal
    guard let verified = journal.publication.verified else { return nil }
    // Data that still has a second name would look like somebody else's.
    let root = try outputs.opened()
    try root.removeTemporaries(beside: plan.output, of: [verified.part] + (journal.data.part.map { [$0] } ?? []))
    if let status = try root.status(plan.output), status.isRegular, status.inode == verified.part,
      status.size == verified.size
    {
      // Its number may be another file's, on another file system in any case. Commits are cut so seldom that all of it is read.
      let place = try outputs.place(plan.output)
      let existing = try place.openExisting()
      let mark = try await runBlocking { [reading = existing.reading] in try reading.run() }
      if existing.status.inode == verified.part, verified.expectation.mismatch(mark) == nil {
        try await sync(place)
        try await finish(existing: false, unproven: verified.unproven, mayHaveReceipt: true)
        return mark
      }
    }
    // Another fsync of this inode would not bring back what the failed one lost.
    if journal.data.lostWrites { return nil }
    guard let part = try PartFile.open(claim.job, in: spool) else { return nil }
    guard part.inode == verified.part, part.length == verified.size else { return nil }
    // That number may be another file's by now, where flock(2) keeps no other host away: all of it is read again here as well.
    let mark = try await runBlocking {
      [reading = part.reading(from: .zero, to: part.length)] in
      try reading.run()
    }
    if let mismatch = verified.expectation.mismatch(mark) {
      throw Failure(mismatch, reason: "the data is not what was verified")
    }
    part.adopt(mark)
    try await publish(part, unproven: verified.unproven)
    return mark
  }

  /// A file that bears the output's name: the job is done if it is this job's own data, published before a crash, or has the declared
  /// size and CRC-32.
  /// - Parameter part: the data, where it is open.
  /// - Returns: what the payload is; nil where there is none to accept.
  /// - Throws: `output-exists`; `bad-output` for a directory.
  func acceptExisting(_ part: PartFile? = nil) async throws -> Mark? {
    guard let status = try outputs.opened().status(plan.output) else { return nil }
    if status.isDirectory {
      throw Failure(.badOutput, "\(escaped(plan.output.text)) is a directory: add the file's name")
    }
    let journal = claim.text.journal
    let data = try spool.status(.partial, claim.job.part)
    // What is to replace a file, and has no history, is a new job: that older data of its name is the file itself says nothing of what it wants.
    let isNew = overwrites && claim.origin == .new && journal.isEmpty
    let isOwn = status.isRegular && data?.isSameFile(as: status) == true && !isNew
    if overwrites, !isOwn { return nil }
    // A gesture that came between the receipt and the move to done/ leaves a job whose payload is in its place.
    // So does a crash between the payload's name and the receipt; and what has changed since must not get a receipt of its own.
    let vouched = journal.publication.published ?? (claim.origin == .new ? nil : journal.publication.verified)
    let published = vouched.flatMap { $0.part == status.inode ? $0.digests : nil }
    var expected = plan.request.expected
    guard status.isRegular, expected.mismatch(size: UInt64(status.size)) == nil,
      isOwn || published != nil || expected.provesContent
    else {
      throw outputExists()
    }
    let place = try outputs.place(plan.output)
    let existing = try place.openExisting()
    let mark = try await runBlocking { [reading = existing.reading] in try reading.run() }
    if !expected.provesContent, let published { expected.digests = published }
    guard expected.mismatch(mark) == nil else { throw outputExists() }
    try await durable(existing.flush)
    let unproven = journal.publication.verified?.unproven
    try claim.append(.verified(.now(), .init(mark, part: existing.status.inode, unproven: unproven)))
    try await sync(place)
    try await finish(existing: !isOwn, unproven: unproven, part)
    return mark
  }
}
