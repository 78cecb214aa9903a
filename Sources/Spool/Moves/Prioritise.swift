internal import SystemPackage

/// Giving a job that waits another priority.
extension Spool {
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
