internal import Spool
internal import Transfer

/// Drops a job for each new entry of a standing order's list.
@WorkerLoop
struct OrderDrop {
  private let claim: Claim
  private let environment: JobEnvironment

  init(_ claim: Claim, _ environment: JobEnvironment) {
    self.claim = claim
    self.environment = environment
  }

  /// - Parameter lists: the URLs of the list.
  /// - Returns: the new entries, and for how many of them a job was dropped. The others have one already.
  /// - Throws: ``SpoolError``.
  func drop(_ entries: [FeedEntry], lists: [URLParts]) async throws -> (NewEntries, dropped: Int) {
    let (request, spool) = (claim.text.request, claim.spool)
    let checks = claim.text.journal.checks
    let known = checks.lastTime == nil ? nil : checks.seen
    // A list may have a hundred thousand entries.
    let (files, new) = await runBlocking {
      let files = entries.compactMap { OfferedFile($0, from: lists) }
      let new = NewEntries(keys: entries.map(\.key), files: files, order: request.standing, known: known)
      return (files, new)
    }
    let jobs = OrderJobs(request, as: claim.job, among: files, hosts: lists.map(\.host))
    let texts = new.files.map { file in
      let job = jobs.job(for: file) { exists($0, request) }
      return (text: (file.isInTheClear(besides: lists) ? "\(JobText.offeredLine)\n" : "") + job.text, name: job.name)
    }
    let dropped = try await runBlocking { [confirm = claim.confirmation] () throws(SpoolError) in
      try spool.dropMissing(texts, confirm: confirm)
    }
    return (new, dropped)
  }

  /// Whether there is a file at an output. If that cannot be seen, the job will.
  private func exists(_ output: String, _ request: JobRequest) -> Bool {
    guard let path = OutputPath(output) else { return false }
    do { return try environment.outputs(of: request, for: path).opened().status(path) != nil } catch { return false }
  }
}
