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

/// What the times of files mean. The clock that set them may be wrong: a dropper's, another host's, or this host's
/// earlier.
extension Spool {
  /// Seconds for which a file must not have changed where leases cannot show writers. A file without its last newline
  /// is left alone as long.
  package static let settlingTime: Int64 = 10
  /// The longest wait for an attempt, in seconds: the longest Retry-After that is obeyed, and an hour for clocks that
  /// differ.
  static let longestWait: Int64 = 86_400 + 3600

  /// Whether a job in `partial/` with this time of modification may be tried. A time further ahead than any wait was
  /// set by a clock that was wrong.
  package static func isDue(_ modified: Int64, at now: Int64) -> Bool {
    modified <= now || modified > now + longestWait
  }

  /// Whether a file in `directory` with this time of modification may be claimed: only jobs in `partial` and orders in
  /// `standing` wait for a time.
  package func isDue(_ name: FileName, modified: Int64, in directory: Directory, at now: Int64) throws(SpoolError)
    -> Bool
  {
    switch directory {
    case .partial: return Self.isDue(modified, at: now)
    case .standing:
      if modified <= now + Self.longestWait { return modified <= now }
      // Only one that is checked rarely waits for so long.
      let text = try contents(Path(.standing, name), limit: JobText.maximumRequest) ?? []
      let every = text.withUnsafeBytes { JobText($0) }.request.standing.every ?? 0
      return modified > now + Int64(every) + Self.longestWait
    case .new, .urgent, .cur, .hold, .done, .failed, .tmp, .workers, .files: return true
    }
  }

  /// Whether a file with several names may have got or lost one just now (link(2) sets the time of the last change).
  /// Then whoever moves it is about to remove its former name, so nobody else may remove the other one.
  static func mayBeMoving(_ status: FileStatus, at now: Timestamp) -> Bool {
    status.changed > now.seconds - settlingTime && status.changed <= now.seconds + settlingTime
  }

  /// Whether a file was changed just now: its times are at most ``settlingTime`` ago or ahead. A time further ahead was
  /// copied (`cp -p`), or set by a clock that is wrong.
  static func isYoung(_ status: FileStatus, at now: Timestamp) -> Bool { youth(of: status, at: now) != nil }

  /// When a file that was changed just now was changed last, in seconds since the epoch; nil if it is not young.
  private static func youth(of status: FileStatus, at now: Timestamp) -> Int64? {
    [status.modified, status.changed].filter {
      $0 > now.seconds - settlingTime && $0 <= now.seconds + settlingTime
    }.max()
  }

  /// When a file that may still be written has not changed for ``settlingTime``, in seconds since the epoch. One that
  /// is old already, and in use, is looked at again after as long.
  static func endOfRest(of status: FileStatus, at now: Timestamp) -> Int64 {
    (youth(of: status, at: now) ?? now.seconds) + settlingTime
  }

  /// When a file was last changed, in seconds since the epoch. A time more than a day ahead cannot be true and does not
  /// count; now where none is left.
  /// - Parameter countsRenames: whether the time of the last change of its name or mode counts as well as that of its
  ///   content.
  static func lastChange(_ status: FileStatus, countsRenames: Bool, at now: Timestamp) -> Int64 {
    let latest = now.seconds + 86_400
    if status.modified > latest { return status.changed > latest ? now.seconds : status.changed }
    return countsRenames && status.changed <= latest ? max(status.modified, status.changed) : status.modified
  }
}

/// Why a file in `new/` counts as still being written.
package enum Unfinished: Sendable {
  /// A process has it open for writing, or another worker looks at it.
  case inUse
  /// It has changed a moment ago, and the kernel does not say who has it open.
  case young
  /// It has changed a moment ago, and on this file system nobody can see who has it open: see
  /// ``FileSystemKind/leaseShowsAllWriters``.
  case unsettled
  /// It has changed a moment ago, and is empty.
  case empty
  /// It has changed a moment ago, and its last line has no newline. Nobody has it open for writing, as far as the
  /// kernel says.
  case lacksNewline

  /// For a person.
  package var reason: String {
    switch self {
    case .inUse: "a process has it open for writing"
    case .unsettled:
      "it changed less than \(Spool.settlingTime) s ago, and this file system does not show who still writes it"
    case .young: "it changed less than \(Spool.settlingTime) s ago"
    case .empty: "it is empty"
    case .lacksNewline:
      "its last line has no newline: add one, or it goes to failed \(Spool.settlingTime) s after its last change"
    }
  }
}
