internal import Glibc
internal import Synchronization
internal import SystemPackage

/// How long a claim is its owner's without a heartbeat. All workers of a spool have to agree on it, so it is written
/// into the spool.
package struct Leases {
  let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  /// Seconds without a heartbeat after which another host's claim may be taken over.
  package var length: Int64 { spool.agreedLease.load(ordering: .relaxed) }

  /// Whether a lease has passed without a heartbeat.
  /// - Parameter beat: the last one, in seconds since the epoch.
  package func isOver(since beat: Int64, now: Timestamp) -> Bool { beat + length <= now.seconds && !areBeatsLate }

  /// Whether the clock was set, or the machine slept, so lately that who lives may have given no sign of life since.
  package var areBeatsLate: Bool { Host.current.milliseconds() - spool.clockMovedAt < heartbeatInterval }

  /// Milliseconds between two heartbeats of a claim.
  package var heartbeatInterval: Int64 { min(30_000, length * 500) }

  /// Whether it is time for a heartbeat: also at once when the last one seems older than it is.
  package func isBeatDue(since last: Int64, at now: Int64) -> Bool {
    now - last >= heartbeatInterval || last < spool.clockMovedAt
  }
}

/// What a worker may conclude from a lock, from a heartbeat, and from a process id.
extension Leases {
  /// Whether a lock that the worker `owner` let go of, and that this worker can take, proves that `owner` has ended, so
  /// that nobody has to wait for its lease.
  package func sharesLocks(with owner: WorkerName) -> Bool {
    guard owner.host == spool.owner.host else { return false }
    // A claim that was made through a mount of this directory, such as by bindfs, says so.
    if spool.kind.isLocal { return owner.seat?.isLocal ?? true }
    return owner.seat != nil && owner.seat == spool.owner.seat
  }

  /// When a claim's owner last gave a sign of life, in seconds since the epoch. Until a copy has taken the place of a
  /// file that is not the workers' own, the rename counts that claimed it.
  package func beat(of claim: FileStatus) -> Int64 { spool.isWorkersOwn(claim) ? claim.modified : claim.changed }

  /// Until when a claim is without doubt another worker's, whose locks prove nothing here: its last heartbeat and the
  /// lease say so. Where times say nothing, this look counts as the first of those that tell whether it is frozen.
  /// - Parameter status: the claim's.
  /// - Returns: in seconds since the epoch; nil if only the attempt to take it over can tell.
  package func endOfLease(of claim: FileName, _ status: FileStatus, now: Timestamp) -> Int64? {
    guard let owner = ClaimName(claim)?.owner, !sharesLocks(with: owner),
      let end = endOfLease(since: beat(of: status), now: now)
    else { return nil }
    if spool.kind.timesAreOfHosts { _ = silence(of: claim, status) }
    return end
  }

  /// Whether the worker `owner` may be alive. This looks at its heartbeat (the file's time, renewed every 30 s), and at
  /// the process if it would be seen from here. It does not ask for the lock.
  /// - Parameter beat: in seconds since the epoch.
  package func isAlive(_ owner: WorkerName, beat: Int64, now: Timestamp) -> Bool {
    guard !isOver(since: beat, now: now) else { return false }
    guard let process = owner.process, sharesProcesses(with: owner) else { return true }
    // EPERM: the process exists and belongs to another user (kill(2)).
    return kill(process, 0) == 0 || errno == EPERM
  }

  /// Whether the worker `owner` would be found by its process id if it lived.
  func sharesProcesses(with owner: WorkerName) -> Bool {
    if let seat = owner.seat { return seat == spool.owner.seat }
    return spool.kind.isLocal && owner.host == spool.owner.host
  }

  /// Until when a claim is another worker's without doubt.
  /// - Returns: in seconds since the epoch; nil if it may be taken over once its lock is free.
  func endOfLease(_ claim: Path, _ status: FileStatus, now: Timestamp) throws(SpoolError) -> Int64? {
    // Where both workers have the same locks, the lock decides. flock(2) alone proves nothing across hosts: on some
    // file systems it succeeds for everyone.
    if claim.name.flatMap({ ClaimName($0)?.owner }).map(sharesLocks) == true { return nil }
    return try restOfLease(claim, status, now: now)
  }

  /// - Returns: nil if the lease has ended.
  func restOfLease(_ claim: Path, _ status: FileStatus, now: Timestamp) throws(SpoolError) -> Int64? {
    let beat = beat(of: status)
    if isOver(since: beat, now: now) { return nil }
    if let end = endOfLease(since: beat, now: now) { return end }
    // The lease begins now: a heartbeat from the future, by a clock that was wrong, proves no life until then, and a
    // living owner renews it.
    try orNil(spool.touch(spool.system.open(spool.root, claim, O_RDONLY | Spool.jobFlags)), where: \.isGone)
    return now.seconds + length
  }

  /// - Parameter beat: the last heartbeat, in seconds since the epoch.
  /// - Returns: nil if the lease has ended, or if the heartbeat is from the future and proves nothing.
  func endOfLease(since beat: Int64, now: Timestamp) -> Int64? {
    isOver(since: beat, now: now) || beat > now.seconds + length ? nil : beat + length
  }

  /// Whether the owner of a locked claim has given no sign of life for a lease. This worker itself may have been busy
  /// for as long.
  func isFrozen(_ claim: Path, _ status: FileStatus, now: Timestamp) -> Bool {
    guard let name = claim.name, let owner = ClaimName(name)?.owner, owner.text != spool.owner.text else {
      return false
    }
    return spool.kind.timesAreOfHosts ? silence(of: name, status) >= length : isOver(since: beat(of: status), now: now)
  }

  /// Until when the owner of a claim that it has locked is not taken for frozen.
  /// - Returns: in seconds since the epoch; nil if it may be.
  func restOfSilence(_ claim: FileName, _ status: FileStatus, now: Timestamp) throws(SpoolError) -> Int64? {
    guard spool.kind.timesAreOfHosts else { return try restOfLease(Path(.cur, claim), status, now: now) }
    let silence = silence(of: claim, status)
    return silence >= length ? nil : now.seconds + length - silence
  }

  /// Seconds since this worker first saw the claim as it is, without the machine's sleep.
  func silence(of claim: FileName, _ status: FileStatus) -> Int64 {
    spool.sights.withLock { $0.silence(of: claim, status.stamp, at: Host.current.awakeMilliseconds() / 1000) }
  }

  /// Whether the owner of a claim has given no sign of life for a lease and still has its lock, so it was stopped and
  /// has not died. Where locks are not seen by other hosts, this is not known of their workers.
  package func isOwnerFrozen(of claim: FileName) throws(SpoolError) -> Bool {
    let path = Path(.cur, claim)
    do throws(SpoolError) {
      guard let status = try spool.status(.cur, claim), status.isRegular, isFrozen(path, status, now: spool.now())
      else { return false }
      var file = try spool.system.open(spool.root, path, O_RDONLY | Spool.jobFlags)
      return try !file.lock()
    } catch  where error.isGone || error.isUnreadable {
      return false
    }
  }
}

/// Shows other processes of this host that a worker watches the spool, until it is let go: a shared lock on the
/// directory `new` (flock(2)). It is a hint, because no lock need be seen by another host, or exist at all: then a
/// command that could leave a job to that worker runs one of its own beside it.
package struct WatchSign: Sendable {
  private let file: SharedFile

  /// - Returns: nil if somebody asks at this moment; try again later.
  /// - Throws: ``SpoolError``, also where the file system has no such locks.
  package init?(for spool: Spool) throws(SpoolError) {
    var file = try spool.system.open(spool.root, Path(.new), O_RDONLY | O_DIRECTORY)
    guard try file.lockShared() else { return nil }
    self.file = file.shared()
  }

  /// Whether a worker of this host watches the spool and will see what is dropped.
  package static func isGiven(for spool: Spool) -> Bool {
    do throws(SpoolError) {
      var file = try spool.system.open(spool.root, Path(.new), O_RDONLY | O_DIRECTORY)
      return try !file.lock()
    } catch {
      // Nobody can have given a sign here.
      return false
    }
  }
}
