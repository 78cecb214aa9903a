internal import Glibc
internal import SystemPackage

package struct Drops {
  let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  /// Drops a job as every tool should: writes it whole in `tmp/`, makes it durable, and moves it to `new/` without
  /// replacing another job.
  /// - Parameter priority: a job of high priority goes to `urgent/`, if this user may drop there.
  /// - Returns: where the job is: with the name `name`, or with `~2`, `~3`, … where that was taken.
  /// - Throws: ``SpoolError``; nothing is left of the job then, unless a worker has taken it already: its last flush
  ///   may fail. ENOTSUP: see ``WorkerFiles/objector()``.
  package func drop(_ text: String, as name: JobName, _ priority: Priority? = nil) throws(SpoolError) -> (
    name: JobName, directory: Directory
  ) { try put(text, as: name, into: Directory(forDropsOf: priority), isForeign: isForeignDrop()) }

  /// Puts a standing order into `standing`, which is made where there is none.
  /// - Returns: the name that it got: `name`, or with `~2`, `~3`, … where a job or an order has it.
  /// - Throws: ``SpoolError``; nothing is left of the order then.
  package func subscribe(_ text: String, as name: JobName) throws(SpoolError) -> JobName {
    try spool.provide(Path(.standing))
    return try put(text, as: JobSearch(spool).nameInNoState(like: name), into: .standing, isForeign: false).name
  }

  private func put(_ text: String, as name: JobName, into directory: Directory, isForeign: Bool) throws(SpoolError)
    -> (name: JobName, directory: Directory)
  {
    let bytes = Array(text.utf8)
    if let objector = try WorkerFiles(spool).objector() { try WorkerFiles.refuse(bytes, as: name, for: objector) }
    var file = try temporaryDrop(of: bytes, for: name, at: spool.temporary(name.fileName), isForeign: isForeign)
    let status = try file.status()
    do throws(SpoolError) {
      try file.fsync()
      let target = try enter(file.path, as: name, into: directory, isForeign: isForeign)
      file.path = Path(target.directory, target.name.fileName)
      if isForeign {
        // A user who may only drop cannot open the directory to sync it.
        try file.syncFileSystem()
      } else {
        try spool.flush(target.directory).run()
      }
      return target
    } catch {
      // Also out of `new`: a caller that is told of an error drops the job again.
      _ = try? spool.remove(file.path, of: status)
      throw error.ofSpace(for: name.display)
    }
  }

  /// Whether the caller drops into another user's spool (spool.5, SEVERAL USERS).
  func isForeignDrop() throws(SpoolError) -> Bool {
    let directory = try spool.system.status(spool.root, Path(.tmp))
    return directory.owner != geteuid() && directory.permissions & 0o2000 != 0
  }

  /// Writes a job in `tmp/`. In another user's spool the file gets the group of its directory, which is that user's
  /// own.
  /// - Parameter path: a new name that cannot be guessed.
  func temporaryDrop(of text: [UInt8], for job: JobName, at path: Path, isForeign: Bool) throws(SpoolError) -> OwnedFile
  {
    do throws(SpoolError) {
      let file = try spool.system.createNew(spool.root, path, mode: isForeign ? 0o640 : 0o600)
      try file.write(JobText.finished(text, on: spool.kind), at: 0)
      return file
    } catch {
      try? spool.system.unlink(spool.root, path)
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
        try spool.moveNoReplace(temporary, Path(directory, target.fileName))
        return (target, directory)
      } catch  where directory == .urgent && [.noSuchFileOrDirectory, .permissionDenied].contains(error.errno) {
        // If this user may drop into `new/` only, the text there says that it is urgent.
        if isForeign || isProvided { directory = .new } else { try spool.provide(Path(.urgent)) }
        isProvided = true
      } catch  where error.errno == .fileExists && attempt < JobSearch.mostTries {
        attempt += 1
        target = isForeign ? name.numbered(JobSearch.number(ofTry: attempt)) : try JobSearch(spool).freeName(like: name)
      }
    }
  }

  /// Keeps commands that look whether the spool has a job, and drop it if not, from dropping it twice: `body` runs
  /// while this process has the lock (flock(2)) of the directory `tmp`. There is no such lock for a user who may only
  /// drop, nor between hosts.
  /// - Parameter limit: milliseconds to wait for other commands; nil for as long as it takes. After that, `body` runs
  ///   without the lock.
  /// - Parameter wait: called every 20 ms meanwhile.
  /// - Throws: ``SpoolError``, and what `body` throws.
  package func alone<Result>(
    within limit: Int? = 5000, wait: () -> Void = {}, _ body: () throws -> Result
  ) throws -> Result {
    let lock = try lockOfDrops(within: limit, wait)
    defer { withExtendedLifetime(lock) {} }
    return try body()
  }

  /// - Returns: the directory with its lock; nil if this user may not open it.
  private func lockOfDrops(within limit: Int?, _ wait: () -> Void) throws(SpoolError) -> SharedFile? {
    do throws(SpoolError) {
      var file = try spool.system.open(spool.root, Path(.tmp), O_RDONLY | O_DIRECTORY)
      _ = try file.lock(within: limit, every: 20, wait: wait)
      return file.shared()
    } catch  where error.call == .open && error.errno == .permissionDenied {
      return nil
    }
  }
}
