internal import SystemPackage

/// The jobs that a spool has, in any state, for one who asks for many: the directories are read once, so that a name
/// that no job has costs nothing.
///
/// Names are kept as hashes of 64 bits. Two of one hash do no harm: the spool is asked again.
package struct KnownJobs {
  private let spool: Spool
  private var names: Set<Int> = []

  /// - Throws: ``SpoolError``, EACCES where the caller may only drop.
  package init(_ spool: Spool) throws(SpoolError) {
    self.spool = spool
    // In the order in which a job moves, and in reverse: a job that moves meanwhile is seen by one of the two.
    for directory in Spool.jobDirectories + Spool.jobDirectories.reversed().dropFirst() {
      let stream = try spool.stream(directory)
      while let name = try stream.next() {
        if name.isIgnored { continue }
        names.insert(name.hashValue)
        // With its owner's suffix, as in `cur/`.
        if let claim = ClaimName(name), claim.owner != nil { names.insert(claim.job.fileName.hashValue) }
      }
    }
  }

  /// The job of this name; nil where there is none.
  /// - Throws: ``SpoolError``.
  package func job(named name: JobName) throws(SpoolError) -> (place: JobPlace, text: JobText?)? {
    names.contains(name.fileName.hashValue) ? try spool.job(named: name) : nil
  }

  /// Takes note of a job that was dropped since.
  package mutating func insert(_ name: JobName) { names.insert(name.fileName.hashValue) }
}
