internal import Spool
internal import SystemPackage

/// What a spool has of the jobs of a list. Its directories and its archives are read once; with `--new`, so are all its
/// jobs.
struct ListPresence {
  /// nil where the caller may only drop.
  private var jobs: KnownJobs?
  /// Hashes of ``JobPresence/keys(of:)`` of all jobs and receipts; nil without `--new`.
  private var keys: Set<Int>?
  /// Hashes of the names of archived receipts.
  private var archivedNames: Set<Int> = []
  /// Hashes of such a name and one of its ``JobPresence/keys(of:)``.
  private var archivedJobs: Set<Int> = []

  enum Finding {
    /// It can be dropped under this name.
    case free(JobName)
    /// The spool has this job.
    case known
    /// Another job has its name, and `--new` asks for no other one.
    case taken
  }

  /// - Throws: ``SpoolError``; EACCES for a user who may only drop, if `ifNew`.
  init(_ spool: Spool, ifNew: Bool) throws(SpoolError) {
    if ifNew {
      var keys: Set<Int> = []
      try spool.forEachJob { text in for key in JobPresence.keys(of: text.request) { keys.insert(key.hashValue) } }
      self.keys = keys
    }
    do throws(SpoolError) {
      jobs = try KnownJobs(spool)
      // Last: receipts may move there meanwhile.
      try readArchives(of: spool)
    } catch  where error.errno == .permissionDenied && !ifNew {
      Terminal.error("the spool cannot be read, so jobs that it has already are dropped again: \(error)")
    }
  }

  private mutating func readArchives(of spool: Spool) throws(SpoolError) {
    let archive = try ArchiveStream(spool)
    while let receipt = try archive.next() {
      archivedNames.insert(receipt.name.hashValue)
      for key in JobPresence.keys(of: receipt.request) {
        archivedJobs.insert(Self.hash(receipt.name, key))
        keys?.insert(key.hashValue)
      }
    }
  }

  private static func hash(_ name: FileName, _ key: [UInt8]) -> Int {
    var hasher = Hasher()
    hasher.combine(name)
    hasher.combine(key)
    return hasher.finalize()
  }

  private func isArchived(_ job: CheckedJob, as name: JobName) -> Bool {
    guard archivedNames.contains(name.fileName.hashValue) else { return false }
    return JobPresence.keys(of: job.request).contains { archivedJobs.contains(Self.hash(name.fileName, $0)) }
  }

  /// Whether the spool has the job under its very name.
  func has(_ job: CheckedJob) throws(SpoolError) -> Bool {
    if isArchived(job, as: job.name) { return true }
    return try jobs?.job(named: job.name).map { Self.isSame(job, $0) } ?? false
  }

  /// What to do with a job. One that can be dropped counts as present from now on.
  mutating func finding(of job: CheckedJob) throws(SpoolError) -> Finding {
    if let keys, JobPresence.keys(of: job.request).contains(where: { keys.contains($0.hashValue) }) { return .known }
    if keys != nil, archivedNames.contains(job.name.fileName.hashValue) { return .taken }
    var name = job.name
    var number = 1
    if isArchived(job, as: name) { return .known }
    while let known = try jobs?.job(named: name) {
      if Self.isSame(job, known) { return .known }
      if keys != nil { return .taken }
      number += 1
      name = job.name.numbered(number)
      if isArchived(job, as: name) { return .known }
    }
    if number > 1 { jobs?.insert(name) }
    return .free(name)
  }

  private static func isSame(_ job: CheckedJob, _ known: KnownJob) -> Bool {
    // A list that is added again is found as it was dropped; reading each job twice would take most of the time.
    known.isUntouched(job.text) || known.request.map { JobPresence.isSame(job.request, $0) } ?? false
  }
}
