internal import Glibc
internal import SystemPackage

extension Spool {
  /// Drops a job as every tool should: writes it whole in `tmp/`, makes it durable, and moves it to `new/` without
  /// replacing another job.
  /// - Returns: the name that the job got: `name`, or with `~2`, `~3`, … where it was taken.
  /// - Throws: ``SpoolError``; nothing is left of the job then.
  package func drop(_ text: String, as name: JobName) throws(SpoolError) -> JobName {
    let temporary = temporary(name.fileName)
    let directory = try system.status(root, Path(.tmp))
    // In another user's spool (spool.5, SEVERAL USERS) the file gets the group of its directory, which is that user's
    // own.
    let isForeign = directory.owner != geteuid() && directory.permissions & 0o2000 != 0
    var file = try system.create(root, temporary, O_WRONLY | O_EXCL | O_NOFOLLOW, mode: isForeign ? 0o640 : 0o600)
    do throws(SpoolError) {
      try file.write(Array(text.utf8), at: 0)
      try file.fsync()
      var target = name
      var attempt = 1
      while true {
        do throws(SpoolError) {
          try moveNoReplace(temporary, Path(.new, target.fileName))
          break
        } catch  where error.errno == .fileExists && attempt < Self.mostTries {
          attempt += 1
          target = isForeign ? name.numbered(Self.number(ofTry: attempt)) : try freeName(like: name)
        }
      }
      if isForeign {
        // A user who may only drop cannot open the directory to sync it.
        file.path = Path(.new, target.fileName)
        try file.syncFileSystem()
      } else {
        try flush(.new).run()
      }
      return target
    } catch {
      try? system.unlink(root, temporary)
      throw error
    }
  }

  /// The text of a job, for readers without a claim: `verify`, `status`.
  /// - Returns: nil where no regular file has the name.
  /// - Throws: ``SpoolError``.
  package func job(_ directory: Directory, _ name: FileName) throws(SpoolError) -> JobText? {
    guard let bytes = try contents(Path(directory, name), limit: Self.maximumJobFile) else { return nil }
    return bytes.withUnsafeBytes { JobText($0) }
  }

  /// Removes the data that was set aside after a mismatch, when the job has got the right data.
  /// - Throws: ``SpoolError``.
  package func removeSetAside(of job: JobName) throws(SpoolError) {
    do throws(SpoolError) {
      try system.unlink(root, Path(.failed, job.part))
    } catch  where error.errno == .noSuchFileOrDirectory {
    }
  }
}
