internal import Glibc
internal import SystemPackage

/// Changing the text of a job that others may move at the same time.
///
/// The new text is first a complete, durable file in `tmp/`. One exchange of names then gives it the job's name. The
/// job keeps its place: after any failure or crash it has the old text or the new one.
struct JobEditor {
  let spool: Spool

  init(_ spool: Spool) { self.spool = spool }

  /// Seconds until a job that was taken from its worker is due, should the command that took it die.
  private static let stopTime: Int64 = 60
  /// How often to look for a file that others move meanwhile.
  private static let mostLooks = 5

  /// Gives a job another text. A worker that runs it stops.
  /// - Parameter home: the directory that it is in then; nil for where it is.
  /// - Parameter modified: the time of modification that it gets, in seconds since the epoch; nil for now.
  /// - Parameter change: gets the text as its worker left it. What it throws leaves the job as it was.
  /// - Throws: ``SpoolError``: ENOENT if it has moved since it was seen, EEXIST if another job has its name in `home`.
  ///   Nothing is changed then.
  func edit(
    _ place: JobPlace, to home: Directory? = nil, modified: Int64? = nil,
    _ change: ([UInt8]) throws(SpoolError) -> [UInt8]
  ) throws(SpoolError) -> JobPlace {
    if try JobMoves(spool).completeInterruptedMove(at: place) { throw Self.hasMoved(place) }
    let idle = try stop(place)
    do throws(SpoolError) {
      // The worker that ran it may still write its last line. If it is stopped, it may keep its lock for ever.
      let isStopped = idle != place
      if try !waitUntilUnlocked(idle), !isStopped { throw Self.isBusy(place) }
      return try replaceText(of: idle, to: home, modified: modified, locked: isStopped) { (old) throws(SpoolError) in
        JobText.finished(try change(old), on: spool.kind)
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
    let directory: Directory = try JobSearch(spool).isStandingOrder(.cur, place.name) ? .standing : .partial
    let idle = JobPlace(directory: directory, name: place.job, inode: place.inode)
    // Before the rename: a job that is due is taken at once.
    try spool.system.open(spool.root, place.path, Spool.jobFlags).setTimes(to: spool.now().seconds + Self.stopTime)
    try spool.moveNoReplace(place.path, idle.path)
    return idle
  }

  /// Replaces a job's file by one with another text, durably.
  /// - Parameter isLocked: whether the worker that ran it may have it locked.
  /// - Returns: where the job is, unless somebody has moved it on.
  /// - Throws: ``SpoolError``, as ``edit(_:to:modified:_:)``.
  @discardableResult func replaceText(
    of place: JobPlace, to home: Directory? = nil, modified: Int64? = nil, locked isLocked: Bool = false,
    by text: ([UInt8]) throws(SpoolError) -> [UInt8]
  ) throws(SpoolError) -> JobPlace {
    let found = try spool.system.status(spool.root, place.path)
    // A second name in the spool is a move that is not over.
    if found.links > 1, try spool.hasOtherName(found, than: place.path) { throw Self.hasMoved(place) }
    if JobMoves(spool).isBeingDropped(found, at: spool.now()) { throw Self.hasMoved(place) }
    // The name may lead to another job for a moment.
    guard found.inode == place.inode, let old = try spool.read(place.path, limit: Spool.maximumJobFile),
      old.status.isSameFile(as: found), old.bytes.count == found.size
    else { throw Self.hasMoved(place) }
    var fresh = try spool.system.createNew(spool.root, spool.temporary(place.name))
    let (draft, own) = (fresh.path, try fresh.status())
    // By its inode: the name may lead to another job's file that could not be put back.
    defer { for file in [own, found] { try? spool.system.unlink(spool.root, draft, of: file) } }
    try fresh.write(try text(spool.believed(old.bytes, of: found)), at: 0)
    if let modified { try fresh.setTimes(to: modified) }
    try fresh.fsync()
    try spool.flushFormerNames(place.directory, from: nil)
    // No worker takes either file until this is over. Where it sees no lock, the exchange shows that it was faster.
    _ = try fresh.lock()
    var lock = try spool.system.open(spool.root, place.path, Spool.jobFlags)
    // Another edit lasts for milliseconds. While one stands still, its text may have the job's name and give way again.
    guard try lock.lock(within: 2000, every: 20) || isLocked else { throw Self.isBusy(place) }
    let now = try lock.status()
    // By its name as well: the lock may have been another edit's, which has replaced the file.
    guard now.isSameFile(as: found), now.size == found.size,
      try spool.system.status(spool.root, place.path).isSameFile(as: found)
    else { throw Self.hasMoved(place) }
    let target = JobPlace(directory: home ?? place.directory, name: place.name, inode: own.inode)
    do throws(SpoolError) {
      try exchange(draft, own, place, expecting: found)
    } catch  where error.isUnknownRename {
      // As when a worker claims it. With an old time the claim would be a frozen worker's.
      if spool.isWorkersOwn(found) { try spool.touch(lock) }
      if modified != nil { try spool.touch(fresh) }
      try replaceAsOwner(place, found, by: fresh, own, modified: modified, target)
      return target
    }
    if target.path != place.path { try bring(place, to: target, or: draft, found, instead: own) }
    return target
  }

  private static func hasMoved(_ place: JobPlace) -> SpoolError {
    SpoolError(call: .rename, path: place.display, errno: .noSuchFileOrDirectory)
  }

  private static func isBusy(_ place: JobPlace) -> SpoolError {
    SpoolError(
      call: .open, path: place.display, errno: .textFileBusy,
      reason: "a process still writes it, or has locked it; if that process hangs, end it and try again")
  }

  /// Exchanges the names of the file `draft`, which is `own`, and of the job, or leaves both as they are.
  private func exchange(_ draft: Path, _ own: FileStatus, _ place: JobPlace, expecting file: FileStatus)
    throws(SpoolError)
  {
    try spool.system.exchange(spool.root, draft, place.path)
    let taken: FileStatus
    do throws(SpoolError) { taken = try spool.system.status(spool.root, draft) } catch {
      try spool.system.exchange(spool.root, draft, place.path)
      throw error
    }
    if isMovedByNobody(taken, file) { return }
    // The job had just moved, and another file has its name. While this process stands still, ours may be moved on, at
    // each of these steps. Whatever goes wrong with a look, the other file must not stay in `tmp/`.
    var now = place
    for _ in 0..<Self.mostLooks {
      now = (try? JobSearch(spool).place(of: place.name, own)) ?? now
      do throws(SpoolError) {
        try spool.system.exchange(spool.root, draft, now.path)
        if try spool.system.status(spool.root, draft).isSameFile(as: own) {
          // The first exchange may be durable by now.
          try spool.flush(now.directory).run()
          throw Self.hasMoved(place)
        }
        // It was moved on only now, and a third file has come.
        try spool.system.exchange(spool.root, draft, now.path)
      } catch {
        if try spool.system.status(spool.root, draft).isSameFile(as: own) { throw error }
        guard error.errno != .noSuchFileOrDirectory else { continue }
        try putBack(draft, at: now.path, instead: own)
        throw error
      }
    }
    try putBack(draft, at: now.path, instead: own)
    try spool.flush(now.directory).run()
    throw Self.hasMoved(place)
  }

  /// Gives a job that was taken by mistake its name again. `own` goes, as far as it has that name: a person's move by
  /// link and unlink may just put it back there.
  private func putBack(_ draft: Path, at path: Path, instead own: FileStatus) throws(SpoolError) {
    for _ in 0..<Self.mostLooks {
      _ = try? spool.remove(path, of: own)
      do throws(SpoolError) {
        return try spool.moveNoReplace(draft, path)
      } catch  where error.errno == .fileExists {
        guard try spool.system.statusIfPresent(spool.root, path)?.isSameFile(as: own) ?? false else { break }
      }
    }
    try spool.putBack(draft, at: path)
  }

  /// Whether the file that has just lost its name is the one that was seen before, and no move by link and unlink has
  /// begun: that would go on with the old text.
  private func isMovedByNobody(_ now: FileStatus, _ before: FileStatus) -> Bool {
    now.isSameFile(as: before) && now.links <= before.links
  }

  /// Moves a job that has its new text on, or gives it the old one again.
  private func bring(
    _ place: JobPlace, to target: JobPlace, or old: Path, _ found: FileStatus, instead file: FileStatus
  ) throws(SpoolError) {
    do throws(SpoolError) {
      try spool.moveNoReplace(place.path, target.path)
    } catch  where error.errno == .noSuchFileOrDirectory {
      // Somebody has moved it on, with its new text.
    } catch {
      try exchange(old, found, place, expecting: file)
      throw error
    }
  }

  /// The same where names cannot be exchanged, as on some network file systems: this process takes the job as a worker
  /// does, by a name that only it has. If it dies, a worker takes the claim over.
  private func replaceAsOwner(
    _ place: JobPlace, _ file: FileStatus, by fresh: borrowing OwnedFile, _ own: FileStatus, modified: Int64?,
    _ target: JobPlace
  ) throws(SpoolError) {
    guard let job = JobName(place.name) else {
      throw SpoolError(call: .rename, path: place.display, errno: .invalidArgument)
    }
    let claim = Path(.cur, ClaimName.fileName(job, spool.owner))
    // An edit of this process that failed may have left its claim there.
    if try spool.system.statusIfPresent(spool.root, claim) != nil { throw Self.isBusy(place) }
    try spool.system.rename(spool.root, place.path, claim)
    do throws(SpoolError) {
      guard isMovedByNobody(try spool.system.status(spool.root, claim), file) else { throw Self.hasMoved(place) }
      if target.path != place.path, try spool.system.statusIfPresent(spool.root, target.path) != nil {
        throw SpoolError(call: .rename, path: target.display, errno: .fileExists)
      }
      try JobMoves(spool).replaceClaim(claim, job, file, by: fresh.path, own)
    } catch let cause {
      // As a claim it would run.
      do throws(SpoolError) { try spool.putBack(claim, at: place.path) } catch  where error.isGone {}
      throw cause
    }
    // A worker would run the job if it stayed a claim.
    do throws(SpoolError) {
      if let modified { try fresh.setTimes(to: modified) }
      try spool.moveNoReplace(claim, target.path)
    } catch {
      if error.errno == .fileExists { return try spool.putBack(claim, at: target.path) }
      try spool.putBack(claim, at: place.path)
      throw error
    }
  }

  /// Has a job that a person is about to put back say that it is complete, where that makes a difference, so that it
  /// need not settle, and removes what a worker's crash left of a journal line, which would look like a person's. A
  /// file that this user may not rewrite, or that is no job's, is left as it is.
  /// - Throws: ``SpoolError``, ENOENT when it has moved.
  func sayComplete(_ place: JobPlace) throws(SpoolError) {
    func whole(_ text: [UInt8]) -> [UInt8] {
      JobText.finished(place.directory.takesDrops ? text : JobText.withoutTornLine(text), on: spool.kind)
    }
    // Nothing of a drop's text would change then.
    if spool.kind.leases == .both, place.directory.takesDrops { return }
    guard JobName(place.name) != nil, let status = try spool.status(place.directory, place.name), status.isRegular,
      status.links == 1, status.size <= Spool.maximumJobFile
    else { return }
    do throws(SpoolError) {
      // Somebody still writes to it, and the job goes on in this file.
      if spool.kind.isLocal, try spool.openText(place.path).askLease() == .refused { return }
      guard let text = try spool.read(place.path, limit: Spool.maximumJobFile)?.bytes, whole(text) != text else {
        return
      }
      try replaceText(of: place, modified: status.modified) { whole($0) }
    } catch  where error.mayConcernOneFile || error.isLackOfSpace {
    }
  }

  /// Copies a job that was just taken from a worker which has died, perhaps between a failed fsync and the line that
  /// says so: the page cache has lines that the disk lacks.
  /// - Returns: the job, where it was.
  func renewLeft(_ place: JobPlace) throws(SpoolError) -> JobPlace {
    do throws(SpoolError) {
      // Elsewhere, a lock that is free says nothing of its worker. Where names cannot be exchanged, the job would be a
      // claim for a moment.
      guard !spool.kind.hasHalfMoves, try isUnlocked(place, asksLease: false), JobName(place.name) != nil,
        let status = try spool.status(place.directory, place.name), status.isRegular,
        status.size <= Spool.maximumJobFile
      else { return place }
      return try replaceText(of: place, modified: status.modified) { $0 }
    } catch
      where error.mayConcernOneFile || error.isLackOfSpace || error.isLeased
      || [.noSuchFileOrDirectory, .textFileBusy].contains(error.errno)
    {
      return place
    }
  }

  /// The directory as well, for workers of other hosts: they look at its time.
  func touch(_ place: JobPlace) throws(SpoolError) {
    try spool.touch(spool.system.open(spool.root, place.path, O_RDONLY | Spool.jobFlags))
    if spool.kind.isLocal { return }
    // If it is another user's, they find the job with their next pass.
    try orNil(
      spool.touch(spool.system.open(spool.root, Path(place.directory), O_RDONLY | O_DIRECTORY)),
      on: .permissionDenied, .notPermitted)
  }

  /// Waits, 2 s at most, until no process has the job's lock or has it open for writing: in `new/` it would seem
  /// unfinished.
  /// - Returns: false if a process still does, as far as the kernel tells.
  func waitUntilUnlocked(_ place: JobPlace) throws(SpoolError) -> Bool {
    for _ in 0..<100 {
      if try isUnlocked(place) { return true }
      Host.current.wait(milliseconds: 20)
    }
    return false
  }

  /// The same for a job that is about to be put back. A worker that is stopped may keep its lock for ever, so a copy
  /// takes the file's place then.
  /// - Returns: the job, where it was.
  func freed(_ place: JobPlace) throws(SpoolError) -> JobPlace {
    if try waitUntilUnlocked(place) { return place }
    if try isUnlocked(place, asksLease: false) { return place }
    // A writer's lease is no lock of a worker.
    return try orNil(replaceText(of: place, locked: true) { $0 }, where: \.isLeased) ?? place
  }

  private func isUnlocked(_ place: JobPlace, asksLease: Bool = true) throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      guard try spool.status(place.directory, place.name)?.isRegular ?? false else { return true }
      var file = try spool.system.open(spool.root, place.path, O_RDONLY | Spool.jobFlags)
      let isFree = try file.lock()
      return isFree && (!asksLease || spool.kind.leases == .granted || file.askLease() != .refused)
    } catch  where error.isLeased {
      return false
    } catch  where error.errno == .permissionDenied {
      return true
    }
  }
}
