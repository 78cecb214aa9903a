internal import Glibc
internal import SystemPackage

/// What came of the attempt to claim a job.
package enum ClaimOutcome {
  case claimed(Claim)
  /// Another worker has it, or was faster: normal and silent.
  case unavailable
  /// It had gone before this worker tried, or a job of its name runs here.
  case gone
  /// Its owner has it at least until this second since the epoch.
  case leased(until: Int64)
  /// It may still be written; look again at this second since the epoch.
  case unfinished(Unfinished, until: Int64)
  /// Its next attempt is at this second since the epoch.
  case notDue(Int64)
  /// It is no valid job, and is in `failed/` under this name now, with a record of the reason.
  case rejected(FileName, Defect)
  /// The kernel does not allow this file to be examined, claimed or moved, so it stays where it is. For a file that is
  /// not a valid job there is a record in `failed/`.
  case barred(Defect)
}

extension Spool {
  /// Bytes of a job file with its journal; a longer file is no job.
  package static let maximumJobFile = 16 << 20

  /// Takes the job `name` from `origin` (`new`, `urgent`, `partial`, `standing`, or `cur` for a take-over): lock,
  /// judge, rename to a name of our own, confirm.
  /// - Parameters:
  ///   - now: the time by the clock of the spool's file system.
  ///   - isForced: also a job whose next attempt is not due.
  /// - Throws: ``SpoolError`` for what would stop every job.
  package func claim(_ name: FileName, from origin: Directory, now: Timestamp, isForced: Bool = false)
    throws(SpoolError) -> ClaimOutcome
  {
    do throws(SpoolError) {
      return try take(name, from: origin, now: now, isForced: isForced)
    } catch  where concernsOneFile(error, in: origin) {
      return .barred(Defect(line: nil, reason: "cannot be taken: \(error)"))
    }
  }

  /// Looks at the file from outside, and claims it if it is a job for this worker.
  private func take(_ name: FileName, from origin: Directory, now: Timestamp, isForced: Bool) throws(SpoolError)
    -> ClaimOutcome
  {
    let source = Path(origin, name)
    guard let job = origin == .cur ? ClaimName(name)?.job : JobName(name) else {
      if origin == .cur { return .unavailable }
      let reason = JobName.defect(of: name) ?? "its name starts with a dot"
      return try reject(name, from: origin, Defect(line: nil, reason: reason))
    }
    let found: FileStatus?
    do throws(SpoolError) {
      found = try status(origin, name)
    } catch  where error.errno == .permissionDenied && origin.takesDrops {
      // Another user's file system may be mounted there (fuse(4)).
      return .barred(Defect(line: nil, reason: "cannot be examined: \(error.errno)"))
    }
    guard let status = found else { return .gone }
    if origin == .cur, let end = try endOfLease(name, status, now: now) { return .leased(until: end) }
    guard status.isRegular else {
      return try reject(name, from: origin, Defect(line: nil, reason: "not a regular file: a job is a plain text file"))
    }
    // Another worker may have claimed and parked it since it was found.
    if !isForced, !Self.isDue(status.modified, in: origin, at: now.seconds) { return .notDue(status.modified) }
    if try isInHand(job, from: origin) { return .gone }
    do throws(SpoolError) {
      let dropping = origin.isDroppedInto ? try dropping(source, status, origin, now: now) : .ended
      switch dropping {
      case .unfinished(let why): return .unfinished(why, until: Self.endOfRest(of: status, at: now))
      case .mayGoOn: return try claim(job, source, origin, now: now, mayBeWritten: true)
      case .ended: return try claim(job, source, origin, now: now)
      }
    } catch  where error.isGone {
      // Another worker has moved it, or on another host has replaced and so removed the file that is open here.
      return .unavailable
    } catch  where error.call == .open && error.errno == .wouldBlock {
      // Another worker briefly has a lease on it, to see whether a process is writing (open(2), O_NONBLOCK).
      return .unavailable
    } catch  where error.call == .open && error.isNoRegularFile {
      // It has just replaced a regular file. The next scan handles it.
      return .unavailable
    } catch  where error.call == .open && error.errno == .permissionDenied {
      return try reject(name, from: origin, Defect(line: nil, reason: "cannot be read: \(error.errno)"))
    }
  }

  // MARK: lock, judge, rename, confirm

  /// A job's file that this worker has locked and not yet confirmed in `cur/`.
  private struct Candidate: ~Copyable {
    var job: JobName
    /// By the name that it has at the moment.
    var file: OwnedFile
    /// Of ``file``.
    var status: FileStatus
    /// The same when it was locked.
    let found: FileStatus
    /// Whether the open file can be written to.
    let isWritable: Bool
    let origin: Directory
    /// Where it was when it was locked.
    let source: Path
    /// Whether `source` is the claim's name already.
    let isNamed: Bool
    /// Its dropper may still write to it, unseen.
    let mayBeWritten: Bool
    /// Of a claim.
    let formerOwner: Claim.FormerOwner
    /// A `requeued:` line was added that the text does not have.
    var isRequeueNoted = false

    /// Whether this worker alone can change the file.
    var isOurs: Bool {
      isWritable && !mayBeWritten && formerOwner == .ended && status.owner == geteuid() && status.links == 1
    }
  }

  /// - Parameters:
  ///   - mayBeWritten: somebody who is not seen may still write to it.
  ///   - isNamed: `source` is the claim's name already.
  private func claim(
    _ job: JobName, _ source: Path, _ origin: Directory, now: Timestamp, mayBeWritten: Bool = false,
    isNamed: Bool = false
  ) throws(SpoolError) -> ClaimOutcome {
    guard var candidate = try lock(job, source, origin, now: now, mayBeWritten: mayBeWritten, isNamed: isNamed) else {
      return origin == .cur && !isNamed ? try lockedOutcome(source, now: now) : .unavailable
    }
    let judgement = try judge(candidate.file, candidate.status, origin, now: now)
    guard let text = judgement.text else {
      return .unfinished(
        candidate.status.size == 0 ? .empty : .lacksNewline, until: Self.endOfRest(of: candidate.status, at: now))
    }
    if let defect = judgement.defect, !candidate.isOurs, candidate.status.size > Self.maximumJobFile,
      let name = source.name
    {
      // The file is neither written to, because it may be any file, nor copied. Its record is a separate file.
      return try reject(name, from: origin, defect)
    }
    guard try rename(&candidate, text, isSound: judgement.defect == nil) else { return .unavailable }
    return try confirm(candidate, judgement, text, now: now)
  }

  /// What to tell of a claim that another worker has locked.
  private func lockedOutcome(_ claim: Path, now: Timestamp) throws(SpoolError) -> ClaimOutcome {
    guard let name = claim.name, let owner = ClaimName(name)?.owner, owner.text != self.owner.text,
      let status = try status(.cur, name), let end = try restOfSilence(name, status, now: now)
    else { return .unavailable }
    return .leased(until: end)
  }

  /// Opens and locks the file at `source`, and completes a move of it that was interrupted. The lock of a frozen worker
  /// does not count.
  /// - Returns: nil where another worker has it, or where it has moved.
  private func lock(
    _ job: JobName, _ source: Path, _ origin: Directory, now: Timestamp, mayBeWritten: Bool, isNamed: Bool
  ) throws(SpoolError) -> Candidate? {
    let flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
    var file: OwnedFile
    var isWritable = true
    do throws(SpoolError) {
      file = try system.open(root, source, O_RDWR | flags)
    } catch  where [.permissionDenied, .notPermitted, .readOnlyFileSystem, .textFileBusy].contains(error.errno) {
      file = try system.open(root, source, O_RDONLY | flags)
      isWritable = false
    }
    let isFree = try file.lock()
    if !isFree, origin != .cur || isNamed { return nil }
    var status = try file.status()
    guard status.isRegular, isFree || isFrozen(source, status, now: now) else { return nil }
    if status.links > 1 {
      guard try completeInterruptedMove(job, origin, source, status) else { return nil }
      status = try file.status()
    }
    return Candidate(
      job: job, file: file, status: status, found: status, isWritable: isWritable, origin: origin, source: source,
      isNamed: isNamed, mayBeWritten: mayBeWritten,
      formerOwner: isFree ? .ended : .mayWake)
  }

  /// Gives the job a name that no older job has, and renames it to the claim's name.
  /// - Returns: false where the claim's name is in use, or the file has moved.
  private func rename(_ candidate: inout Candidate, _ text: JobText, isSound: Bool) throws(SpoolError) -> Bool {
    let source = candidate.source
    if candidate.origin.takesDrops {
      candidate.job = Self.withoutOwner(candidate.job, text)
      // Also before the rename: a worker that takes the claim over uses the data of that name.
      if !candidate.isNamed, try isTaken(candidate.job, source) { candidate.job = try freeName(like: candidate.job) }
    }
    let name = ClaimName.fileName(candidate.job, owner)
    let target = Path(.cur, name)
    // rename(2) would replace our own claim of another job of this name: that one comes first. It may be this very one,
    // which this process let go of when the spool failed under it.
    if !candidate.isNamed, source != target, try status(.cur, name) != nil { return false }
    if candidate.isOurs, isSound { try noteArrival(&candidate, text) }
    if !candidate.isNamed {
      // Before the rename: with the time of its last change, a claim would look like a dead worker's to other hosts. A
      // file that is not ours gets its time when it is replaced; a frozen worker's, before others take it as well.
      if candidate.isOurs || candidate.formerOwner == .mayWake { try touch(candidate.file) }
      do throws(SpoolError) {
        try system.rename(root, source, target)
      } catch  where error.isImmovable {
        // Something else may have taken the name, and cannot be moved: the next scan sees what it is.
        if try system.status(root, source).isSameFile(as: candidate.status) { throw error }
        return false
      }
    }
    candidate.file.path = target
    return true
  }

  /// Makes sure that the file which has the claim's name is the one that was locked and judged.
  private func confirm(_ candidate: consuming Candidate, _ judgement: Judgement, _ text: JobText, now: Timestamp)
    throws(SpoolError) -> ClaimOutcome
  {
    let (target, source) = (candidate.file.path, candidate.source)
    // The name may have passed to another file between open and rename: that one is neither locked nor read.
    guard let moved = try status(.cur, ClaimName.fileName(candidate.job, owner)), moved.isSameFile(as: candidate.status)
    else {
      // It has not been examined as a dropped file is.
      let outcome = try claim(
        candidate.job, target, candidate.origin, now: now,
        mayBeWritten: candidate.origin.isDroppedInto && kind.leases != .both, isNamed: true)
      // Its owner has just replaced it and still has it. It gets its name back, because the owner would otherwise
      // consider it moved.
      if case .unavailable = outcome { try giveBack(target, source) }
      return outcome
    }
    let isOurs = candidate.isOurs
    let claim = Claim(
      spool: self, job: candidate.job, origin: candidate.origin, file: candidate.file.shared(), identity: moved,
      text: text, isRequeueNoted: candidate.isRequeueNoted, formerOwner: candidate.formerOwner)
    if candidate.origin.takesDrops { claim.knownSince = Timestamp(seconds: candidate.found.modified) }
    if !isOurs { try claim.replaceFile(by: judgement.bytes) }
    try claim.dropTornTail()
    guard let defect = judgement.defect else {
      // The copy of another user's file has no such line.
      if !isOurs, claim.origin == .urgent, !text.isMarkedUrgent { try claim.append(.urgent(.now())) }
      return .claimed(claim)
    }
    try claim.append(Self.record(of: defect))
    try claim.giveUp()
    return .rejected(claim.job.fileName, defect)
  }

  /// Journals how the job came. A fresh budget of attempts begins if it has a journal already, and if it came through
  /// `urgent/`, its later attempts go first as well.
  ///
  /// To be called before the rename: in cur/, a journal that ends with a failure means that the move to failed/ is
  /// still to be made.
  private func noteArrival(_ candidate: inout Candidate, _ text: JobText) throws(SpoolError) {
    guard candidate.origin.takesDrops else { return }
    candidate.isRequeueNoted = !text.journal.isEmpty
    let isUrgencyNew = candidate.origin == .urgent && !text.isMarkedUrgent
    guard candidate.isRequeueNoted || isUrgencyNew else { return }
    let now = Timestamp.now()
    let lines =
      (candidate.isRequeueNoted ? JournalLine.requeued(now).text : "")
      + (isUrgencyNew ? JournalLine.urgent(now).text : "")
    if text.hasTornTail { try candidate.file.truncate(to: Int64(text.completeLength)) }
    try candidate.file.write(Array(lines.utf8), at: Int64(text.completeLength))
    candidate.status = try candidate.file.status()
  }

  /// Undoes the claim's rename. Where another job has taken the name meanwhile, the file stays in `cur/`, to be taken
  /// over.
  private func giveBack(_ claim: Path, _ source: Path) throws(SpoolError) {
    do throws(SpoolError) {
      try moveNoReplace(claim, source)
    } catch  where error.isGone || error.errno == .fileExists {
    }
  }
}
