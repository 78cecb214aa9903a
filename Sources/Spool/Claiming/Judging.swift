internal import Glibc
internal import Synchronization
internal import SystemPackage

/// A job's text, and what is wrong with it.
struct Judgement {
  let bytes: [UInt8]
  /// nil while the file lacks its last newline and is young.
  let text: JobText?
  var defect: Defect?
}

/// Who has a job, and whether it is valid.
extension Spool {
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
    if isLeaseOver(since: status.modified, now: now) { return nil }
    if let end = endOfLease(since: status.modified, now: now) { return end }
    try beginLease(claim)
    return now.seconds + lease
  }

  /// - Parameter beat: the last heartbeat, in seconds since the epoch.
  /// - Returns: nil if the lease has ended, or if the heartbeat is from the future and proves nothing.
  func endOfLease(since beat: Int64, now: Timestamp) -> Int64? {
    isLeaseOver(since: beat, now: now) || beat > now.seconds + lease ? nil : beat + lease
  }

  /// Whether the owner of a locked claim has given no sign of life for a lease. This worker itself may have been busy
  /// for as long.
  func isFrozen(_ claim: Path, _ status: FileStatus, now: Timestamp) -> Bool {
    guard let name = claim.name, let owner = ClaimName(name)?.owner, owner.text != self.owner.text else { return false }
    return kind.timesAreOfHosts
      ? silence(of: name, status) >= lease : isLeaseOver(since: status.modified, now: now)
  }

  /// Until when the owner of a claim that it has locked is not taken for frozen.
  /// - Returns: in seconds since the epoch; nil if it may be.
  func restOfSilence(_ claim: FileName, _ status: FileStatus, now: Timestamp) throws(SpoolError) -> Int64? {
    guard kind.timesAreOfHosts else { return try restOfLease(Path(.cur, claim), status, now: now) }
    let silence = silence(of: claim, status)
    return silence >= lease ? nil : now.seconds + lease - silence
  }

  /// Seconds since this worker first saw the claim as it is.
  func silence(of claim: FileName, _ status: FileStatus) -> Int64 {
    sights.withLock { $0.silence(of: claim, status.stamp, at: secondsSinceBoot()) }
  }

  /// Begins the lease now: a heartbeat from the future, by a clock that was wrong, proves no life until then, and a
  /// living owner renews it.
  private func beginLease(_ claim: Path) throws(SpoolError) {
    do throws(SpoolError) {
      try touch(system.open(root, claim, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY))
    } catch  where error.isGone {
    }
  }

  /// The name of a job that was dropped. If it was moved there from `cur/` with the owner's suffix left on, as its
  /// journal shows, that suffix is no part of it.
  static func withoutOwner(_ job: JobName, _ text: @autoclosure () -> JobText?) -> JobName {
    guard let claim = ClaimName(job.fileName), let owner = claim.owner,
      text()?.journal.attempts.lastStart?.worker == owner.text
    else { return job }
    return claim.job
  }

  /// Reads the job. Its text is judged as it was read once, and is never read again from a file that another user can
  /// write to.
  func judge(_ file: SharedFile, _ status: FileStatus, _ origin: Directory, now: Timestamp)
    throws(SpoolError) -> Judgement
  {
    let isHuge = status.size > Self.maximumJobFile
    let bytes = believed(try file.read(first: isHuge ? JobText.maximumRequest : Int(status.size)), of: status)
    let text = bytes.withUnsafeBytes { JobText($0) }
    func invalid(_ reason: String) -> Judgement {
      Judgement(bytes: bytes, text: text, defect: Defect(line: nil, reason: reason))
    }
    if isHuge || text.isTooLong { return invalid("\(status.size) bytes: a job has at most 64 KiB") }
    if text.hasTornTail && !text.isTornByWorker(in: origin) || status.size == 0 {
      // A cut line may look like a defect, so the missing newline alone counts, whatever else is wrong.
      if origin.isDroppedInto, Self.isYoung(status, at: now) { return Judgement(bytes: bytes, text: nil) }
      if status.size == 0 { return invalid("empty: a job is at least one line with a URL") }
      return invalid("the last line has no newline: the file may be incomplete")
    }
    return Judgement(bytes: bytes, text: text, defect: text.defect ?? text.request.misplacement(in: origin))
  }
}
