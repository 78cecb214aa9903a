internal import SystemPackage

/// Moves of a job's file: to a name that is free, together with its data; and the second half of a move that a crash
/// cut.
struct JobMoves {
  let spool: Spool

  init(_ spool: Spool) { self.spool = spool }

  /// Renames the job file at `path` into `directory`, numbered where its name is taken: nothing there is ever replaced.
  /// The job's data goes along.
  /// - Parameter data: the inode of its data; nil if it has none. Other data of its name is another job's.
  /// - Returns: the name that the job got.
  func moveNumbered(_ path: Path, _ job: JobName, to directory: Directory, data: UInt64?) throws(SpoolError) -> JobName
  {
    var (target, owner) = (job, job)
    while true {
      // A job that is done has no data, and data of its name may be another worker's.
      if target != owner, directory != .done, let data { try moveData(data, of: owner, to: target) }
      owner = target
      do throws(SpoolError) {
        try spool.moveNoReplace(path, Path(directory, target.fileName))
        return target
      } catch  where error.errno == .fileExists {
        if try !removeTouched(Path(directory, target.fileName), in: directory) {
          target = try JobSearch(spool).freeName(like: job)
        }
      }
    }
  }

  /// Removes the empty file that touch(1) makes where a job waits for its next attempt while that attempt runs.
  /// - Returns: whether that is what was there, and nobody writes to it.
  func removeTouched(_ path: Path, in directory: Directory) throws(SpoolError) -> Bool {
    guard directory.isScheduled else { return false }
    do throws(SpoolError) {
      let file = try spool.openText(path)
      let status = try file.status()
      guard status.isRegular, status.size == 0, status.links == 1, file.askLease() != .refused else { return false }
      // A job may get the name at this moment.
      return try spool.remove(path, of: status)
    } catch  where error.isGone || error.isUnreadable {
      return false
    }
  }

  private func moveData(_ data: UInt64, of job: JobName, to target: JobName) throws(SpoolError) {
    let path = Path(.partial, job.part)
    _ = try JobData(spool).withIdleData(path) { (status) throws(SpoolError) in
      if status.inode == data { try spool.moveNoReplace(path, Path(.partial, target.part)) }
    }
  }
}

extension JobMoves {
  /// Replaces the file of this process's claim where names cannot be exchanged.
  /// - Parameter old: the file that the claim's name leads to.
  /// - Parameter draft: the name of the other file, which is `own`.
  /// - Throws: ``SpoolError``, ENOENT where somebody has moved the job: it is as it was.
  func replaceClaim(_ claim: Path, _ job: JobName, _ old: FileStatus, by draft: Path, _ own: FileStatus)
    throws(SpoolError)
  {
    let now = try spool.system.status(spool.root, claim)
    if now.isSameFile(as: old), now.links <= old.links {
      try spool.system.rename(spool.root, draft, claim)
      for _ in 0..<Self.mostLooks {
        guard try isTaken(old) else { break }
        Host.current.wait(milliseconds: 20)
      }
      // A person may have moved it since. Of the names, not of links: NFS keeps a name of a file that is open.
      if try JobSearch(spool).place(of: job.fileName, old) == nil, try names(of: old, job, in: [.hold, .cur]).isEmpty {
        return
      }
      if try !withdraw(claim, job, own) { for name in try names(of: old, job) { try spool.remove(name, of: old) } }
    }
    throw SpoolError(call: .rename, path: claim.display, errno: .noSuchFileOrDirectory)
  }

  /// Removes a claim's file, also where somebody has just moved it on, or has taken it to `tmp/` by mistake and gives
  /// it its name again.
  /// - Returns: false if it has had no name: somebody has moved it on and changed it, so the job goes on without `old`.
  private func withdraw(_ claim: Path, _ job: JobName, _ own: FileStatus) throws(SpoolError) -> Bool {
    var (isGone, looks) = (false, 0)
    // It may get a name while the others are looked for, so one look in vain is not enough.
    for _ in 0..<Self.mostLooks where looks < 2 {
      let names = try self.names(of: own, job)
      for name in names where try spool.remove(name, of: own) { isGone = true }
      let isThere = try isTaken(own) || !names.isEmpty
      looks = isThere ? 0 : looks + 1
      if looks < 2 { Host.current.wait(milliseconds: 20) }
    }
    return try spool.remove(claim, of: own) || isGone
  }

  /// How often, every 20 ms, to look for a file that others move or take.
  private static let mostLooks = 50

  /// Whether somebody has taken a file to `tmp/` by mistake, and gives it its name again.
  private func isTaken(_ file: FileStatus) throws(SpoolError) -> Bool {
    for name in try spool.list(.tmp) where name.bytes.starts(with: Spool.takenName.bytes) {
      if try spool.status(.tmp, name)?.isSameFile(as: file) ?? false { return true }
    }
    return false
  }

  private func names(
    of status: FileStatus, _ job: JobName, in directories: [Directory] = Directory.ofJobs
  ) throws(SpoolError) -> [Path] {
    var names: [Path] = []
    for directory in directories {
      names += try spool.names(of: status, like: job, in: directory).map { Path(directory, $0) }
    }
    return names
  }
}

/// Moves that a crash cut between their two steps: the file has two names, and the older one goes.
extension JobMoves {
  /// Completes the move of a claimed, locked file that has several names.
  /// - Parameter source: where it was found, in `origin`.
  /// - Parameter status: of the file.
  /// - Returns: false where it was `source` that had to go, or may have to: the job has moved on, or is moving.
  func completeInterruptedMove(
    _ job: JobName, _ origin: Directory, _ source: Path, _ status: FileStatus, now: Timestamp
  ) throws(SpoolError) -> Bool {
    guard try complete(job, origin, source, status, now) else { return false }
    // A person may have moved the other name on while it was looked for.
    let directories = Directory.ofJobs.filter { $0 != .done && $0 != .failed }
    return try names(of: status, job, in: directories).allSatisfy { $0 == source }
  }

  private func complete(
    _ job: JobName, _ origin: Directory, _ source: Path, _ status: FileStatus, _ now: Timestamp
  ) throws(SpoolError) -> Bool {
    switch origin {
    case .cur:
      if try completeMove(job, source, status) { return false }
      // The rename from `new/` or `urgent/`, cut by a power failure: btrfs can have made the second name durable and
      // kept the first, which goes. The claim may have got a number.
      try removeFormer(of: job, status, in: Directory.allCases.filter(\.takesNewJobs))
      // A worker gave the claim back, and a crash cut that: the former claim's name goes.
      if try spool.names(of: status, like: job, in: .cur).count > 1 {
        if status.mayBeMoving(at: now) { return false }
        try removeClaims(source, status)
      }
      return true
    case .new:
      if try isAlso(in: [.hold, .urgent, .standing], job, source, status, now) { return false }
      if try isAtEnd(job, source, status, now, [.done]) { return false }
      try removeFormer(of: job, status, in: [.new, .failed, .partial], besides: source)
      return try !completeClaim(source, status, now)
    case .urgent:
      if try isAlso(in: [.hold, .standing], job, source, status, now) { return false }
      if try isAtEnd(job, source, status, now, [.done]) { return false }
      try removeFormer(of: job, status, in: [.urgent, .new, .failed, .partial], besides: source)
      return try !completeClaim(source, status, now)
    case .partial:
      if try isAlso(in: [.hold, .urgent, .new, .standing], job, source, status, now) { return false }
      if try isAtEnd(job, source, status, now, [.done, .failed]) { return false }
      try removeFormer(of: job, status, in: [.partial], besides: source)
      try removeClaims(source, status)
      return true
    case .standing:
      if try isAlso(in: [.hold], job, source, status, now) { return false }
      try removeFormer(of: job, status, in: [.standing], besides: source)
      try removeClaims(source, status)
      return true
    case .hold, .done, .failed, .tmp, .workers, .files: return true
    }
  }

  /// The same for a gesture, which has no claim.
  /// - Returns: whether it was `place` that had to go: the job has moved on, and must not be moved back.
  func completeInterruptedMove(at place: JobPlace) throws(SpoolError) -> Bool {
    guard let job = JobName(place.job), let status = try spool.status(place.directory, place.name),
      status.inode == place.inode, status.isRegular, status.links > 1
    else { return false }
    switch place.directory {
    case .cur: return try completeMove(job, place.path, status)
    case .new, .urgent: return try isAtEnd(job, place.path, status, spool.now(), [.done])
    case .partial, .hold, .standing: return try isAtEnd(job, place.path, status, spool.now(), [.done, .failed])
    case .done, .failed, .tmp, .workers, .files: return false
    }
  }

  /// A move from `cur/` by link and unlink: the file has its new name already, so the claim goes.
  /// - Returns: whether it was so.
  private func completeMove(_ job: JobName, _ claim: Path, _ status: FileStatus) throws(SpoolError) -> Bool {
    for directory in [Directory.done, .failed, .partial, .standing, .hold]
    where try !spool.names(of: status, like: job, in: directory).isEmpty {
      try spool.remove(claim, of: status, isDouble: true)
      return true
    }
    return false
  }

  /// The same after a person has moved the claim's name away. Where names are renamed without replacing, there is no
  /// such moment, and a file with several names was dropped by ln(1).
  ///
  /// Somebody may also be moving it out of there: `verify --refetch` does.
  private func isAtEnd(
    _ job: JobName, _ source: Path, _ status: FileStatus, _ now: Timestamp, _ ends: [Directory]
  ) throws(SpoolError) -> Bool {
    if !spool.kind.hasHalfMoves { return false }
    return try isAlso(in: ends, job, source, status, now)
  }

  /// Whether a file that no other name in the spool leads to may be on its way out of `tmp/`, by link and unlink. Its
  /// number of links is about to change, and says nothing of other moves.
  func isBeingDropped(_ status: FileStatus, at now: Timestamp) -> Bool {
    spool.kind.hasHalfMoves && status.links > 1 && status.mayBeMoving(at: now)
  }

  /// A person's move into one of these directories, seen from the other name, which goes. If it was a move out of
  /// `hold/`, the job stays paused.
  /// - Returns: whether it was so, or somebody is about to make such a move.
  private func isAlso(
    in directories: [Directory], _ job: JobName, _ source: Path, _ status: FileStatus, _ now: Timestamp
  ) throws(SpoolError) -> Bool {
    for directory in directories where try !spool.names(of: status, like: job, in: directory).isEmpty {
      if !status.mayBeMoving(at: now) { try spool.remove(source, of: status, isDouble: true) }
      return true
    }
    return false
  }

  /// A person's move, seen from the new name, `source`.
  private func removeFormer(
    of job: JobName, _ status: FileStatus, in directories: [Directory], besides source: Path? = nil
  ) throws(SpoolError) {
    for directory in directories {
      for name in try spool.names(of: status, like: job, in: directory) where Path(directory, name) != source {
        try spool.remove(Path(directory, name), of: status, isDouble: true, kept: source)
      }
    }
  }

  /// A claim, seen from the name that the job was dropped by, or that its owner is about to give it back by.
  /// - Returns: whether it was so; then `source` is gone, unless the owner may be about to remove the claim.
  private func completeClaim(_ source: Path, _ status: FileStatus, _ now: Timestamp) throws(SpoolError) -> Bool {
    // A claim may have got a number. A file that was renamed to the claim's name already is not its own double.
    for name in try spool.list(.cur) where Path(.cur, name) != source {
      guard let other = try spool.status(.cur, name), other.isSameFile(as: status) else { continue }
      if !spool.kind.hasHalfMoves || !status.mayBeMoving(at: now) {
        try spool.remove(source, of: status, isDouble: true)
      }
      return true
    }
    return false
  }

  /// A move from `cur/` to `partial/`, seen from the new name, which may have a number: the claim goes.
  private func removeClaims(_ source: Path, _ status: FileStatus) throws(SpoolError) {
    for name in try spool.list(.cur) where Path(.cur, name) != source {
      try spool.remove(Path(.cur, name), of: status, isDouble: true)
    }
  }
}
