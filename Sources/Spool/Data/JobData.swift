internal import Glibc
internal import SystemPackage

/// The data of jobs by its name, for those who have not opened it: to remove it, or to work on it while nobody has it.
package struct JobData {
  let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  /// Removes data that no job needs, unless a process has its lock.
  /// - Parameter path: `partial/NAME.part`, or the data set aside as `failed/NAME.part`.
  /// - Parameter isDry: whether to only report what would be removed.
  /// - Parameter isLeftover: whether no job needs it.
  /// - Returns: the bytes that were in it; nil if it is not removed.
  func removeIdle(
    _ path: Path, isDry: Bool = false, where isLeftover: () throws(SpoolError) -> Bool
  ) throws(SpoolError) -> Int64? {
    try withIdleData(path) { (status) throws(SpoolError) in
      // First the lock, then the check: a worker that claims a job of this name from now on finds the data locked, and
      // takes another name.
      guard try isLeftover() else { return nil }
      if !isDry { try spool.system.unlink(spool.root, path) }
      return status.size
    }
  }

  /// Calls `body` with the data's status while the data is locked.
  /// - Parameter known: of a file whose lock does not count.
  /// - Returns: nil if there is no data, or another process has it.
  func withIdleData<Result>(
    _ path: Path, or known: FileStatus? = nil, _ body: (FileStatus) throws(SpoolError) -> Result?
  ) throws(SpoolError) -> Result? {
    do throws(SpoolError) {
      guard try spool.system.status(spool.root, path).isRegular else { return nil }
      var file = try spool.system.open(spool.root, path, O_RDWR | Spool.jobFlags)
      let isFree = try file.lock()
      let status = try file.status()
      guard isFree || known?.isSameFile(as: status) == true,
        try spool.system.status(spool.root, path).isSameFile(as: status)
      else { return nil }
      return try body(status)
    } catch  where error.errno == .noSuchFileOrDirectory {
      return nil
    }
  }

  /// Removes the data of a cancelled job, unless a worker uses it or another job has its name.
  package func removeOrphanedData(of job: JobName) throws(SpoolError) {
    for directory in [Directory.partial, .failed] {
      _ = try removeIdle(Path(directory, job.part)) { () throws(SpoolError) in
        try !JobSearch(spool).isJobPresent(job.fileName)
      }
    }
  }

  /// Removes the data that was set aside after a mismatch, when the job has got the right data.
  package func removeSetAside(of job: JobName) throws(SpoolError) {
    try spool.system.unlinkIfPresent(spool.root, Path(.failed, job.part))
  }
}
