internal import Glibc
internal import Synchronization
internal import SystemPackage

extension Claims {
  /// Takes the job `name` from `origin` (`new`, `urgent`, `partial`, `standing`, or `cur` for a take-over): lock,
  /// judge, rename to a name of our own, confirm.
  /// - Parameter now: the time by the clock of the spool's file system.
  /// - Parameter knownDue: also a job whose next attempt is due by then, in seconds since the epoch.
  /// - Parameter isWanted: whether to take a job with this text. If not, it keeps its name, and is unavailable.
  /// - Throws: ``SpoolError`` for what would stop every job.
  package func claim(
    _ name: FileName, from origin: Directory, now: Timestamp, knownDue: Int64 = .min,
    where isWanted: (JobText) -> Bool = { _ in true }
  ) throws(SpoolError) -> ClaimOutcome {
    do throws(SpoolError) {
      return try take(name, from: origin, now: now, knownDue: knownDue, isWanted)
    } catch  where spool.concernsOneFile(error, in: origin) {
      return .barred(Defect(line: nil, reason: "cannot be taken: \(error)"))
    }
  }

  /// Claims the file if it is a job for this worker, and says what else it is.
  private func take(
    _ name: FileName, from origin: Directory, now: Timestamp, knownDue: Int64, _ isWanted: (JobText) -> Bool
  ) throws(SpoolError) -> ClaimOutcome {
    let source = Path(origin, name)
    guard let job = origin == .cur ? ClaimName(name)?.job : JobName(name) else {
      if origin == .cur { return .unavailable }
      let reason = JobName.defect(of: name) ?? "its name starts with a dot"
      return try reject(name, from: origin, Defect(line: nil, reason: reason))
    }
    do throws(SpoolError) {
      return try claim(job, source, origin, now: now, knownDue: knownDue, isWanted)
    } catch  where error.isGone {
      // Another worker has moved it, or on another host has replaced and so removed the file that is open here.
      try spool.checkDirectories()
      return .unavailable
    } catch  where error.isLeased {
      return origin.takesDrops ? .unfinished(.inUse, until: now.seconds + FileStatus.settlingTime) : .unavailable
    } catch  where error.call == .open && (error.isNoRegularFile || error.errno == .permissionDenied) {
      // By the claim's name it has just taken the place of a regular file: the next scan handles it.
      return error.path == source.display ? try refuse(name, from: origin, error, now: now) : .unavailable
    }
  }

  private func refuse(_ name: FileName, from origin: Directory, _ error: SpoolError, now: Timestamp)
    throws(SpoolError) -> ClaimOutcome
  {
    let source = Path(origin, name)
    let found: FileStatus?
    do throws(SpoolError) {
      found = try spool.status(origin, name)
    } catch  where error.errno == .permissionDenied && origin.takesNewJobs {
      // Another user's file system may be mounted there (fuse(4)).
      return .barred(Defect(line: nil, reason: "cannot be examined: \(error.errno)"))
    }
    guard let status = found else { return .unavailable }
    if origin == .cur, let end = try Leases(spool).endOfLease(source, status, now: now) { return .leased(until: end) }
    guard status.isRegular else { return try rejectNoFile(source, origin) }
    // A regular file has just taken the name. The next scan handles it.
    guard error.errno == .permissionDenied else { return .unavailable }
    return try reject(name, from: origin, Defect(line: nil, reason: "cannot be read: \(error.errno)"))
  }

  // MARK: lock, judge, rename, confirm

  private func claim(
    _ job: JobName, _ source: Path, _ origin: Directory, now: Timestamp, knownDue: Int64,
    _ isWanted: (JobText) -> Bool, isNamed: Bool = false
  ) throws(SpoolError) -> ClaimOutcome {
    var candidate: LockedJob
    switch try lock(job, source, origin, now: now, knownDue: knownDue, isNamed: isNamed) {
    case .refused(let outcome): return outcome
    case .locked(let locked): candidate = locked
    }
    if try isTouched(candidate) { return .unfinished(.empty, until: now.seconds + FileStatus.settlingTime) }
    let judgement = try judge(candidate.lock, candidate.status, origin, now: now)
    if let unfinished = unfinished(candidate, judgement, now: now) {
      return .unfinished(unfinished, until: candidate.status.endOfRest(at: now))
    }
    guard let text = judgement.text, isWanted(text) else { return .unavailable }
    if mayBeWritten(candidate, judgement) { candidate.isOurs = false }
    if let defect = judgement.defect, candidate.status.size > spool.textLimit(of: candidate.status),
      let name = source.name
    {
      guard try openForWriting(&candidate, at: source) else { return .unavailable }
      // Such a file is neither written to, because it may be any file, nor copied. Its record is a separate file.
      if !candidate.isOurs { return try reject(name, from: origin, defect) }
    }
    if let refusal = try rename(&candidate, text, isSound: judgement.defect == nil) { return refusal }
    if mayLackLines(candidate, text) { candidate.isOurs = false }
    return try confirm(candidate, judgement, text, now: now, isWanted)
  }

  /// Whether it is the empty file that touch(1) makes where a job waits for its next attempt while that attempt runs.
  /// It goes when the attempt has ended.
  private func isTouched(_ candidate: LockedJob) throws(SpoolError) -> Bool {
    guard candidate.origin.isScheduled, candidate.status.size == 0 else { return false }
    return try spool.list(.cur).contains { ClaimName($0)?.job == candidate.job }
  }

  /// Whether a dropper may still write the file.
  private func unfinished(_ candidate: LockedJob, _ judgement: Judgement, now: Timestamp) -> Unfinished? {
    if let lease = candidate.lease, candidate.status.isYoung(at: now) {
      // This user may not ask for leases on the file, so its age decides.
      if lease == .unknown, spool.kind.isLocal { return .young }
      if mayBeWritten(candidate, judgement) { return .unsettled }
    }
    if judgement.text != nil { return nil }
    return candidate.status.size == 0 ? .empty : .lacksNewline
  }

  /// Whether somebody who is not seen may still write to the file.
  private func mayBeWritten(_ candidate: LockedJob, _ judgement: Judgement) -> Bool {
    guard candidate.origin.takesDrops, let lease = candidate.lease else { return false }
    if lease == .granted && spool.kind.leaseShowsAllWriters || lease == .unknown && spool.kind.isLocal { return false }
    return !JobText.saysComplete(judgement.bytes)
  }

  /// Whether the file may lack lines, so that a copy has to take its place. A worker may have died between a failed
  /// fsync and the line that says so: the page cache has what the disk lacks. Or a worker of another host, whose lock
  /// may not be seen here, lost the job to a person and still has a line to write, or sleeps.
  private func mayLackLines(_ candidate: LockedJob, _ text: JobText) -> Bool {
    guard !candidate.origin.takesDrops, candidate.status.size <= Spool.maximumJobFile else { return false }
    // What has failed is only moved, which needs no space.
    if candidate.origin == .cur { return !text.journal.attempts.endsInFailure }
    let attempts = text.journal.attempts
    return !spool.kind.isLocal && attempts.isOpen && attempts.lastStart?.host != spool.owner.host
  }

  /// Gives the job a name that no older job has, and renames it to the claim's name.
  /// - Returns: why it cannot be claimed; nil if it has the claim's name now.
  private func rename(_ candidate: inout LockedJob, _ text: JobText, isSound: Bool) throws(SpoolError) -> ClaimOutcome?
  {
    let source = candidate.source
    if candidate.origin.takesNewJobs {
      candidate.job = Self.withoutOwner(candidate.job, text)
      // Also before the rename: a worker that takes the claim over uses the data of that name.
      if !candidate.isNamed, try JobSearch(spool).isTaken(candidate.job, source) || isOfEntry(candidate) {
        candidate.job = try JobSearch(spool).freeName(like: candidate.job)
      }
    }
    let name = ClaimName.fileName(candidate.job, spool.owner)
    let target = Path(.cur, name)
    // Asked before the file is opened for writing or gets another time: a worker that watches would look again without
    // end.
    if !candidate.isNamed, source != target, try isOurs(name) { return candidate.origin == .cur ? .unavailable : .gone }
    guard try openForWriting(&candidate, at: source) else { return .unavailable }
    if isSound { try noteArrival(&candidate, text) }
    if !candidate.isNamed {
      // Before the rename: others would take a claim with an old time for a dead or frozen worker's
      // (``Leases/beat(of:)``). But a dead worker's claim that may not be changed (chattr(1)) cannot be moved either: a
      // touch would make its owner seem alive.
      let mayMove = candidate.isOurs || candidate.origin != .cur || candidate.formerOwner == .mayWake
      if mayMove, spool.isWorkersOwn(candidate.status) { try spool.touch(candidate.lock) }
      do throws(SpoolError) {
        try spool.system.rename(spool.root, source, target)
      } catch  where error.isImmovable {
        // Something else may have taken the name, and cannot be moved: the next scan sees what it is.
        if try spool.system.status(spool.root, source).isSameFile(as: candidate.status) { throw error }
        return .unavailable
      }
    }
    candidate.rename(to: target)
    return nil
  }

  /// Whether another user's job has a name that the jobs of a standing order have: the order would take it for the one
  /// that it has dropped.
  private func isOfEntry(_ candidate: LockedJob) -> Bool {
    !spool.believesJournal(of: candidate.status) && FeedEntry.isKeyed(candidate.job)
  }

  /// Whether this worker has another claim of this name. rename(2) would replace it, so it comes first, also if a
  /// person has removed its file. It may be the candidate, which this process let go of when the spool failed under it.
  private func isOurs(_ name: FileName) throws(SpoolError) -> Bool {
    if spool.namesInHand.withLock({ $0.contains(name) }) { return true }
    return try spool.status(.cur, name) != nil
  }

  /// Makes sure that the file which has the claim's name is the one that was locked and judged.
  private func confirm(
    _ candidate: LockedJob, _ judgement: Judgement, _ text: JobText, now: Timestamp, _ isWanted: (JobText) -> Bool
  ) throws(SpoolError) -> ClaimOutcome {
    let (target, source) = (candidate.lock.path, candidate.source)
    // The name may have passed to another file between open and rename: that one is neither locked nor read. Or a move
    // by link and unlink has begun.
    guard let found = try spool.status(.cur, ClaimName.fileName(candidate.job, spool.owner)),
      found.isSameFile(as: candidate.status), found.links <= candidate.status.links
    else {
      let outcome: ClaimOutcome
      do throws(SpoolError) {
        // If this process slept, the file may be newer than `now`.
        outcome = try claim(
          candidate.job, target, candidate.origin, now: max(now, spool.now()), knownDue: .max, isWanted, isNamed: true)
      } catch {
        try giveBack(target, source)
        throw error
      }
      switch outcome {
      case .claimed, .rejected: break
      // Its owner has just replaced it and still has it, or still writes it, or it is another job than was wanted. It
      // gets its name back: its owner would otherwise consider it moved.
      default: try giveBack(target, source)
      }
      return outcome
    }
    let files = Claim.Files(file: candidate.writable ?? candidate.lock, lock: candidate.lock, identity: found)
    let isCopied = !candidate.isOurs
    let lines = isCopied && judgement.defect == nil && !text.hasTornTail ? arrival(candidate, text) : []
    let claim = Claim(
      spool: spool, job: candidate.job, origin: candidate.origin, files, text: text,
      isRequeueNoted: candidate.isRequeueNoted || !lines.isEmpty && !text.journal.isEmpty,
      formerOwner: candidate.formerOwner,
      knownSince: candidate.origin.takesNewJobs ? Timestamp(seconds: candidate.foundChanged) : text.journal.knownSince)
    if isCopied { try claim.replaceFile(by: judgement.bytes + lines) }
    try claim.dropTornTail()
    guard let defect = judgement.defect else {
      // A copy whose last line is torn has no such line.
      if isCopied, lines.isEmpty, claim.origin == .urgent, !text.isMarkedUrgent {
        try claim.append(.urgent(spool.now()))
      }
      return .claimed(claim)
    }
    try claim.append(record(of: defect))
    try claim.giveUp()
    return .rejected(claim.job.fileName, defect)
  }

  /// Journals how the job came. A fresh budget of attempts begins if it has a journal already, and if it came through
  /// `urgent/`, its later attempts go first as well.
  ///
  /// To be called before the rename: in cur/, a journal that ends with a failure means that the move to failed/ is
  /// still to be made.
  private func noteArrival(_ candidate: inout LockedJob, _ text: JobText) throws(SpoolError) {
    let lines = arrival(candidate, text)
    guard !lines.isEmpty, candidate.isOurs, let file = candidate.writable else { return }
    if text.hasTornTail { try file.truncate(to: Int64(text.completeLength)) }
    do throws(SpoolError) {
      try file.write(lines, at: Int64(text.completeLength))
      // After a power cut, the receipt would count again, and nobody looks for a file that was delivered.
      if text.journal.publication.receipt?.isDelivered == true { try file.fdatasync() }
    } catch {
      // A job without a journal would count as one that is still written.
      try? file.truncate(to: Int64(text.completeLength))
      throw error
    }
    candidate.isRequeueNoted = !text.journal.isEmpty
  }

  /// The lines of the journal that say how the job came.
  private func arrival(_ candidate: LockedJob, _ text: JobText) -> [UInt8] {
    guard candidate.origin.takesNewJobs else { return [] }
    let now = spool.now()
    let requeued = text.journal.isEmpty ? "" : JournalLine.requeued(now).text
    let urgent = candidate.origin == .urgent && !text.isMarkedUrgent ? JournalLine.urgent(now).text : ""
    return Array((requeued + urgent).utf8)
  }

  /// Undoes the claim's rename. It must not stay in `cur/`, where nobody asks whether a file is still written.
  private func giveBack(_ claim: Path, _ source: Path) throws(SpoolError) {
    try orNil(spool.putBack(claim, at: source), where: \.isGone)
  }
}
