internal import Spool

/// The job that has published the file at a claimed job's output, as far as receipts show.
@WorkerLoop
struct OutputPublisher {
  let claim: Claim
  let plan: JobPlan
  /// The output root, as receipts name it.
  let root: String?

  /// The failure of a job whose output is another job's file.
  /// - Parameter mismatch: in what the file differs from what the job declares.
  func outputExists(_ mismatch: Mismatch? = nil) async -> Failure {
    let whose = (try? await find()).map { ", as the output of \($0.place.display)" } ?? ""
    return Failure(
      .outputExists, "\(escaped(plan.output.text)) exists already\(whose): remove it, or set `overwrite: yes`",
      expected: mismatch?.expected, found: mismatch?.found)
  }

  /// The payload of a job with the same URLs and header lines that was still running when this one was dropped. To
  /// fetch it again could only give the same file, or a newer one that the dropper did not ask for.
  func sharedPayload() async throws -> Journal.Verified? {
    guard let dropped = claim.dropped, let other = try await find(),
      let published = other.text.journal.publication.receiptTime, dropped <= published,
      other.text.request.urls.map(\.text) == plan.request.urls.map(\.text),
      other.text.request.resolve?.text == plan.request.resolve?.text,
      // Without its credentials, the job might not get the file.
      other.text.request.headers == claim.text.request.headers
    else { return nil }
    return other.text.journal.publication.verified
  }

  private func find() async throws -> FoundJob? {
    try await runBlocking { [spool = claim.spool, output = plan.output.text, root, job = claim.job] in
      try spool.publisher(of: output, in: root, like: job)
    }
  }
}
