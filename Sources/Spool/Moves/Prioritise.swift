internal import SystemPackage

/// Giving a job that waits another priority.
extension Spool {
  /// Makes `urgent/`, which spools of version 0.1 lack.
  /// - Throws: ``SpoolError``.
  package func provideUrgent() throws(SpoolError) { try provide(.urgent) }

  /// Makes a directory that spools of version 0.1 lack.
  func provide(_ directory: Directory) throws(SpoolError) {
    do throws(SpoolError) {
      try system.makeDirectory(root, Path(directory))
    } catch  where error.errno == .fileExists {
    }
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
    try replaceText(of: held, modified: modified) { JobText.settingPriority(priority, in: $0) }
    let target: Directory = place.directory == .urgent ? .new : place.directory
    let back = try move(held, to: target, name)
    guard case .moved(_, let to) = back else { return back }
    return .moved(from: place, to: to)
  }
}
