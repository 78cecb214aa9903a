/// Moves that a crash cut between their two steps: the file has two names, and the older one goes.
extension Spool {
  /// Completes the move of a claimed, locked file that has several names.
  /// - Parameters:
  ///   - source: where it was found, in `origin`.
  ///   - status: of the file.
  /// - Returns: false where it was `source` that had to go: the job has moved on.
  func completeInterruptedMove(_ job: JobName, _ origin: Directory, _ source: Path, _ status: FileStatus)
    throws(SpoolError) -> Bool
  {
    switch origin {
    case .cur:
      if try completeMove(job, source, status) { return false }
      try removeDropped(job, status)
      return true
    case .new: return try !completeClaim(source, status)
    case .partial:
      try removeClaims(of: job, source, status)
      return true
    default: return true
    }
  }

  /// A move from `cur/` by link and unlink: the file has its new name already, so the claim goes.
  /// - Returns: whether it was so.
  private func completeMove(_ job: JobName, _ claim: Path, _ status: FileStatus) throws(SpoolError) -> Bool {
    for directory in [Directory.done, .failed, .partial] {
      // The number may be any, see ``number(ofTry:)``.
      let stream = try stream(directory)
      while let name = try stream.next() {
        guard name == job.fileName || job.isNumbered(as: name), let other = try self.status(directory, name),
          other.isSameFile(as: status)
        else { continue }
        try system.unlink(root, claim)
        return true
      }
    }
    return false
  }

  /// The rename from `new/` into `cur/`, cut by a power failure: btrfs can have made the second name durable and kept
  /// the first. The name in `new/` goes.
  private func removeDropped(_ job: JobName, _ status: FileStatus) throws(SpoolError) {
    guard let other = try self.status(.new, job.fileName), other.isSameFile(as: status) else { return }
    try system.unlink(root, Path(.new, job.fileName))
  }

  /// The same, seen from the name in `new/`.
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

  /// A move from `cur/` to `partial/`, seen from the new name: the claim goes.
  private func removeClaims(of job: JobName, _ source: Path, _ status: FileStatus) throws(SpoolError) {
    for name in try list(.cur) where ClaimName(name)?.job == job && Path(.cur, name) != source {
      if let other = try self.status(.cur, name), other.isSameFile(as: status) {
        try system.unlink(root, Path(.cur, name))
      }
    }
  }
}
