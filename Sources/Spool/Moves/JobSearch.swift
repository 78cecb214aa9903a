internal import SystemPackage

/// A job that a search found.
package struct FoundJob: Sendable {
  /// Where it was when it was read.
  package let place: JobPlace
  /// Its text with its journal.
  package let text: JobText
}

/// Finding jobs by their names in any state, and by what they ask for.
extension Spool {
  /// Where the job or standing order of this name is, whatever its state; nil where there is none. Claims count by
  /// their job's name.
  /// - Throws: ``SpoolError``, EACCES for a user who may only drop.
  package func place(of name: JobName) throws(SpoolError) -> JobPlace? {
    // The most likely places first, which need no directory to be read. A job that moves meanwhile is found by one
    // of the two looks behind; one that has moved several times may have ended during the last of them.
    for directories in [
      [.done, .new, .urgent, .partial, .failed, .hold, .standing], Self.jobDirectories + [.standing],
      [.standing] + Self.jobDirectories.reversed(), [.partial, .failed, .done],
    ] {
      if let place = try places(of: name.fileName, in: directories).first { return place }
    }
    return nil
  }

  /// The job of this name, whatever its state; nil where there is none.
  /// - Returns: its text as well, unless it is no regular file, or this user may not read it.
  /// - Throws: ``SpoolError``, EACCES for a user who may only drop.
  package func job(named name: JobName) throws(SpoolError) -> (place: JobPlace, text: JobText?)? {
    var last: JobPlace?
    while let place = try place(of: name) {
      if let found = try read(place.directory, place.name) { return (found.place, found.text) }
      // Otherwise it has moved since it was seen.
      if place == last { return (place, nil) }
      last = place
    }
    return nil
  }

  /// `name`, or `NAME~2` and so on where a job has it in any state.
  /// - Throws: ``SpoolError``.
  package func nameInNoState(like name: JobName) throws(SpoolError) -> JobName {
    try place(of: name) == nil ? name : freeName(like: name)
  }

  /// Reads all jobs, as ``firstJob(in:limit:where:)`` does.
  /// - Throws: ``SpoolError``.
  package func forEachJob(in directories: [Directory]? = nil, _ body: (JobText) -> Void) throws(SpoolError) {
    _ = try firstJob(in: directories) { text in
      body(text)
      return false
    }
  }

  /// The first job for which `matches` is true. Reads the jobs one after the other, in the order in which a job moves,
  /// so a job that moves on meanwhile is seen twice rather than not at all. Files that this user may not read are left
  /// out.
  /// - Parameters:
  ///   - directories: where to look; nil for all states.
  ///   - limit: the maximum number of files to read.
  ///   - own: the name of a file that is not read.
  /// - Throws: ``SpoolError``.
  package func firstJob(
    in directories: [Directory]? = nil, limit: Int = .max, besides own: FileName? = nil,
    where matches: (JobText) -> Bool
  ) throws(SpoolError) -> FoundJob? {
    var left = limit
    for directory in directories ?? Self.jobDirectories {
      let stream = try stream(directory)
      while left > 0, let name = try stream.next() {
        if name.isIgnored || name.isData || name == own { continue }
        left -= 1
        if let found = try read(directory, name), matches(found.text) { return found }
      }
    }
    return nil
  }

  /// The bytes of a job's file; nil where there is none, or this user may not read it.
  /// - Throws: ``SpoolError``.
  package func readableContents(_ path: Path) throws(SpoolError) -> [UInt8]? {
    do throws(SpoolError) { return try jobContents(path) } catch  where error.isUnreadable { return nil }
  }

  /// - Returns: nil where no regular file has the name, or this user may not read it.
  func read(_ directory: Directory, _ name: FileName) throws(SpoolError) -> FoundJob? {
    do throws(SpoolError) {
      guard let status = try status(directory, name), status.isRegular, let text = try job(directory, name) else {
        return nil
      }
      return FoundJob(place: JobPlace(directory: directory, name: name, inode: status.inode), text: text)
    } catch  where error.isUnreadable {
      return nil
    }
  }
}
