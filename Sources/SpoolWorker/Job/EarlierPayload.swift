internal import Spool

/// A payload that a job has published and that its text, which was changed before the job was done, does not ask for.
extension Commit {
  /// Takes it back, if the file at the output is still exactly what the journal says that this job verified.
  /// - Returns: false for any other file, and for the payload of a job that was done.
  /// - Throws: ``OutputRootProblem``, ``SpoolError``.
  func withdrawEarlierPayload() async throws -> Bool {
    guard let own = claim.text.journal.publication.own, try !wasDone(own),
      let (place, _) = try await verifiedOutput(own, own.digests.algorithms)
    else { return false }
    try claim.checkLock()
    try claim.checkOwnership()
    try place.withdraw(own.part)
    return true
  }

  /// No job is done without a receipt. Its data has its own name until the job is about to move to `done/`.
  private func wasDone(_ own: Journal.Verified) throws(SpoolError) -> Bool {
    let journal = claim.text.journal
    if journal.publication.published == nil { return false }
    let data = try claim.spool.status(.partial, claim.job.part)
    return data.map { $0.inode != own.part && $0.inode != journal.data.part } ?? true
  }
}
