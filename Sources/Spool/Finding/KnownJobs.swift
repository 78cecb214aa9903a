/// The jobs and standing orders that a spool has, in any state, for one who asks for many: the directories are read
/// once, so that a name that no job has costs nothing, and any other one look where it was.
///
/// Names are kept as hashes of 64 bits. Two of one hash do no harm: the spool is asked again.
package struct KnownJobs {
  private let spool: Spool
  private var directories: [Int: Directory] = [:]

  /// - Throws: ``SpoolError``, EACCES where the caller may only drop.
  package init(_ spool: Spool) throws(SpoolError) {
    self.spool = spool
    // Against the order in which a job moves, and in it: a job that moves meanwhile is seen by one of the two. Of two
    // jobs of one name, the one that is done counts, as for ``JobSearch/place(of:)``.
    let once = JobSearch.directories.reversed() + [.standing]
    for directory in once + JobSearch.directories.dropFirst() + [.standing] {
      let stream = try spool.stream(directory)
      while let name = try stream.next() {
        if name.isIgnored { continue }
        note(name, in: directory)
        // With its owner's suffix, as in `cur/`.
        if let claim = ClaimName(name), claim.owner != nil { note(claim.job.fileName, in: directory) }
      }
    }
  }

  private mutating func note(_ name: FileName, in directory: Directory) {
    let hash = name.hashValue
    if directories[hash] == nil { directories[hash] = directory }
  }

  package func job(named name: JobName) throws(SpoolError) -> KnownJob? {
    guard let directory = directories[name.fileName.hashValue] else { return nil }
    if let bytes = try spool.readableContents(Path(directory, name.fileName)) { return .whereItWas(bytes) }
    // It has moved, or is claimed and so has its owner's name as well.
    if let found = try JobSearch(spool).job(named: name) { return .found(found.text) }
    var archived: KnownJob?
    try Archive(spool).eachPath(named: [name.fileName]) { (path, _) throws(SpoolError) in
      if let bytes = try spool.readableContents(path) { archived = .whereItWas(bytes) }
    }
    return archived
  }

  package mutating func insert(_ name: JobName) { note(name.fileName, in: .new) }
}

package enum KnownJob {
  /// Where its name was seen, or in the archive: the bytes of its file.
  case whereItWas([UInt8])
  /// Elsewhere; nil where it is no regular file, or this user may not read it.
  case found(JobText?)

  /// Whether it is still as it was dropped, with this text.
  package func isUntouched(_ text: [UInt8]) -> Bool {
    if case .whereItWas(let bytes) = self { bytes == text } else { false }
  }

  /// What it asks for; nil where that cannot be read.
  package var request: JobRequest? {
    switch self {
    case .whereItWas(let bytes): bytes.withUnsafeBytes { JobText($0) }.request
    case .found(let text): text?.request
    }
  }
}
