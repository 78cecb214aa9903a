internal import Glibc
internal import SystemPackage

/// A job's file that this worker has locked and not yet confirmed in `cur/`.
struct LockedJob {
  var job: JobName
  /// By this open file it is locked, and read.
  var lock: SharedFile
  /// The same file, open for writing; nil as long as that is not needed, and where it is not allowed.
  var writable: SharedFile?
  var status: FileStatus
  /// When the file was last written or renamed, in seconds since the epoch, before this worker did.
  let foundChanged: Int64
  let origin: Directory
  let source: Path
  /// Whether `source` is the claim's name already.
  let isNamed: Bool
  let formerOwner: Claim.FormerOwner
  /// What the kernel said of those who have it open for writing; nil if it was not asked.
  let lease: LeaseAnswer?
  /// Whether this worker alone can change the file, as far as is known.
  var isOurs: Bool
  /// A `requeued:` line was added that the text does not have.
  var isRequeueNoted = false

  func rename(to path: Path) {
    lock.path = path
    writable?.path = path
  }
}

extension Claims {
  enum Locking {
    case locked(LockedJob)
    case refused(ClaimOutcome)
  }

  /// Opens and locks the file at `source`, and completes a move of it that was interrupted. The lock of a frozen worker
  /// does not count.
  ///
  /// One look at the file decides all of this, by one descriptor for reading, that keeps the lock: to close one for
  /// writing in `new/` is an event for a worker that watches, and it would look again without end.
  /// - Parameter knownDue: also a job whose next attempt is due by then, in seconds since the epoch.
  /// - Parameter isNamed: `source` is the claim's name already.
  func lock(
    _ job: JobName, _ source: Path, _ origin: Directory, now: Timestamp, knownDue: Int64, isNamed: Bool
  ) throws(SpoolError) -> Locking {
    var file: OwnedFile
    do throws(SpoolError) {
      file = try spool.system.open(spool.root, source, O_RDONLY | Spool.jobFlags)
    } catch  where error.errno == .noSuchFileOrDirectory {
      return .refused(.gone)
    }
    if origin == .cur, !isNamed, let end = try Leases(spool).endOfLease(source, file.status(), now: now) {
      // Not even tried: where other hosts do not see locks, that of the owner could be lost.
      return .refused(.leased(until: end))
    }
    let isDropped = origin.takesDrops
    let isFree = try file.lock()
    // Under the lock, so that no worker's lease is in the way of another one that opens the file for writing.
    let lease = isDropped && isFree ? file.askLease() : nil
    var status = try file.status()
    // By the claim's name it may be another file than the one that was examined, which somebody still writes.
    if isDropped, isFree ? lease == .refused && spool.kind.leases != .granted : !isNamed {
      return .refused(.unfinished(.inUse, until: status.endOfRest(at: now)))
    }
    if !isFree, origin != .cur || isNamed { return .refused(.unavailable) }
    guard status.isRegular else { return .refused(isNamed ? .unavailable : try rejectNoFile(source, origin)) }
    guard isFree || Leases(spool).isFrozen(source, status, now: now) else {
      return .refused(try lockedOutcome(source, status, now: now))
    }
    // Its owner has the same shared lock until it has replaced the file.
    if origin == .cur, !isNamed, file.heldLock == .shared, !spool.isWorkersOwn(status),
      let end = try Leases(spool).restOfLease(source, status, now: now)
    {
      return .refused(.leased(until: end))
    }
    // Another worker may have claimed and parked it since it was found.
    if status.modified > knownDue, try !isDue(job.fileName, modified: status.modified, in: origin, at: now.seconds) {
      return .refused(.notDue(status.modified))
    }
    // Each look at one of its names would list directories that are full of the others.
    if origin.takesNewJobs, !isNamed, status.links > 100, !spool.believesJournal(of: status), let name = source.name {
      let defect = Defect(line: nil, reason: "the file has \(status.links) names, and a job may have 100 at most")
      return .refused(try reject(name, from: origin, defect))
    }
    if status.links > 1 {
      guard try JobMoves(spool).completeInterruptedMove(job, origin, source, status, now: now) else {
        return .refused(.unavailable)
      }
      status = try file.status()
      if !isNamed, isDropped || origin == .partial, JobMoves(spool).isBeingDropped(status, at: now) {
        return .refused(isDropped ? .unfinished(.inUse, until: status.endOfRest(at: now)) : .unavailable)
      }
    }
    return .locked(
      LockedJob(
        job: job, lock: file.shared(), status: status, foundChanged: status.changed, origin: origin, source: source,
        isNamed: isNamed, formerOwner: isFree ? .ended : .mayWake, lease: lease,
        isOurs: isFree && spool.isWorkersOwn(status)))
  }

  /// Opens the locked file for writing, unless it is open so already or is not this worker's. If it may not be written
  /// to, or another program has a lease on it at this moment (EWOULDBLOCK), it is not this worker's: a copy takes its
  /// place.
  /// - Returns: false where the name leads to another file by now, the file's size has changed, it has got another name
  ///   (a move by link and unlink has begun), or another worker has locked it.
  func openForWriting(_ locked: inout LockedJob, at path: Path) throws(SpoolError) -> Bool {
    guard locked.isOurs, locked.writable == nil else { return true }
    var file: OwnedFile
    do throws(SpoolError) {
      file = try spool.system.open(spool.root, path, O_RDWR | Spool.jobFlags)
    } catch
      where [.permissionDenied, .notPermitted, .readOnlyFileSystem, .textFileBusy, .wouldBlock].contains(error.errno)
    {
      locked.isOurs = false
      return true
    }
    let status = try file.status()
    guard status.isSameFile(as: locked.status), status.size == locked.status.size, status.links <= locked.status.links
    else { return false }
    let needsLock = locked.lock.lock == .shared
    if needsLock {
      // NFS. Of several that share the lock, at least the last one that gives its part back gets it alone.
      try locked.lock.close()
      guard try file.lock() else { return false }
    }
    let writable = file.shared()
    locked.writable = writable
    if needsLock { locked.lock = writable }
    return true
  }

  func rejectNoFile(_ source: Path, _ origin: Directory) throws(SpoolError) -> ClaimOutcome {
    guard let name = source.name else { return .unavailable }
    return try reject(name, from: origin, Defect(line: nil, reason: "not a regular file: a job is a plain text file"))
  }

  private func lockedOutcome(_ claim: Path, _ status: FileStatus, now: Timestamp) throws(SpoolError) -> ClaimOutcome {
    guard let name = claim.name, let owner = ClaimName(name)?.owner, owner.text != spool.owner.text,
      let end = try Leases(spool).restOfSilence(name, status, now: now)
    else { return .unavailable }
    return .leased(until: end)
  }
}
