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

  /// Moves a waiting job to `urgent/`: by way of `hold` where it has to say that it is complete.
  /// - Throws: ``SpoolError``, ENOENT if the job has moved.
  func makeUrgent(_ place: JobPlace, _ name: FileName) throws(SpoolError) -> GestureOutcome {
    try provideUrgent()
    if kind.leases == .both { return try move(place, to: .urgent, name) }
    let outcome = try move(place, to: .hold, name)
    guard case .moved(_, let held) = outcome else { return outcome }
    try sayComplete(held)
    return try putBack(held, from: place, to: .urgent, name)
  }

  /// - Parameter place: where the job was before it was held.
  private func putBack(_ held: JobPlace, from place: JobPlace, to directory: Directory, _ name: FileName)
    throws(SpoolError) -> GestureOutcome
  {
    let back = try move(held, to: directory, name)
    guard case .moved(_, let to) = back else { return back }
    return .moved(from: place, to: to)
  }

  /// Writes the priority into a job's text, by way of `hold`, so that nobody runs the job meanwhile. It keeps its
  /// times: in `new/` its age, and in `partial/` its next attempt. A job in `urgent/` goes to `new/`.
  /// - Throws: ``SpoolError``, ENOENT if the job has moved.
  func setPriority(_ priority: Priority, of place: JobPlace, _ name: FileName) throws(SpoolError) -> GestureOutcome {
    guard let modified = try status(place.directory, place.name)?.modified else {
      throw SpoolError(call: .rename, path: place.display, errno: .noSuchFileOrDirectory)
    }
    let outcome = try move(place, to: .hold, name)
    guard case .moved(_, let held) = outcome else { return outcome }
    try waitUntilUnlocked(held)
    try replaceText(of: held, modified: modified) { finished(JobText.settingPriority(priority, in: $0)) }
    return try putBack(held, from: place, to: place.directory == .urgent ? .new : place.directory, name)
  }
}
