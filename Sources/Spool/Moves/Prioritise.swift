internal import Synchronization
internal import SystemPackage

/// Giving a job that waits another priority.
extension Spool {
  /// Makes `urgent/`, which spools of version 0.1 lack.
  /// - Throws: ``SpoolError``.
  package func provideUrgent() throws(SpoolError) { try provide(.urgent) }

  /// Makes a directory that spools of version 0.1 lack, and its name durable: what is put there is promised to last.
  func provide(_ directory: Directory) throws(SpoolError) {
    try provide(Path(directory))
  }

  func provide(_ directory: Path) throws(SpoolError) {
    do throws(SpoolError) { try system.makeDirectory(root, directory) } catch  where error.errno == .fileExists {
      // Whoever made it may have died before it was durable.
      if hasFlushedNames.load(ordering: .relaxed) { return }
    }
    try self.directory.fsync()
    hasFlushedNames.store(true, ordering: .relaxed)
  }

  /// Moves a waiting job to `urgent/`.
  /// - Throws: ``SpoolError``, ENOENT if the job has moved.
  func makeUrgent(_ place: JobPlace, _ name: FileName) throws(SpoolError) -> GestureOutcome {
    try provideUrgent()
    try sayComplete(place)
    return try move(place, to: .urgent, name)
  }

  /// Writes the priority into a job's text. It keeps its times: in `new/` its age, in `partial/` its next attempt. A
  /// job in `urgent/` goes to `new/`.
  /// - Throws: ``SpoolError``, ENOENT if the job has moved.
  func setPriority(_ priority: Priority, of place: JobPlace, _ name: FileName) throws(SpoolError) -> GestureOutcome {
    let target = JobPlace(
      directory: place.directory == .urgent ? .new : place.directory, name: name, inode: place.inode)
    guard let modified = try status(place.directory, place.name)?.modified else {
      throw SpoolError(call: .rename, path: place.display, errno: .noSuchFileOrDirectory)
    }
    return try moving(place, to: target) { () throws(SpoolError) in
      _ = try edit(place, to: target.directory, modified: modified) { JobText.settingPriority(priority, in: $0) }
    }
  }
}
