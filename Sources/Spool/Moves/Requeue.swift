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
    _ = try edit(isMovedFirst ? target : place, to: .new) { Array(request.utf8) + JobText.journalLines(of: $0) }
  }
}

extension JobText {
  /// The complete lines of a job's text that workers have written.
  static func journalLines(of bytes: [UInt8]) -> [UInt8] {
    let heads = JournalKey.allCases.map { Array("\($0.rawValue): ".utf8) }
    var kept: [UInt8] = []
    var start = 0
    while let end = bytes[start...].firstIndex(of: 0x0A) {
      let line = bytes[start...end]
      if heads.contains(where: { line.starts(with: $0) }) { kept += line }
      start = end + 1
    }
    return kept
  }
}
