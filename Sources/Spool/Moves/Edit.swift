internal import Glibc
internal import SystemPackage

/// Changing the text of a job that others may move at the same time.
///
/// The new text is first a complete, durable file in `tmp/`. One exchange of names then gives it the job's name. The
/// job keeps its place: after any failure or crash it has the old text or the new one.
extension Spool {
  /// Seconds until a job that was taken from its worker is due, should the command that took it die.
  private static let stopTime: Int64 = 60

  /// Gives a job another text. A worker that runs it stops.
  /// - Parameters:
  ///   - home: the directory that it is in then; nil for where it is.
  ///   - modified: the time of modification that it gets, in seconds since the epoch; nil for now.
  ///   - change: gets the text as its worker left it. What it throws leaves the job as it was.
  /// - Throws: ``SpoolError``: ENOENT if it has moved since it was seen, EEXIST if another job has its name in `home`.
  ///   Nothing is changed then.
  func edit(
    _ place: JobPlace, to home: Directory? = nil, modified: Int64? = nil,
    _ change: ([UInt8]) throws(SpoolError) -> [UInt8]
  ) throws(SpoolError) -> JobPlace {
    if try completeInterruptedMove(at: place) { throw Self.hasMoved(place) }
    let idle = try stop(place)
    do throws(SpoolError) {
      // The worker that ran it may still write its last line. What a dropper still writes would go to the old file.
      if try !waitUntilUnlocked(idle), idle.directory.isDroppedInto {
        throw SpoolError(
          call: .open, path: idle.display, errno: .textFileBusy, reason: "a process still writes it, or has locked it")
      }
      return try replaceText(of: idle, to: home, modified: modified) { (old) throws(SpoolError) in
        finished(try change(old))
      }
    } catch {
      if idle != place, error.errno != .noSuchFileOrDirectory { try? touch(idle) }
      throw error.ofSpace(for: idle.display)
    }
  }

  /// Takes a running job from its worker, to the directory in which it waits. It is due only after ``stopTime``, so
  /// that no worker takes it before it is changed.
  private func stop(_ place: JobPlace) throws(SpoolError) -> JobPlace {
    guard place.directory == .cur else { return place }
    let directory: Directory = try isStandingOrder(.cur, place.name) ? .standing : .partial
    let idle = JobPlace(directory: directory, name: place.job, inode: place.inode)
    // Before the rename: a job that is due is taken at once.
    try system.open(root, place.path, Self.jobFlags).setTimes(to: now().seconds + Self.stopTime)
    try moveNoReplace(place.path, idle.path)
    return idle
  }

  /// Replaces a job's file by one with another text, durably.
  /// - Returns: where the job is, unless somebody has moved it on.
  /// - Throws: ``SpoolError``, as ``edit(_:to:modified:_:)``.
  @discardableResult
  func replaceText(
    of place: JobPlace, to home: Directory? = nil, modified: Int64? = nil,
    by text: ([UInt8]) throws(SpoolError) -> [UInt8]
  ) throws(SpoolError) -> JobPlace {
    let found = try system.status(root, place.path)
    // A second name in the spool is a move that is not over.
    if found.links > 1, try places(of: place.name).contains(where: { $0.inode == found.inode && $0.path != place.path })
    {
      throw Self.hasMoved(place)
    }
    guard found.inode == place.inode, let old = try contents(place.path, limit: Self.maximumJobFile),
      old.count == found.size
    else { throw Self.hasMoved(place) }
    var fresh = try system.create(root, temporary(place.name), O_WRONLY | O_EXCL | O_NOFOLLOW)
    let (draft, own) = (fresh.path, try fresh.status())
    // By its inode: the name may lead to another job's file that could not be put back.
    defer { for file in [own, found] { try? removeDouble(draft, of: file) } }
    try fresh.write(try text(believed(old, of: found)), at: 0)
    if let modified { try fresh.setTimes(to: modified) }
    try fresh.fsync()
    // No worker takes either file until this is over. Where it sees no lock, the exchange shows that it was faster.
    _ = try fresh.lock()
    var lock = try system.open(root, place.path, Self.jobFlags)
    // Another edit lasts for milliseconds; a worker that is stopped may keep its lock.
    _ = try waited { () throws(SpoolError) in try lock.lock() }
    let now = try lock.status()
    guard now.isSameFile(as: found), now.size == found.size else { throw Self.hasMoved(place) }
    let target = JobPlace(directory: home ?? place.directory, name: place.name, inode: own.inode)
    do throws(SpoolError) {
      try exchange(draft, own, place, expecting: found)
    } catch  where error.isUnknownRename {
      try touch(lock)
      try replaceAsOwner(place, found, by: draft, target)
      return target
    }
    if target.path != place.path { try bring(place, to: target, or: draft, found, instead: own) }
    return target
  }

  private static func hasMoved(_ place: JobPlace) -> SpoolError {
    SpoolError(call: .rename, path: place.display, errno: .noSuchFileOrDirectory)
  }

  /// Exchanges the names of the file `draft`, which is `own`, and of the job, or leaves both as they are.
  private func exchange(_ draft: Path, _ own: FileStatus, _ place: JobPlace, expecting file: FileStatus)
    throws(SpoolError)
  {
    try system.exchange(root, draft, place.path)
    if isMovedByNobody(try system.status(root, draft), file) { return }
    // The job had just moved, and another file has its name.
    do throws(SpoolError) {
      try system.exchange(root, draft, place.path)
      if try !system.status(root, draft).isSameFile(as: own) {
        // Ours has been moved on meanwhile, and a third file has come.
        try system.exchange(root, draft, place.path)
        try putBack(draft, at: place)
      }
      // The first exchange may be durable by now.
      try flush(place.directory).run()
    } catch  where error.errno == .noSuchFileOrDirectory {
      try putBack(draft, at: place)
    }
    throw Self.hasMoved(place)
  }

  /// Whether the file that has just lost its name is the one that was seen before, and no move by link and unlink has
  /// begun: that would go on with the old text.
  private func isMovedByNobody(_ now: FileStatus, _ before: FileStatus) -> Bool {
    now.isSameFile(as: before) && now.links <= before.links
  }

  /// Gives a job's file its name again, or one with a number.
  private func putBack(_ file: Path, at place: JobPlace) throws(SpoolError) {
    guard let job = JobName(place.name) else { return try moveNoReplace(file, place.path) }
    _ = try moveNumbered(file, job, to: place.directory, hasData: false)
  }

  /// Moves a job that has its new text on, or gives it the old one again.
  private func bring(
    _ place: JobPlace, to target: JobPlace, or old: Path, _ found: FileStatus, instead file: FileStatus
  ) throws(SpoolError) {
    do throws(SpoolError) {
      try moveNoReplace(place.path, target.path)
    } catch  where error.errno == .noSuchFileOrDirectory {
      // Somebody has moved it on, with its new text.
    } catch {
      try exchange(old, found, place, expecting: file)
      throw error
    }
  }

  /// The same where names cannot be exchanged, as on some network file systems: this process takes the job as a worker
  /// does, by a name that only it has. If it dies, a worker takes the claim over.
  private func replaceAsOwner(_ place: JobPlace, _ file: FileStatus, by draft: Path, _ target: JobPlace)
    throws(SpoolError)
  {
    guard let job = JobName(place.name) else {
      throw SpoolError(call: .rename, path: place.display, errno: .invalidArgument)
    }
    let claim = Path(.cur, ClaimName.fileName(job, owner))
    try system.rename(root, place.path, claim)
    do throws(SpoolError) {
      guard isMovedByNobody(try system.status(root, claim), file) else { throw Self.hasMoved(place) }
      if target.path != place.path, try exists(target.path) {
        throw SpoolError(call: .rename, path: target.display, errno: .fileExists)
      }
      try system.rename(root, draft, claim)
    } catch {
      try? moveNoReplace(claim, place.path)
      throw error
    }
    try moveNoReplace(claim, target.path)
  }
}
