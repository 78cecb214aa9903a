internal import Spool

/// A commit that a crash interrupted: the journal has `verified:`, and the inode that it names is still the data, or
/// already the output.
extension Commit {
  /// Completes it.
  /// - Returns: the payload's size and digests; nil if there was no such commit.
  /// - Throws: a mismatch if the inode's content has changed; what ``publish(_:unproven:)`` throws.
  func finishInterrupted() async throws -> Mark? {
    let journal = claim.text.journal
    guard let verified = journal.publication.verified, isOfPlan else { return nil }
    // Data that still has a second name would be taken for another job's.
    let root = try outputs.opened()
    try root.removeTemporaries(beside: plan.output, of: [verified.part] + (journal.data.part.map { [$0] } ?? []))
    if let (place, mark) = try await verifiedOutput(verified, digests(verified)) {
      try await sync(place)
      try await finish(mark, existing: false, unproven: verified.unproven, mayHaveReceipt: true)
      return mark
    }
    // A second fsync of this inode would not bring back what the failed one lost.
    if journal.data.lostWrites { return nil }
    return try await publishVerified(verified, root)
  }

  private func digests(_ verified: Journal.Verified) -> Set<DigestAlgorithm> {
    plan.request.computedDigests.union(verified.digests.algorithms)
  }

  /// The file at the output, if it is what was verified.
  /// - Parameter digests: those to compute, at least the verified ones.
  /// - Returns: its place, its size and digests; nil for any other file.
  func verifiedOutput(_ verified: Journal.Verified, _ digests: Set<DigestAlgorithm>) async throws -> (
    OutputPlace, Mark
  )? {
    guard let status = try outputs.opened().status(plan.output), status.isRegular, status.inode == verified.part,
      status.size == verified.size
    else { return nil }
    // Another file may have the same inode number, for example on another file system, or somebody may have changed
    // this one. So the whole file is read; it is rarely needed.
    let place = try outputs.place(plan.output, plan.request.mode)
    let existing = try place.openExisting()
    let mark = try await runBlocking { [reading = existing.reading(digests)] in try reading.run() }
    guard existing.status.inode == verified.part, verified.expectation.mismatch(mark) == nil else { return nil }
    return (place, mark)
  }

  /// - Returns: nil unless the data is the verified inode.
  private func publishVerified(_ verified: Journal.Verified, _ root: OutputRoot) async throws -> Mark? {
    guard var part = try PartFile.open(claim.job, in: spool, own: verified.part, removeTemporary: { _ in }),
      part.inode == verified.part, part.length == verified.size
    else { return nil }
    try checkRoom()
    // Where flock(2) does not exclude other hosts, another file may have this inode number by now. So the whole file is
    // read here, too.
    let mark = try await runBlocking {
      [reading = part.reading(from: .zero(digests(verified)), to: part.length)] in
      try reading.run()
    }
    if let mismatch = verified.expectation.mismatch(mark) {
      // Somebody has changed it by its final name, and has it now.
      if try root.status(plan.output)?.inode == verified.part { return nil }
      try part.setAside(claim.job)
      account.hasSetAside = true
      throw Failure(mismatch, reason: "the data is not what was verified")
    }
    if part.isShared {
      // A hook has moved the payload, which is somebody else's now.
      let copy = part.rebuilding(to: part.length, owner: claim.job)
      part = part.replaced(by: try await runBlocking { () throws(SpoolError) in try copy.run() })
    }
    part.adopt(mark)
    try await publish(part, unproven: verified.unproven)
    return mark
  }
}
