internal import Spool

/// The job that has published the file at a claimed job's output, as far as receipts and journals show.
@WorkerLoop
struct OutputPublisher {
  let claim: Claim
  let plan: JobPlan
  /// The output root, as receipts name it.
  let root: String?

  /// Why the job cannot publish to its output, which is another file.
  /// - Parameter mismatch: in what the file differs from what the job declares.
  /// - Returns: ``JobStop/outputAwaited(_:)`` if the file may go when its job has delivered it; otherwise the failure.
  func conflict(_ mismatch: Mismatch? = nil) async -> any Error {
    // If nobody can be found, the output is taken all the same.
    let publisher = (try? await find()) ?? nil
    if let publisher, let awaited = try? awaited(publisher) { return JobStop.outputAwaited(awaited) }
    let whose = publisher.map { ", as the output of \($0.place.display)" } ?? ""
    return Failure(
      .outputExists, "\(escaped(plan.output.text)) exists already\(whose): remove it, or set `overwrite: yes`",
      expected: mismatch?.expected, found: mismatch?.found)
  }

  /// - Throws: ``JobStop/outputAwaited(_:)`` if a job has published the file and has still to deliver it;
  ///   ``SpoolError``.
  func waitForDelivery() async throws {
    guard let other = try await findUndelivered(), let awaited = try awaited(other) else { return }
    throw JobStop.outputAwaited(awaited)
  }

  /// nil if the job has delivered the file, or does not run until a person wants it to.
  private func awaited(_ other: FoundJob) throws(SpoolError) -> AwaitedOutput? {
    // Two that have published it, and find another file there, would wait for each other.
    guard other.text.journal.publication.awaitsDelivery, !claim.text.journal.publication.awaitsDelivery else {
      return nil
    }
    return try claim.spool.nextRun(of: other.place).map {
      AwaitedOutput(plan.output.text, of: other.place.job, now: claim.spool.now(), next: $0)
    }
  }

  /// The payload of a job with the same URLs and header lines that was still running when this one was dropped. To
  /// fetch it again could only give the same file, or a newer one that the dropper did not ask for.
  func sharedPayload() async throws -> Journal.Verified? {
    guard let known = claim.knownSince, let other = try await find() else { return nil }
    let publication = other.text.journal.publication
    // What is not delivered is not done.
    guard publication.awaitsDelivery || publication.receiptTime.map({ known <= $0 }) == true,
      other.text.request.urls.map(\.text.exact) == plan.request.urls.map(\.text.exact),
      other.text.request.resolve?.text.exact == plan.request.resolve?.text.exact,
      // Without its credentials, the job might not get the file.
      other.text.request.headers == claim.text.request.headers
    else { return nil }
    return publication.published
  }

  /// What waits for its delivery is later than what is done: it has replaced that.
  private func find() async throws -> FoundJob? {
    if let other = try await findUndelivered() { return other }
    return try await runBlocking { [spool = claim.spool, output = plan.output.text, root, job = claim.job] in
      try spool.publisher(of: output, in: root, like: job)
    }
  }

  private func findUndelivered() async throws -> FoundJob? {
    // Without the hook no job waits for its delivery longer than until its next attempt.
    guard try Hook.find(Hooks.Name.deliver.rawValue, in: claim.spool) != nil else { return nil }
    return try await runBlocking { [spool = claim.spool, output = plan.output.text, root, own = claim.fileName] in
      try spool.undelivered(output, in: root, besides: own)
    }
  }
}
