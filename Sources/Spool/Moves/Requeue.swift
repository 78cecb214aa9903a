internal import Glibc
internal import SystemPackage

extension Spool {
  /// Puts a job into `new` again, from any directory, as a person would: through `hold`, so that nobody runs it while
  /// its text is changed. It keeps its journal and its data.
  /// - Parameters:
  ///   - request: what it asks for from now on; nil for what it asked for before.
  /// - Throws: ``SpoolError``: ENOENT if it has moved since it was seen, EEXIST if another job has its name.
  package func requeue(_ place: JobPlace, as job: JobName, asking request: String? = nil) throws(SpoolError) {
    let paused = try pause(place, as: job)
    if let request {
      try replaceText(of: paused) { finished(Array(request.utf8) + JobText.journalLines(of: $0)) }
    } else {
      try sayComplete(paused)
    }
    try moveNoReplace(paused.path, Path(.new, job.fileName))
  }

  /// Gives a job another text as a person would: by way of `hold`. A job that is paused already stays there; any other
  /// is in `new` then, or in `urgent` or `standing` where it belongs there.
  /// - Parameter change: gets the text as its worker left it.
  /// - Returns: where the job is then.
  /// - Throws: ``SpoolError``: ENOENT if it has moved since it was seen, EEXIST if another job has its name.
  func edit(_ place: JobPlace, as job: JobName, _ change: ([UInt8]) -> [UInt8]) throws(SpoolError) -> JobPlace {
    let paused = try pause(place, as: job)
    try replaceText(of: paused) { finished(change($0)) }
    if place.directory == .hold { return paused }
    let target = JobPlace(
      directory: place.directory == .urgent ? .urgent : try home(of: paused), name: job.fileName, inode: paused.inode)
    try moveNoReplace(paused.path, target.path)
    return target
  }

  private func pause(_ place: JobPlace, as job: JobName) throws(SpoolError) -> JobPlace {
    let paused = JobPlace(directory: .hold, name: job.fileName, inode: place.inode)
    if place.directory != .hold { try moveNoReplace(place.path, paused.path) }
    // The worker that ran it may still write its last line.
    try waitUntilUnlocked(paused)
    return paused
  }

  /// Replaces a held job's file by one with another text, durably.
  /// - Parameter modified: the time of modification that it gets, in seconds since the epoch; nil for now.
  /// - Throws: ``SpoolError``, ENOENT when it has moved: the new file would be a second job.
  func replaceText(of place: JobPlace, modified: Int64? = nil, by text: ([UInt8]) -> [UInt8]) throws(SpoolError) {
    let found = try system.status(root, place.path)
    let old = try jobContents(place.path) ?? []
    let temporary = temporary(place.name)
    var file = try system.create(root, temporary, O_WRONLY | O_EXCL | O_NOFOLLOW)
    do throws(SpoolError) {
      try file.write(text(old), at: 0)
      if let modified { try file.setTimes(to: modified) }
      try file.fsync()
      guard try system.status(root, place.path).isSameFile(as: found) else {
        throw SpoolError(call: .rename, path: place.display, errno: .noSuchFileOrDirectory)
      }
      try system.rename(root, temporary, place.path)
      file.path = place.path
    } catch {
      try? system.unlink(root, temporary)
      throw error
    }
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
