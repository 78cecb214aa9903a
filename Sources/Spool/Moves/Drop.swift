internal import Glibc
internal import SystemPackage

extension Spool {
  /// Drops a job as every tool should: writes it whole in `tmp/`, makes it durable, and moves it to `new/` without
  /// replacing another job.
  /// - Parameter priority: a job of high priority goes to `urgent/`, if this user may drop there.
  /// - Returns: where the job is: with the name `name`, or with `~2`, `~3`, … where that was taken.
  /// - Throws: ``SpoolError``; nothing is left of the job then, unless a worker has taken it already: its last flush
  ///   may fail.
  package func drop(_ text: String, as name: JobName, _ priority: Priority? = nil) throws(SpoolError)
    -> (name: JobName, directory: Directory)
  {
    let isForeign = try isForeignDrop()
    var file = try temporaryDrop(
      of: Array(text.utf8), for: name, at: self.temporary(name.fileName), isForeign: isForeign)
    let status = try file.status()
    do throws(SpoolError) {
      try file.fsync()
      let target = try enter(
        file.path, as: name, into: Directory(forDropsOf: priority), isForeign: isForeign)
      file.path = Path(target.directory, target.name.fileName)
      if isForeign {
        // A user who may only drop cannot open the directory to sync it.
        try file.syncFileSystem()
      } else {
        try flush(target.directory).run()
      }
      return target
    } catch {
      // Also out of `new`: a caller that is told of an error drops the job again.
      try? removeDouble(file.path, of: status)
      throw error.ofSpace(for: name.display)
    }
  }

  /// Whether the caller drops into another user's spool (spool.5, SEVERAL USERS).
  func isForeignDrop() throws(SpoolError) -> Bool {
    let directory = try system.status(root, Path(.tmp))
    return directory.owner != geteuid() && directory.permissions & 0o2000 != 0
  }

  /// Writes a job in `tmp/`. In another user's spool the file gets the group of its directory, which is that user's
  /// own.
  /// - Parameter path: a new name that cannot be guessed.
  func temporaryDrop(of text: [UInt8], for job: JobName, at path: Path, isForeign: Bool) throws(SpoolError)
    -> OwnedFile
  {
    do throws(SpoolError) {
      let file = try system.create(
        root, path, O_WRONLY | O_EXCL | O_NOFOLLOW, mode: isForeign ? 0o640 : 0o600)
      try file.write(finished(text), at: 0)
      return file
    } catch {
      try? system.unlink(root, path)
      throw error.ofSpace(for: job.display)
    }
  }

  /// Moves a job from `tmp/` to `directory` without replacing another.
  /// - Parameter directory: where it goes, if it is there. `new` takes the place of a missing `urgent`.
  /// - Returns: where it is: with the name `name`, or with a number where that was taken.
  func enter(_ temporary: Path, as name: JobName, into directory: Directory, isForeign: Bool) throws(SpoolError)
    -> (name: JobName, directory: Directory)
  {
    var directory = directory
    var isProvided = false
    var target = name
    var attempt = 1
    while true {
      do throws(SpoolError) {
        try moveNoReplace(temporary, Path(directory, target.fileName))
        return (target, directory)
      } catch  where directory == .urgent && [.noSuchFileOrDirectory, .permissionDenied].contains(error.errno) {
        // If this user may drop into `new/` only, the text there says that it is urgent.
        if isForeign || isProvided { directory = .new } else { try provideUrgent() }
        isProvided = true
      } catch  where error.errno == .fileExists && attempt < Self.mostTries {
        attempt += 1
        target = isForeign ? name.numbered(Self.number(ofTry: attempt)) : try freeName(like: name)
      }
    }
  }

  /// The text of a job, for readers without a claim: `verify`, `status`.
  /// - Returns: nil where no regular file has the name.
  /// - Throws: ``SpoolError``.
  package func job(_ directory: Directory, _ name: FileName) throws(SpoolError) -> JobText? {
    guard let bytes = try jobContents(Path(directory, name)) else { return nil }
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
