internal import Synchronization
internal import SystemPackage

/// Names that are taken, and moves that replace nothing.
extension Spool {
  /// How many names are tried before there is thought to be another reason why none is free.
  static let mostTries = 110

  /// The number for the `attempt`-th name: 2, 3, … and after the hundredth a random one. Without it, a person who drops
  /// one name over and over could make each move look through all that came of it, and end the worker with the last
  /// number.
  static func number(ofTry attempt: Int) -> Int {
    var random = HostRandom()
    return attempt <= 100 ? attempt : .random(in: 101...999_999_999, using: &random)
  }

  /// Whether an older job has this name, so that `NAME.part` is that job's; or a standing order has it.
  /// - Parameter source: the job that asks, where it was dropped.
  func isTaken(_ job: JobName, _ source: Path) throws(SpoolError) -> Bool {
    // Of two claims without data, the first to lock it has the name (`PartFile.open`): no need to look through `cur/`.
    guard try status(.partial, job.part) != nil else {
      // And of a job and an order, `hold NAME` could not tell which is meant. A job with data keeps its name.
      return try !places(of: job.fileName, in: [.partial, .hold, .failed, .standing]).isEmpty
    }
    // The very name, where `source` still had its owner's suffix.
    if source.name != job.fileName {
      for directory in [Directory.new, .urgent] where try status(directory, job.fileName) != nil { return true }
    }
    return try hasNamesake(job, otherThan: nil)
  }

  /// Whether a job of this name is where jobs with data are.
  /// - Parameter inode: of the job that asks, if it is there.
  func hasNamesake(_ job: JobName, otherThan inode: UInt64?) throws(SpoolError) -> Bool {
    // A paused job whose name still has its owner's suffix.
    if try list(.hold).contains(where: { ClaimName($0)?.job == job }) { return true }
    let directories = [Directory.cur, .partial, .hold, .failed]
    // In the order in which a job moves, and in reverse: a job that is parked between two looks is seen by one of them.
    for order in [directories, directories.reversed()]
    where try places(of: job.fileName, in: order).contains(where: { $0.inode != inode }) {
      return true
    }
    return false
  }

  /// `NAME~2`, `NAME~3`, …: the first that no job has, or a random one where a hundred are taken.
  /// - Throws: ``SpoolError``, EEXIST where none is found.
  func freeName(like job: JobName) throws(SpoolError) -> JobName {
    let claimed = Set(try list(.cur).compactMap { ClaimName($0)?.job })
    for attempt in 2...Self.mostTries {
      let candidate = job.numbered(Self.number(ofTry: attempt))
      // Its own, where it ends in a number: another job has it, and may be between two directories.
      if candidate == job || claimed.contains(candidate) { continue }
      if namesInHand.contains(ClaimName.fileName(candidate, owner)) { continue }
      if try status(.partial, candidate.part) != nil { continue }
      var isFree = true
      for directory in [Directory.new, .urgent, .partial, .done, .failed, .hold, .standing]
      where try status(directory, candidate.fileName) != nil {
        isFree = false
      }
      if isFree { return candidate }
    }
    throw SpoolError(call: .rename, path: job.display, errno: .fileExists)
  }

  /// Renames the job file at `path` into `directory`, numbered where its name is taken: nothing there is ever replaced.
  /// The job's data goes along.
  /// - Parameter hasData: whether data of its name is its own; a standing order has none.
  /// - Returns: the name that the job got.
  func moveNumbered(_ path: Path, _ job: JobName, to directory: Directory, hasData: Bool) throws(SpoolError) -> JobName
  {
    var (target, owner) = (job, job)
    while true {
      // A job that is done has no data, and data of its name may be another worker's.
      if target != owner, directory != .done, hasData { try moveData(of: owner, to: target) }
      owner = target
      do throws(SpoolError) {
        try moveNoReplace(path, Path(directory, target.fileName))
        return target
      } catch  where error.errno == .fileExists {
        if try !removeTouched(Path(directory, target.fileName), in: directory) { target = try freeName(like: job) }
      }
    }
  }

  /// Removes the empty file that touch(1) makes where a job waits for its next attempt while that attempt runs.
  /// - Returns: whether that is what was there, and nobody writes to it.
  private func removeTouched(_ path: Path, in directory: Directory) throws(SpoolError) -> Bool {
    guard directory.isScheduled else { return false }
    do throws(SpoolError) {
      let file = try openText(path)
      let status = try file.status()
      guard status.isRegular, status.size == 0, status.links == 1, file.askLease() != .refused else { return false }
      try removeDouble(path, of: status)
      return true
    } catch  where error.isGone || error.isUnreadable {
      return false
    }
  }

  private func moveData(of job: JobName, to target: JobName) throws(SpoolError) {
    let path = Path(.partial, job.part)
    _ = try withIdleData(path) { (_) throws(SpoolError) in try moveNoReplace(path, Path(.partial, target.part)) }
  }

  /// Renames without replacing. Where RENAME_NOREPLACE is unknown, by link and unlink: link(2) refuses an existing name
  /// everywhere; see ``completeInterruptedMove(_:_:_:_:now:)`` for a crash between the two. The rename first: FAT
  /// supports it, and no links.
  /// - Parameter directory: an open directory that both are relative to; nil for the spool's own.
  /// - Throws: ``SpoolError``, EEXIST where `to` exists.
  func moveNoReplace(_ from: Path, _ to: Path, in directory: Int32? = nil) throws(SpoolError) {
    if directory == nil, lacksNoReplace.load(ordering: .relaxed) { return try moveByLink(from, to, in: root) }
    do throws(SpoolError) {
      try system.renameNoReplace(directory ?? root, from, to)
    } catch  where error.isUnknownRename {
      if directory == nil { lacksNoReplace.store(true, ordering: .relaxed) }
      try moveByLink(from, to, in: directory ?? root)
    } catch  where error.errno == .fileExists {
      // The kernel looks for the new name before the file system can say that it knows no such rename.
      try completeMoveByLink(from, to, in: directory ?? root, or: error)
    }
  }

  private func moveByLink(_ from: Path, _ to: Path, in directory: Int32) throws(SpoolError) {
    do throws(SpoolError) {
      try system.link(directory, from, directory, to)
    } catch  where error.errno == .fileExists {
      return try completeMoveByLink(from, to, in: directory, or: error)
    }
    do throws(SpoolError) { try system.unlink(directory, from) } catch  where error.errno == .noSuchFileOrDirectory {
      // Somebody else has moved it elsewhere at the same moment, and was faster. Or the move was completed for us, and
      // the new name is the only one.
      guard let status = try? system.status(directory, to), status.links > 1 else { return }
      try? system.unlink(directory, to)
      throw SpoolError(call: .rename, path: from.display, errno: .noSuchFileOrDirectory)
    } catch {
      // The job has moved, and its old name could not be removed. It must not be moved again because of that; the next
      // claim removes the old name.
    }
  }

  /// The same move, which a crash cut between link and unlink.
  /// - Throws: `error`, where another file has the new name, or `from` is that name.
  private func completeMoveByLink(_ from: Path, _ to: Path, in directory: Int32, or error: SpoolError)
    throws(SpoolError)
  {
    guard from != to else { throw error }
    let own = try system.status(directory, from)
    guard try system.statusIfPresent(directory, to)?.isSameFile(as: own) ?? false else { throw error }
    // Nobody moves a job into `cur/` by link. Any other name may be the one that somebody is moving the file to.
    if !from.bytes.starts(with: Path(.cur).bytes + [0x2F]), Self.mayBeMoving(own, at: now()) {
      throw SpoolError(call: .rename, path: from.display, errno: .noSuchFileOrDirectory, reason: "it is being moved")
    }
    try? system.unlink(directory, from)
  }
}
