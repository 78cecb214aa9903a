internal import Spool
internal import SpoolLists
internal import SpoolWorker
internal import SystemPackage

/// Whether a spool has a job already, for `spoolrun add --new`.
struct JobPresence {
  let spool: Spool

  struct Finding {
    let job: FileName
    /// Where it is, safe for a terminal.
    let place: String
    /// Whether it has one of the URLs and the same output. Else it has the same name, and may be another one.
    let isSame: Bool

    init(_ place: JobPlace, isSame: Bool) { (job, self.place, self.isSame) = (place.job, place.display, isSame) }
    init(_ receipt: JobFile, isSame: Bool) { (job, place, self.isSame) = (receipt.name, receipt.path.display, isSame) }
  }

  /// Looks for the name first, which is quick, and then reads the jobs in all states, and archived receipts.
  /// - Throws: ``SpoolError``, EACCES for a user who may only drop jobs.
  func find(_ request: JobRequest, as name: JobName) throws(SpoolError) -> Finding? {
    if let (place, text) = try JobSearch(spool).job(named: name) {
      return Finding(place, isSame: text.map { Self.isSame(request, $0.request) } == true)
    }
    if let found = try JobSearch(spool).firstJob(where: { Self.isSame(request, $0.text.request) }) {
      return Finding(found.place, isSame: true)
    }
    return try findArchived(request, as: name)
  }

  private func findArchived(_ request: JobRequest, as name: JobName) throws(SpoolError) -> Finding? {
    let sources = (request.urls.map(\.text) + (request.resolve.map { [$0.text] } ?? [])).map { Array($0.utf8) }
    var found: Finding?
    try JobSearch(spool).eachArchived { receipt in
      // Reading what it asked for takes most of the time.
      guard found == nil, receipt.name == name.fileName || sources.contains(where: receipt.bytes.contains) else {
        return
      }
      let isSame = Self.isSame(request, receipt.request)
      if isSame || receipt.name == name.fileName { found = Finding(receipt, isSame: isSame) }
    }
    return found
  }

  /// Whether two requests are for the same job: they have a URL or the text for the hook `resolve` in
  /// common, and the same output.
  static func isSame(_ left: JobRequest, _ right: JobRequest) -> Bool {
    !Set(keys(of: left)).isDisjoint(with: keys(of: right))
  }

  /// For each URL, and for the text of `resolve:`, bytes that any other request for the same job has, too. A standing
  /// order has none: it is no job.
  static func keys(of request: JobRequest) -> [[UInt8]] {
    if request.isStandingOrder { return [] }
    let place = JobPlan.rootAndOutput(of: request)?.text ?? ""
    let sources = request.urls.map(\.text) + (request.resolve.map { ["resolve: \($0.text)"] } ?? [])
    return sources.map { Array("\($0)\n\(place)".utf8) }
  }
}

extension Drops {
  /// Runs `body` while no other command looks and drops, however long that one takes. It may be stopped, so after three
  /// seconds a person is told.
  func aloneOrTold<Result>(_ body: () throws -> Result) throws -> Result {
    var tries = 0
    func wait() {
      tries += 1
      if tries == 150 { Terminal.error("waiting until another command has added its jobs", .info) }
    }
    return try alone(within: nil, wait: wait, body)
  }
}

/// What a spool has of the jobs of a list. Its directories are read once; with `--new`, so are all its
/// jobs.
struct ListPresence {
  /// nil where the caller may only drop.
  private var jobs: KnownJobs?
  /// ``JobPresence/keys(of:)`` of all jobs and receipts; nil without `--new`.
  private var keys: Set<Fingerprint>?
  private var archivedNames: Set<Fingerprint> = []
  /// Such a name and one of its ``JobPresence/keys(of:)``.
  private var archivedJobs: Set<Fingerprint> = []

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
      var keys: Set<Fingerprint> = []
      try JobSearch(spool).forEachJob { text in
        for key in JobPresence.keys(of: text.request) { keys.insert(Fingerprint(key)) }
      }
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
    try JobSearch(spool).eachArchived { receipt in
      archivedNames.insert(Fingerprint(receipt.name.bytes))
      for key in JobPresence.keys(of: receipt.request) {
        archivedJobs.insert(Self.print(receipt.name, key))
        keys?.insert(Fingerprint(key))
      }
    }
  }

  private static func print(_ name: FileName, _ key: [UInt8]) -> Fingerprint {
    // No name has a slash.
    Fingerprint(name.bytes + [0x2F] + key)
  }

  private func isArchived(_ job: CheckedJob, as name: JobName) -> Bool {
    guard archivedNames.contains(Fingerprint(name.fileName.bytes)) else { return false }
    return JobPresence.keys(of: job.request).contains { archivedJobs.contains(Self.print(name.fileName, $0)) }
  }

  /// What to do with a job. One that can be dropped counts as present from now on.
  mutating func finding(of job: CheckedJob) throws(SpoolError) -> Finding {
    if let keys, JobPresence.keys(of: job.request).contains(where: { keys.contains(Fingerprint($0)) }) { return .known }
    if keys != nil, archivedNames.contains(Fingerprint(job.name.fileName.bytes)) { return .taken }
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
