internal import Glibc
internal import SystemPackage

extension Spool {
  /// Removes data whose job is gone, unless a process has its lock.
  /// - Parameters:
  ///   - path: `partial/NAME.part`, or the data set aside as `failed/NAME.part`.
  ///   - isDry: whether to only report what would be removed.
  /// - Returns: the bytes that were in it; nil if it is not removed.
  func removeOrphan(_ path: Path, of job: FileName, isDry: Bool = false) throws(SpoolError) -> Int64? {
    try withIdleData(path) { (status) throws(SpoolError) in
      // First the lock, then the check: a worker that claims a job of this name from now on finds the data locked, and
      // takes another name.
      if try isJobPresent(job) { return nil }
      if !isDry { try system.unlink(root, path) }
      return status.size
    }
  }

  /// Removes the data of a job that the caller has claimed without opening the data. Data that another worker has
  /// locked stays: while there was none, its job may have got the same name.
  /// - Parameter payload: of the job's payload. Data that is the same file is the job's own, even if a worker that was
  ///   frozen still has it locked.
  package func removeData(of job: JobName, publishedAs payload: FileStatus? = nil) throws(SpoolError) {
    let path = Path(.partial, job.part)
    _ = try withIdleData(path, or: payload) { (_) throws(SpoolError) in try system.unlink(root, path) }
  }

  /// Calls `body` with the data's status while the data is locked.
  /// - Parameter known: of a file whose lock does not count.
  /// - Returns: nil if there is no data, or another process has it.
  func withIdleData<Result>(
    _ path: Path, or known: FileStatus? = nil, _ body: (FileStatus) throws(SpoolError) -> Result?
  ) throws(SpoolError) -> Result? {
    do throws(SpoolError) {
      guard try system.status(root, path).isRegular else { return nil }
      var file = try system.open(root, path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
      let isFree = try file.lock()
      let status = try file.status()
      guard isFree || known?.isSameFile(as: status) == true, try system.status(root, path).isSameFile(as: status) else {
        return nil
      }
      return try body(status)
    } catch  where error.errno == .noSuchFileOrDirectory {
      return nil
    }
  }

  /// Removes the data of a cancelled job, unless a worker uses it or another job has its name.
  package func removeOrphanedData(of job: JobName) throws(SpoolError) {
    _ = try removeOrphan(Path(.partial, job.part), of: job.fileName)
    _ = try removeOrphan(Path(.failed, job.part), of: job.fileName)
  }

  /// The entries of `failed/` that are no jobs of their own: data set aside, and records of what is no job.
  func leftovers(in names: [FileName]) throws(SpoolError) -> Set<FileName> {
    let all = Set(names)
    var found: Set<FileName> = []
    for name in names {
      // Something was dropped as `x.part`: that is no job's name, so it has a record.
      if name.isData, !all.contains(name.record) { found.insert(name) }
      if try isRecord(name) { found.insert(name) }
    }
    return found
  }

  /// Whether `name` in `failed/` is the record of something that is no job.
  func isRecord(_ name: FileName) throws(SpoolError) -> Bool {
    guard name.hasRecordSuffix, let bytes = try readableContents(Path(.failed, name)) else {
      return false
    }
    return JobLines.isRecord(bytes)
  }
}
