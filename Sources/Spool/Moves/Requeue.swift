internal import SystemPackage

extension Spool {
  /// Puts a job into `new` again, from any directory, as a person would. It keeps its journal and its data.
  /// - Parameters:
  ///   - request: what it asks for from now on; nil for what it asked for before.
  /// - Throws: ``SpoolError``: ENOENT if it has moved since it was seen, EEXIST if another job has its name.
  package func requeue(_ place: JobPlace, as job: JobName, asking request: String? = nil) throws(SpoolError) {
    let target = JobPlace(directory: .new, name: job.fileName, inode: place.inode)
    // In `done`, a receipt under another request would promise what nobody has verified.
    let isMovedFirst = request == nil || place.directory == .done
    if isMovedFirst, place != target {
      try waitUntilUnlocked(place)
      if request == nil { try sayComplete(place) }
      try moveNoReplace(place.path, target.path)
    }
    guard let request else { return }
    _ = try edit(isMovedFirst ? target : place, to: .new) { old in
      Array(request.utf8) + JobLines.kept(of: old) { $0.isComplete && $0.journal != nil }
    }
  }
}
