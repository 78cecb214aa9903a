internal import Spool

/// Opens a job's data and does what ``Recovery`` decides: cuts, copies, reads it again.
@WorkerLoop struct DataRecovery {
  let claim: Claim
  let plan: JobPlan
  let environment: JobEnvironment
  private var spool: Spool { claim.spool }
  /// How often to try for the lock of the job's own data, 50 ms apart.
  private static let lockTries = 100
  private var digests: Set<DigestAlgorithm> { plan.request.computedDigests(for: claim.text.journal.data.version) }
  private var zero: Mark { .zero(digests, pieces: plan.pieces) }

  /// - Returns: also the bytes that a killed worker fetched and did not record.
  func run() async throws -> (data: PartData, unrecorded: UInt64) {
    let journal = claim.text.journal
    let isVerified = journal.publication.verified != nil
    var (part, isHeld) = if let part = try await openOnce() { (part, false) } else { try await openAgain() }
    let unrecorded = journal.traffic.unrecordedFrom.map { part.length > $0 ? part.length - $0 : 0 } ?? 0
    let sharesLocks =
      journal.attempts.lastStart.map { WorkerName($0.worker.utf8).map(Leases(spool).sharesLocks) ?? false } ?? true
    var recovery = Recovery.decide(
      length: part.length, inode: part.inode, isNew: part.isNew, journal: journal, host: spool.owner.host,
      boot: spool.boot, isTakenOver: claim.isTakenOver || isHeld,
      sharesLocks: claim.formerOwner == .ended && !isHeld && sharesLocks, digests: digests, pieces: plan.pieces)
    // A person has declared the type since, or wants it decoded.
    let mustDecode = journal.data.version?.coding != nil && plan.request.encoded == .decode
    if mustDecode || !plan.request.allows(type: journal.data.version?.type) {
      (recovery.length, recovery.from, recovery.confirmation) = (0, zero, nil)
    }
    // Before `started:` names this boot and host, after which the length counts as trusted.
    if recovery.needsNewInode || part.isShared { part = try await copy(part, to: recovery.length) }
    // After the copy: a worker that wakes up may write to the old file meanwhile.
    if let mark = recovery.verifies, recovery.length > 0,
      try await read(part, from: .zero(mark.states.algorithms), to: mark.offset) != mark
    {
      (recovery.length, recovery.from) = (0, zero)
    }
    var known = recovery.from
    if let confirmation = recovery.confirmation {
      if let mark = try await confirm(confirmation, of: part, recovery) {
        known = mark
      } else {
        recovery.length = recovery.durable
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
    // The file that it is to replace may be newer by now. Verified data counts as older only if that file was changed
    // since. The last byte comes again with the version that the server has.
    if plan.request.overwrite == true, data.isComplete, !plan.request.expected.provesContent, data.doubt == nil,
      try isVerified ? environment.outputs(of: plan).isNewer(plan.output, than: claim.dataStatus()) : true
    {
      data.doubt = TailDoubt(from: part.length - 1, to: part.length)
    }
    return (data, unrecorded)
  }

  /// Takes a copy of the file that the job is to replace, of which only the pieces that are wrong have to be fetched.
  /// The file itself stays as it is. Nothing is taken if there is data of a server, or none or another file.
  func takeReplaced(into data: PartData) async throws {
    // A copy that a crash cut off begins anew. Only an answer has a resource, and only a copy that an attempt has
    // repaired, as far as it could, has a noted end.
    guard let pieces = plan.pieces, plan.request.overwrite == true, let size = plan.request.expected.size,
      data.version.map({ $0.resource == nil && claim.text.journal.data.end == nil }) ?? true,
      data.part.length < size, pieces.sizes.contains(size),
      environment.space.shortage(of: size, for: data) == nil
    else { return }
    let root = try environment.outputs(of: plan).opened()
    guard let status = try root.status(plan.output), status.isRegular, status.size == Int64(clamping: size) else {
      return
    }
    let existing: ExistingOutput
    // A file that is gone, or that cannot be read, saves nothing. It stops no job that is to replace it.
    do { existing = try root.place(plan.output, plan.request.mode).openExisting() } catch { return }
    guard existing.status.size == status.size else { return }
    // Pieces prove what comes of the copy, so it needs no validator. Journaled before the first byte, like any answer.
    try data.prepareForWhole(keeping: .dropped)
    try data.begin(RemoteVersion(mirror: 1, size: size, etag: nil, modified: nil))
    let copy = existing.reading(data.part.algorithms, pieces: pieces).copied(to: data.part)
    guard let mark = try? await runBlocking({ try copy.run() }) else {
      // What was copied before the error counts nowhere yet. An error of the data's own disk comes again.
      try data.part.cutDisowned()
      return try data.prepareForWhole(keeping: .dropped)
    }
    data.part.take(mark)
    // Where most is wrong, it is another file.
    let isAlike = mark.states.pieces.map { !$0.isFull && $0.wrong.count * 2 < pieces.count } ?? false
    if !isAlike { try data.prepareForWhole(keeping: .dropped) }
  }

  /// Opens the job's data file, or creates it, where that failed once. If another job has the name, this job gets
  /// another one.
  /// - Returns: also whether the data is still locked, although the claim was not.
  private func openAgain() async throws -> (PartFile, isHeld: Bool) {
    // A killed process closes its files one by one, so the claim's lock may be free before the data's.
    for _ in 0..<Self.lockTries {
      guard try mayBeOwnData() else { break }
      await runBlocking { Host.current.wait(milliseconds: 50) }
      if let part = try await openOnce() { return (part, false) }
    }
    // Whoever still has it is frozen, and has lost the job to a worker that this one follows.
    if try mayBeOwnData(), let part = try await openOnce(isOwnersFrozen: true) { return (part, true) }
    for _ in 0..<100 {
      try claim.renumber()
      if let part = try await openOnce() { return (part, false) }
    }
    throw Failure(.io, "no free name for the data beside \(claim.job.display)")
  }

  private func mayBeOwnData() throws(SpoolError) -> Bool { try claim.dataStatus()?.isRegular ?? false }

  /// - Returns: nil if another process has the data, or another job.
  private func openOnce(isOwnersFrozen: Bool = false) async throws -> PartFile? {
    // After a power cut the journal may lack the line about the temporary name, although the name itself is durable.
    let part = try PartFile.open(
      claim.job, in: spool, digests: digests, pieces: plan.pieces, own: claim.text.journal.data.part,
      isOwnersFrozen: isOwnersFrozen || claim.formerOwner == .mayWake
    ) { inode in try environment.outputs(of: plan).removeTemporaries(beside: plan.output, of: [inode]) }
    guard let part else { return nil }
    if try part.isNew || claim.owns(data: part.inode) { return part }
    // While this job had no data, another one may have got its name, and may wait there with data of its own. But a
    // copy of the spool has other inodes, and SSHFS gives each host others: then the bytes decide.
    guard let mark = claim.text.journal.data.checkpoint, mark.offset > 0, mark.offset <= part.length,
      try await read(part, from: .zero(mark.states.algorithms), to: mark.offset) == mark
    else { return nil }
    return part
  }

  /// - Returns: where the digests continue; nil if the data before the mark is not what was written.
  private func confirm(_ mark: Mark, of part: PartFile, _ recovery: Recovery) async throws -> Mark? {
    // As long as its pages are in the cache, the kernel knows the inode, and if one could not be written, the next
    // fsync says so (errseq_t).
    if recovery.rewritesFrom == nil, spool.kind.isLocal, let known = mark.narrowed(to: digests, pieces: plan.pieces),
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
    return try await part.read(from: mark, to: end, rewritingFrom: rewritingFrom)
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
    try environment.outputs(of: plan).removeTemporaries(beside: plan.output, of: [part.inode])
    return copied
  }
}

/// How much of the data of earlier attempts is trusted (INTERNALS.md, invariant 4).
struct Recovery: Equatable {
  /// Cut the data to this length…
  var length: UInt64
  /// …and continue the digests from here.
  var from: Mark
  /// Copy the data to a new inode first: writes to this one may still arrive, or were lost.
  var needsNewInode = false
  /// Write the data that is read again beyond this offset: its earlier writes may have been lost unnoticed.
  var rewritesFrom: UInt64?
  /// A mark that was written without a flush of the data before it: a write that failed since, and that no fsync has
  /// reported, may have lost some of it. The data up to here must have this CRC-32. Otherwise…
  var confirmation: Mark?
  /// …only this length is durable.
  var durable: UInt64 = 0
  /// Also read everything before this mark, and start from 0 unless its digests agree: the file is not the one that the
  /// journal names.
  var verifies: Mark?

  /// - Parameters length, inode: of the data file.
  /// - Parameter isNew: whether this attempt has made it.
  /// - Parameters host, boot: of this worker.
  /// - Parameter isTakenOver: whether the last attempt has no end record.
  /// - Parameter sharesLocks: whether the lock that this worker has proves that the last one has ended.
  /// - Parameter digests: those to compute beside CRC-32.
  static func decide(
    length: UInt64, inode: UInt64, isNew: Bool, journal: Journal, host: String, boot: String, isTakenOver: Bool,
    sharesLocks: Bool, digests: Set<DigestAlgorithm> = [], pieces: PieceList? = nil
  ) -> Recovery {
    let length = min(length, journal.data.end ?? length)
    // A host of the same name may be another one, whose worker only sleeps unless it has recorded its end.
    let isSameHost = journal.attempts.lastStart.map { $0.host == host && (sharesLocks || !isTakenOver) } ?? sharesLocks
    // A sleeping worker on another host may still write to the file. A file that the journal does not name may be
    // another job's, or such a worker may have opened it, also while it is still empty.
    let isForeign = !isSameHost || (length > 0 || !isNew) && (journal.data.version == nil || journal.data.part != inode)
    let zero = Mark.zero(digests, pieces: pieces)
    var nothing = Recovery(length: 0, from: zero)
    nothing.needsNewInode = journal.data.lostWrites || isForeign
    guard length > 0, journal.data.version != nil, let start = journal.attempts.lastStart else { return nothing }
    // After the death of a process its writes are still there. After the crash of a machine the file may have the
    // length without the data.
    let isTrusted = isSameHost && start.boot == boot && boot != "unknown" && !journal.data.lostWrites
    // The worker may have died between a failed fsync and the line that records it. The page cache still has the bytes,
    // but treats them as written.
    let isDoubtful = isTrusted && isTakenOver && !isForeign
    let marks = [isTrusted && !isDoubtful ? journal.data.softMark : nil, journal.data.checkpoint].compactMap { $0 }
      .filter { $0.offset <= length }
    let mark = marks.max { $0.offset < $1.offset } ?? .zero
    let usable = isTrusted ? length : mark.offset
    if usable == 0 { return nothing }
    // A mark that has not all of the digests still tells how much of the data is there. A job whose text was changed,
    // or that another version worked on, has such marks.
    let durable = isForeign ? marks : marks.filter { $0 == journal.data.checkpoint }
    let known = durable.compactMap { $0.narrowed(to: digests, pieces: pieces) }.max { $0.offset < $1.offset } ?? zero
    var recovery = Recovery(length: usable, from: known, needsNewInode: isForeign || journal.data.lostWrites)
    if isDoubtful { recovery.rewritesFrom = mark.offset }
    recovery.durable = journal.data.checkpoint?.offset ?? 0
    if isTrusted, let soft = journal.data.softMark, soft.offset <= length, soft.offset > recovery.durable {
      recovery.confirmation = soft
    }
    if isForeign {
      // The file may come from cp or a restored backup, or belong to another job of the same name. Data from another
      // host may be such a file even with the same inode number, because file systems reuse numbers.
      guard mark.offset > 0 else { return nothing }
      recovery.length = mark.offset
      (recovery.verifies, recovery.confirmation) = (mark, nil)
    }
    // Shorter than what was durable, so it is not the file that the journal describes.
    if let checkpoint = journal.data.checkpoint, length < checkpoint.offset { return nothing }
    return recovery
  }
}

extension Claim {
  /// Whether the last attempt has no end record, because its worker was killed, even if the job was moved since.
  var isTakenOver: Bool { origin == .cur || text.journal.attempts.isOpen }
}
