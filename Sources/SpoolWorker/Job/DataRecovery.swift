internal import Spool

/// Opens a job's data and does what ``Recovery`` decides: cuts, copies, reads it again.
@WorkerLoop
struct DataRecovery {
  struct Result {
    let data: PartData
    /// Bytes that a killed worker fetched and did not record.
    let unrecorded: UInt64
  }

  private let claim: Claim
  private let plan: JobPlan
  private let environment: JobEnvironment
  private var spool: Spool { claim.spool }
  /// How often to try for the lock of the job's own data, 50 ms apart.
  private static let lockTries = 100
  private var digests: Set<DigestAlgorithm> {
    plan.request.computedDigests(for: claim.text.journal.data.version)
  }

  init(_ claim: Claim, _ plan: JobPlan, _ environment: JobEnvironment) {
    self.claim = claim
    self.plan = plan
    self.environment = environment
  }

  func run() async throws -> Result {
    let journal = claim.text.journal
    var (part, isHeld) = try await open()
    let unrecorded = journal.traffic.unrecordedFrom.map { part.length > $0 ? part.length - $0 : 0 } ?? 0
    let sharesLocks =
      journal.attempts.lastStart.map { WorkerName($0.worker.utf8).map(spool.sharesLocks) ?? false } ?? true
    var recovery = Recovery.decide(
      length: part.length, inode: part.inode, isNew: part.isNew, journal: journal, host: spool.owner.host,
      boot: spool.boot, isTakenOver: claim.isTakenOver || isHeld,
      sharesLocks: claim.formerOwner == .ended && !isHeld && sharesLocks, digests: digests)
    // A person has declared the type since, or wants it decoded.
    let mustDecode = journal.data.version?.coding != nil && plan.request.encoded == .decode
    if mustDecode || !plan.request.allows(type: journal.data.version?.type) {
      (recovery.length, recovery.from) = (0, .zero(digests))
    }
    // Before `started:` names this boot and host, after which the length counts as trusted.
    if recovery.needsNewInode || part.isShared { part = try await copy(part, to: recovery.length) }
    // After the copy: a worker that wakes up may write to the old file meanwhile.
    if let mark = recovery.verifies, recovery.length > 0,
      try await read(part, from: .zero(mark.states.algorithms), to: mark.offset) != mark
    {
      (recovery.length, recovery.from) = (0, .zero(digests))
    }
    var known = recovery.from
    if let confirmation = recovery.confirmation {
      if let mark = try await confirm(confirmation.mark, of: part, recovery) {
        known = mark
      } else {
        recovery.length = confirmation.durable
        let reason = "the data is not what was written: a write to the disk seems to have failed since"
        environment.log(
          Event(
            "data-lost", .warning, job: claim.job.fileName,
            Fields().with("at", recovery.length).with("reason", reason)))
      }
    }
    try part.truncate(to: recovery.length)
    if recovery.length > 0 {
      part.adopt(try await read(part, from: known, to: recovery.length, rewritingFrom: recovery.rewritesFrom))
    }
    let data = PartData(
      claim: claim, request: plan.request, part: part, version: part.length > 0 ? journal.data.version : nil,
      isOfOtherSource: journal.data.source.map { !plan.asks(for: $0) } ?? true,
      space: environment.space, blocks: environment.blocks)
    return Result(data: data, unrecorded: unrecorded)
  }

  /// Opens the job's data file, or creates it. If another job has the name, this job gets another one.
  /// - Returns: also whether the data is still locked, although the claim was not.
  private func open() async throws -> (PartFile, isHeld: Bool) {
    if let part = try openOnce() { return (part, false) }
    // A killed process closes its files one by one, so the claim's lock may be free before the data's.
    for _ in 0..<Self.lockTries {
      guard try mayBeOwnData() else { break }
      await runBlocking { Host.current.wait(milliseconds: 50) }
      if let part = try openOnce() { return (part, false) }
    }
    // Whoever still has it is frozen, and has lost the job to a worker that this one follows.
    if try mayBeOwnData(), let part = try openOnce(isOwnersFrozen: true) { return (part, true) }
    for _ in 0..<100 {
      try claim.renumber()
      if let part = try openOnce() { return (part, false) }
    }
    throw Failure(.io, "no free name for the data beside \(claim.job.display)")
  }

  /// Whether the file at the data's name is the one that the job's journal names, or no other job can have made it. The
  /// journal names the data only when a response has come: a worker that made it or copied it may have ended before.
  private func mayBeOwnData() throws(SpoolError) -> Bool {
    guard let found = try spool.status(.partial, claim.job.part), found.isRegular else { return false }
    if found.inode == claim.text.journal.data.part { return true }
    return try !claim.hasNamesake()
  }

  private func openOnce(isOwnersFrozen: Bool = false) throws -> PartFile? {
    // After a power cut the journal may lack the line about the temporary name, although the name itself is durable.
    try PartFile.open(
      claim.job, in: spool, digests: digests, own: claim.text.journal.data.part,
      isOwnersFrozen: isOwnersFrozen || claim.formerOwner == .mayWake
    ) { inode in
      try environment.outputs(of: plan).opened().removeTemporaries(beside: plan.output, of: [inode])
    }
  }

  /// - Returns: where the digests continue; nil if the data before the mark is not what was written.
  private func confirm(_ mark: Mark, of part: PartFile, _ recovery: Recovery) async throws -> Mark? {
    // As long as its pages are in the cache, the kernel knows the inode, and if one could not be written, the next
    // fsync says so (errseq_t).
    if recovery.rewritesFrom == nil, spool.kind.isLocal, let known = mark.narrowed(to: digests),
      part.cache.has(recovery.from.offset..<mark.offset)
    {
      return known
    }
    let found = try await read(part, from: recovery.from, to: mark.offset, rewritingFrom: recovery.rewritesFrom)
    return found.digests[.crc32] == mark.digests[.crc32] ? found : nil
  }

  private func read(_ part: PartFile, from mark: Mark, to end: UInt64, rewritingFrom: UInt64? = nil) async throws
    -> Mark
  {
    // A worker that has recorded its end leaves nothing to read.
    if mark.offset >= end { return mark }
    return try await runBlocking { [reading = part.reading(from: mark, to: end, rewritingFrom: rewritingFrom)] in
      try reading.run()
    }
  }

  private func copy(_ part: PartFile, to length: UInt64) async throws -> PartFile {
    // A failure, not a wait for space: the job would be claimed again at once, since the wait covers only bytes still
    // to come.
    if let shortage = environment.space.shortage(of: length) {
      throw Failure(
        .diskFull, "the data has to be copied: \(shortage.reason)", expected: "\(shortage.needed)",
        found: "\(shortage.free)")
    }
    let copy = part.rebuilding(to: length, owner: claim.job)
    let copied = part.replaced(by: try await runBlocking { () throws(SpoolError) in try copy.run() })
    // An inode without a name can get none any more (linkat(2), ENOENT): from here on, what a worker that wakes up has
    // verified is not published.
    try environment.outputs(of: plan).opened().removeTemporaries(beside: plan.output, of: [part.inode])
    return copied
  }
}
