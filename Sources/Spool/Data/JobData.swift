internal import Glibc
internal import SystemPackage

/// Data that this process has locked, so that no worker begins with it.
struct IdleData {
  let path: Path
  let job: FileName
  let status: FileStatus
  /// Keeps the lock.
  fileprivate let file: SharedFile
}

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

  /// How many jobs' data is locked at a time, for one look for their jobs: each lists directories.
  package static let mostAtOnce = 100

  /// - Returns: nil if there is no data, or another process has it.
  func lockIdle(_ directory: Directory, _ name: FileName) throws(SpoolError) -> IdleData? {
    let path = Path(directory, name)
    do throws(SpoolError) {
      guard try spool.system.status(spool.root, path).isRegular else { return nil }
      var file = try spool.system.open(spool.root, path, O_RDWR | Spool.jobFlags)
      guard try file.lock() else { return nil }
      let status = try file.status()
      guard try spool.system.status(spool.root, path).isSameFile(as: status) else { return nil }
      return IdleData(path: path, job: name.dataOwner, status: status, file: file.shared())
    } catch  where error.errno == .noSuchFileOrDirectory {
      return nil
    }
  }

  /// Removes the data of cancelled jobs, unless a worker uses it or another job has its name.
  /// - Parameter jobs: at most ``mostAtOnce``.
  /// - Throws: ``SpoolError``; what hinders one file is thrown after the others are removed.
  package func removeOrphanedData(of jobs: [JobName]) throws(SpoolError) {
    var idle: [IdleData] = []
    var stuck: SpoolError?
    for job in jobs {
      for directory in [Directory.partial, .failed] {
        do throws(SpoolError) {
          if let data = try lockIdle(directory, job.part) { idle.append(data) }
        } catch  where spool.concernsOneFile(error, in: directory) {
          stuck = error
        }
      }
    }
    // First the locks, then the look: a worker that claims a job of such a name from now on finds the data locked, and
    // takes another name.
    let absent = try JobSearch(spool).absent(of: Set(idle.map(\.job)))
    for data in idle {
      do throws(SpoolError) {
        if absent.contains(data.job) { try spool.system.unlink(spool.root, data.path, of: data.status) }
      } catch  where spool.concernsOneFile(error, in: data.path.directory ?? .partial) {
        stuck = error
      }
    }
    withExtendedLifetime(idle) {}
    if let stuck { throw stuck }
  }

  /// Removes the data that was set aside after a mismatch, when the job has got the right data.
  package func removeSetAside(of job: JobName) throws(SpoolError) {
    try spool.system.unlinkIfPresent(spool.root, Path(.failed, job.part))
  }
}
