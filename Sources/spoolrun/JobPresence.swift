internal import Spool
internal import SpoolWorker

/// Whether a spool has a job already, for `spoolrun add --new`.
struct JobPresence {
  let spool: Spool

  struct Finding {
    /// The name of the job.
    let job: FileName
    /// Where it is, safe for a terminal.
    let place: String
    /// Whether it has one of the URLs and the same output. Else it has the same name, and may be another one.
    let isSame: Bool

    init(_ place: JobPlace, isSame: Bool) { (job, self.place, self.isSame) = (place.job, place.display, isSame) }
    init(_ receipt: ArchivedReceipt, in archive: String, isSame: Bool) {
      (job, place, self.isSame) = (receipt.name, archive, isSame)
    }
  }

  /// Looks for the name first, which is quick, and then reads the jobs in all states and the archives.
  /// - Throws: ``SpoolError``, EACCES for a user who may only drop jobs.
  func find(_ request: JobRequest, as name: JobName) throws(SpoolError) -> Finding? {
    if let (place, text) = try spool.job(named: name) {
      return Finding(place, isSame: text.map { Self.isSame(request, $0.request) } == true)
    }
    if let found = try spool.firstJob(where: { Self.isSame(request, $0.request) }) {
      return Finding(found.place, isSame: true)
    }
    return try findArchived(request, as: name)
  }

  private func findArchived(_ request: JobRequest, as name: JobName) throws(SpoolError) -> Finding? {
    let sources = (request.urls.map(\.text) + (request.resolve.map { [$0.text] } ?? [])).map { Array($0.utf8) }
    let archive = try ArchiveStream(spool)
    while let receipt = try archive.next() {
      // Reading what it asked for takes most of the time.
      guard receipt.name == name.fileName || sources.contains(where: receipt.bytes.contains) else { continue }
      let isSame = Self.isSame(request, receipt.request)
      if isSame || receipt.name == name.fileName { return Finding(receipt, in: archive.place, isSame: isSame) }
    }
    return nil
  }

  /// Whether two requests are for the same job: they have a URL or the text for the hook `resolve` in
  /// common, and the same output.
  static func isSame(_ left: JobRequest, _ right: JobRequest) -> Bool {
    !Set(keys(of: left)).isDisjoint(with: keys(of: right))
  }

  /// For each URL, and for the text of `resolve:`, bytes that any other request for the same job has, too.
  static func keys(of request: JobRequest) -> [[UInt8]] {
    let place = JobPlan.rootAndOutput(of: request)?.text ?? ""
    let sources = request.urls.map(\.text) + (request.resolve.map { ["resolve: \($0.text)"] } ?? [])
    return sources.map { Array("\($0)\n\(place)".utf8) }
  }
}
