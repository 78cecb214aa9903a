internal import Glibc
internal import Synchronization
internal import SystemPackage

/// Moves of whole files that replace nothing unasked, and removals that take no other job.
extension Spool {
  /// Renames without replacing. Where RENAME_NOREPLACE is unknown, by link and unlink: link(2) refuses an existing name
  /// everywhere; see ``JobMoves`` for a crash between the two. The rename first: FAT supports it, and no links.
  /// - Parameter directory: an open directory that both are relative to; nil for the spool's own.
  /// - Throws: ``SpoolError``, EEXIST where `to` exists.
  func moveNoReplace(_ from: Path, _ to: Path, in directory: Int32? = nil) throws(SpoolError) {
    if directory == nil, lacksNoReplace.load(ordering: .relaxed) { return try moveByLink(from, to, in: root) }
    do throws(SpoolError) {
      try system.renameNoReplace(directory ?? root, from, to)
    } catch let unknown where unknown.isUnknownRename {
      if directory == nil { lacksNoReplace.store(true, ordering: .relaxed) }
      do throws(SpoolError) { try moveByLink(from, to, in: directory ?? root) } catch {
        // Where there are no links, the rename is known, and the name is what it refuses.
        throw directory != nil && error.errno == .notPermitted ? unknown : error
      }
    } catch  where error.errno == .fileExists {
      // The kernel looks for the new name before the file system can say that it knows no such rename.
      try completeMoveByLink(from, to, in: directory ?? root, or: error)
    }
  }

  /// Writes a file of the spool's own in place of the old one; readers see either as a whole.
  /// - Parameter mode: as far as the umask allows. 644: users who may drop jobs may read it.
  /// - Parameter modified: its time, in seconds since the epoch; nil for now.
  /// - Parameter isFlushed: whether it is durable before it has its name.
  /// - Parameter replaces: false to keep a file that is there.
  func write(
    _ bytes: [UInt8], to path: Path, mode: mode_t = 0o644, modified: Int64? = nil, isFlushed: Bool = false,
    replaces: Bool = true
  ) throws(SpoolError) {
    let draft = temporary(FileName(Array((path.name?.bytes ?? []).prefix(64))))
    do throws(SpoolError) {
      try system.write(bytes, toNew: root, draft, mode: mode, modified: modified, isFlushed: isFlushed)
      if replaces { try system.rename(root, draft, path) } else { try moveNoReplace(draft, path) }
    } catch {
      try? system.unlink(root, draft)
      throw error
    }
  }

  /// Begins the names of files that are taken to `tmp/` to be looked at again.
  static let takenName = FileName("moved")

  /// Gives a job that was taken by mistake its name again, or one with a number.
  func putBack(_ former: Path, at path: Path) throws(SpoolError) {
    var target = path
    for number in 2... {
      do throws(SpoolError) {
        return try moveNoReplace(former, target)
      } catch  where error.errno == .fileExists {
        guard let directory = path.directory, let name = path.name,
          let job = directory == .cur ? ClaimName(name)?.job : JobName(name)
        else { throw error }
        // A claim keeps its owner behind the number.
        let owner = name.bytes.dropFirst(job.fileName.bytes.count)
        target = Path(directory, FileName(job.numbered(number).fileName.bytes + owner))
      }
    }
  }

  /// Removes a name of a job where another job may get that name at any moment. So the file is moved to `tmp/` first,
  /// where nobody else sees it, and looked at again.
  /// - Parameter isDouble: the job must keep another name. One in `tmp/` does not count: a dropper is about to remove
  ///   it. Without the second look, two processes that see each other's name would both remove theirs.
  /// - Parameter kept: see ``Spool/hasOtherName(_:than:kept:)``.
  /// - Returns: whether this call has removed the name.
  @discardableResult func remove(
    _ path: Path, of job: FileStatus, isDouble: Bool = false, kept: Path? = nil
  ) throws(SpoolError) -> Bool {
    guard try system.statusIfPresent(root, path)?.isSameFile(as: job) == true else { return false }
    if isDouble, try !hasOtherName(job, than: path, kept: kept) { return false }
    let former = temporary(Self.takenName)
    do throws(SpoolError) {
      try system.rename(root, path, former)
    } catch {
      if error.errno == .noSuchFileOrDirectory { return false }
      if isDouble { throw error }
      // Here nothing can be taken to `tmp/`.
      guard try system.statusIfPresent(root, path)?.isSameFile(as: job) == true else { return false }
      try system.unlinkIfPresent(root, path)
      return true
    }
    var goes = false
    do throws(SpoolError) {
      goes = try system.status(root, former).isSameFile(as: job)
      if goes, isDouble { goes = try hasOtherName(job, than: path, kept: kept) }
      if goes { try system.unlink(root, former) }
    } catch {
      // It may be another job, which would go with what is left in `tmp/`.
      try putBack(former, at: path)
      throw error
    }
    if !goes { try putBack(former, at: path) }
    return goes
  }

  private func moveByLink(_ from: Path, _ to: Path, in directory: Int32) throws(SpoolError) {
    // A name in `tmp/` is one process's, and gets no other job.
    let isJob = directory == root && from.directory != .tmp
    let isShared = isJob && !isOwnClaim(from, movedTo: to)
    // Asked before the link: if that fails, nothing has happened.
    if isJob, try !canSeeLinks() { return try moveBlindly(from, to, isShared: isShared) }
    let moved = try system.status(directory, from)
    do throws(SpoolError) {
      try system.link(directory, from, directory, to)
    } catch  where error.errno == .fileExists {
      return try completeMoveByLink(from, to, in: directory, or: error)
    }
    let former = temporary(Self.takenName)
    do throws(SpoolError) {
      if isJob {
        // A worker may have taken the job meanwhile, and another one was dropped or claimed by its name.
        let now = try system.status(root, from)
        guard now.isSameFile(as: moved) else { throw Self.hasMoved(from) }
        // A person has moved it on, and a worker has taken its two names for half a claim.
        if now.links == 1 { return try moveByLink(from, to, in: root) }
        // The move was completed for us, and a worker has claimed the job again.
        if isShared, from.directory == .cur, try !hasOtherName(now, than: from) { throw Self.hasMoved(from) }
      }
      if isShared { try system.rename(root, from, former) } else { try system.unlink(directory, from) }
    } catch  where error.errno == .noSuchFileOrDirectory {
      // Somebody else has moved it elsewhere at the same moment, and was faster. Or the move was completed for us, and
      // the new name is the only one.
      guard let status = try system.statusIfPresent(directory, to), status.isSameFile(as: moved), status.links > 1
      else { return }
      // The other name of a receipt may be in the archive.
      if directory != root || from.directory == .done {
        try? system.unlink(directory, to, of: moved)
      } else if try !remove(to, of: moved, isDouble: true) {
        return
      }
      throw Self.hasMoved(from)
    } catch {
      // The job has moved, and its old name could not be removed. It must not be moved again because of that; the next
      // claim removes the old name. But where a person holds a running job, its worker would go on with it.
      if from.directory == .cur, to.directory == .hold, try remove(to, of: moved, isDouble: true) { throw error }
      return
    }
    if isShared { try discard(former, of: moved, from, to) }
  }

  /// Whether it is a claim of this process, of which only its owner knows that no later claim has got its name. Of one
  /// that goes back to where jobs are claimed, not even its owner does: the job may come back at once. A claim that is
  /// given back to another worker's name may be taken for half a move by a third.
  private func isOwnClaim(_ from: Path, movedTo to: Path) -> Bool {
    guard from.directory == .cur, let home = to.directory, home != .cur, !home.takesNewJobs else { return false }
    return from.name.flatMap { ClaimName($0)?.owner?.text } == owner.text
  }

  private static func hasMoved(_ path: Path) -> SpoolError {
    SpoolError(call: .rename, path: path.display, errno: .noSuchFileOrDirectory)
  }

  /// Removes the former name of a job that was moved by a link, or gives it back.
  private func discard(_ former: Path, of moved: FileStatus, _ from: Path, _ to: Path) throws(SpoolError) {
    do throws(SpoolError) {
      if try system.status(root, former).isSameFile(as: moved),
        from.directory == .cur
          ? try hasOtherName(moved, than: from) : try system.statusIfPresent(root, to)?.isSameFile(as: moved) ?? false
      {
        // A file left in `tmp/` is removed later.
        try? system.unlink(root, former)
        return
      }
    } catch {
      try putBack(former, at: from)
      throw error
    }
    // Or since then; or a worker has taken it by its new name, and it has come back to the old one.
    try putBack(former, at: from)
  }

  /// The same move, which a crash cut between link and unlink, or which the server of a network file system has made
  /// twice, because its first answer was lost.
  /// - Throws: `error`, where another file has the new name, or `from` is that name.
  private func completeMoveByLink(_ from: Path, _ to: Path, in directory: Int32, or error: SpoolError)
    throws(SpoolError)
  {
    guard from != to else { throw error }
    let own = try system.status(directory, from)
    guard try system.statusIfPresent(directory, to)?.isSameFile(as: own) ?? false else { throw error }
    // Nobody moves a job into `cur/` by link, or gives a name in `tmp/` or beside a payload to a file of another
    // process. Any other name may be the one that somebody is moving the file to.
    let isOthers = directory == root && from.directory != .cur && from.directory != .tmp
    if isOthers, own.mayBeMoving(at: now()) {
      throw SpoolError(call: .rename, path: from.display, errno: .noSuchFileOrDirectory, reason: "it is being moved")
    }
    // The next claim removes a name that stays. While this process stood still, the old name may have become another
    // job's.
    if directory == root, from.directory != .tmp {
      // The other name of a receipt may be in the archive.
      _ = try? remove(from, of: own, isDouble: from.directory != .done)
    } else {
      try? system.unlink(directory, from, of: own)
    }
  }
}

/// Where each name of a file has an inode and a number of links of its own, as on SSHFS, nobody sees half a move.
extension Spool {
  /// Whether two names of a file are seen to be one. That is tried once, where a program serves the file system.
  private func canSeeLinks() throws(SpoolError) -> Bool {
    if kind.isLocal || kind.sharing == .network { return true }
    if let known = showsLinks.withLock({ $0 }) { return known }
    let (one, other) = (temporary(FileName("trial")), temporary(FileName("trial")))
    _ = try system.createNew(root, one)
    defer { for path in [one, other] { try? system.unlink(root, path) } }
    try system.link(root, one, root, other)
    let names = [try system.status(root, one), try system.status(root, other)]
    let isSeen = names[0].isSameFile(as: names[1]) && names.allSatisfy { $0.links == 2 }
    showsLinks.withLock { $0 = isSeen }
    return isSeen
  }

  /// Moves a job by link and unlink. Nobody would complete the move, so the new name goes again if the old one cannot
  /// go: two names are two jobs.
  private func moveBlindly(_ from: Path, _ to: Path, isShared: Bool) throws(SpoolError) {
    let moved = try system.status(root, from)
    try system.link(root, from, root, to)
    // It has got another inode. Only to take it back: if this look fails, the move can still succeed.
    let given = try? system.statusIfPresent(root, to)
    var failure = Self.hasMoved(from)
    do throws(SpoolError) {
      if try unlinkBlindly(from, of: moved, isShared: isShared) { return }
    } catch { failure = error }
    if let given { try remove(to, of: given) }
    throw failure
  }

  /// - Parameter isShared: whether another job may get the name at any moment. A rename keeps the inode.
  /// - Returns: false where another job has the name; it keeps it.
  private func unlinkBlindly(_ path: Path, of job: FileStatus, isShared: Bool) throws(SpoolError) -> Bool {
    if isShared { return try remove(path, of: job) }
    try system.unlink(root, path)
    return true
  }
}
