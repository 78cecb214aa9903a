internal import SystemPackage

/// Moves that a crash cut between their two steps: the file has two names, and the older one goes.
extension Spool {
  /// Completes the move of a claimed, locked file that has several names.
  /// - Parameters:
  ///   - source: where it was found, in `origin`.
  ///   - status: of the file.
  /// - Returns: false where it was `source` that had to go, or may have to: the job has moved on, or is moving.
  func completeInterruptedMove(
    _ job: JobName, _ origin: Directory, _ source: Path, _ status: FileStatus, now: Timestamp
  ) throws(SpoolError) -> Bool {
    switch origin {
    case .cur:
      if try completeMove(job, source, status) { return false }
      try removeDropped(job, status)
      return true
    case .new:
      if try isAlso(in: [.hold, .urgent], job, source, status, now) { return false }
      if try isAtEnd(job, source, status, [.done]) { return false }
      try removeFormer(of: job, status, in: [.failed, .partial])
      return try !completeClaim(source, status)
    case .urgent:
      if try isAlso(in: [.hold], job, source, status, now) { return false }
      if try isAtEnd(job, source, status, [.done]) { return false }
      try removeFormer(of: job, status, in: [.new, .partial])
      return try !completeClaim(source, status)
    case .partial:
      if try isAlso(in: [.hold, .urgent, .new], job, source, status, now) { return false }
      if try isAtEnd(job, source, status, [.done, .failed]) { return false }
      try removeClaims(source, status)
      return true
    case .standing: return try !isAlso(in: [.hold], job, source, status, now)
    case .hold, .done, .failed, .tmp, .workers, .files: return true
    }
  }

  /// The same for a gesture, which has no claim.
  /// - Returns: whether it was `place` that had to go: the job has moved on, and must not be moved back.
  func completeInterruptedMove(at place: JobPlace) throws(SpoolError) -> Bool {
    guard let job = JobName(place.job), let status = try self.status(place.directory, place.name),
      status.inode == place.inode, status.isRegular, status.links > 1
    else { return false }
    switch place.directory {
    case .cur: return try completeMove(job, place.path, status)
    case .new, .urgent: return try isAtEnd(job, place.path, status, [.done])
    case .partial, .hold, .standing: return try isAtEnd(job, place.path, status, [.done, .failed])
    case .done, .failed, .tmp, .workers, .files: return false
    }
  }

  /// A move from `cur/` by link and unlink: the file has its new name already, so the claim goes.
  /// - Returns: whether it was so.
  private func completeMove(
    _ job: JobName, _ claim: Path, _ status: FileStatus,
    to directories: [Directory] = [.done, .failed, .partial, .standing, .hold]
  ) throws(SpoolError) -> Bool {
    for directory in directories where try !names(of: status, like: job, in: directory).isEmpty {
      try system.unlink(root, claim)
      return true
    }
    return false
  }

  /// The names of the file in a directory. They may have any number, see ``number(ofTry:)``, or none.
  private func names(of status: FileStatus, like job: JobName, in directory: Directory) throws(SpoolError) -> [FileName]
  {
    let stream = try stream(directory)
    var names: [FileName] = []
    while let name = try stream.next() {
      let isLike =
        name == job.fileName || job.isNumbered(as: name) || JobName(name)?.isNumbered(as: job.fileName) ?? false
      if isLike, try self.status(directory, name)?.isSameFile(as: status) ?? false { names.append(name) }
    }
    return names
  }

  /// The same after a person has moved the claim's name away. Where names are renamed without replacing, there is no
  /// such moment, and a file with several names was dropped by ln(1).
  private func isAtEnd(_ job: JobName, _ source: Path, _ status: FileStatus, _ ends: [Directory]) throws(SpoolError)
    -> Bool
  {
    if kind.isLocal { return false }
    return try completeMove(job, source, status, to: ends)
  }

  /// The rename from `new/` or `urgent/` into `cur/`, cut by a power failure: btrfs can have made the second name
  /// durable and kept the first. The name that it was dropped by goes: the claim may have got a number.
  private func removeDropped(_ job: JobName, _ status: FileStatus) throws(SpoolError) {
    try removeFormer(of: job, status, in: Directory.allCases.filter(\.takesDrops))
  }

  /// A person's move into one of these directories, seen from the other name, which goes. If it was a move out of
  /// `hold/`, the job stays paused.
  /// - Returns: whether it was so, or somebody is about to make such a move.
  private func isAlso(
    in directories: [Directory], _ job: JobName, _ source: Path, _ status: FileStatus, _ now: Timestamp
  ) throws(SpoolError) -> Bool {
    for directory in directories where try !names(of: status, like: job, in: directory).isEmpty {
      if !Self.mayBeMoving(status, at: now) { try system.unlink(root, source) }
      return true
    }
    return false
  }

  /// A person's move, seen from the new name.
  private func removeFormer(of job: JobName, _ status: FileStatus, in directories: [Directory]) throws(SpoolError) {
    for directory in directories {
      for name in try names(of: status, like: job, in: directory) {
        try removeDouble(Path(directory, name), of: status)
      }
    }
  }

  /// Removes `path` if it is another name of the file.
  func removeDouble(_ path: Path, of status: FileStatus) throws(SpoolError) {
    do throws(SpoolError) {
      if try system.status(root, path).isSameFile(as: status) { try system.unlink(root, path) }
    } catch  where error.errno == .noSuchFileOrDirectory {
    }
  }

  /// A claim, seen from the name that the job was dropped by.
  /// - Returns: whether it was so; then `source` is gone.
  private func completeClaim(_ source: Path, _ status: FileStatus) throws(SpoolError) -> Bool {
    // A claim may have got a number. A file that was renamed to the claim's name already is not its own double.
    for name in try list(.cur) where Path(.cur, name) != source {
      guard let other = try self.status(.cur, name), other.isSameFile(as: status) else { continue }
      try system.unlink(root, source)
      return true
    }
    return false
  }

  /// A move from `cur/` to `partial/`, seen from the new name, which may have a number: the claim goes.
  private func removeClaims(_ source: Path, _ status: FileStatus) throws(SpoolError) {
    for name in try list(.cur) where Path(.cur, name) != source { try removeDouble(Path(.cur, name), of: status) }
  }

  /// The rename of new data from `tmp/` to its place, cut by a power failure: btrfs can have made the new name durable
  /// and kept the first, which goes.
  /// - Parameter status: of the file that has the name `data` in `partial/`.
  func removeTemporaryNames(of data: FileName, _ status: FileStatus) throws(SpoolError) {
    let stream = try stream(.tmp)
    while let name = try stream.next() {
      if name.bytes.starts(with: data.bytes + [0x3A]) { try removeDouble(Path(.tmp, name), of: status) }
    }
  }
}
