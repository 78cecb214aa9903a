internal import Spool

/// The receipt of a job in `done`.
struct DoneReceipt {
  let receipt: Journal.Receipt
  let verified: Journal.Verified
  let output: OutputPath

  /// Why a job has no receipt that can be used, for a person.
  struct Missing: Error {
    let text: String
  }

  /// - Throws: ``Missing``, ``SpoolError``.
  static func read(_ name: FileName, _ spool: Spool) throws -> DoneReceipt {
    guard JobName(name) != nil, let job = try spool.job(.done, name) else {
      throw Missing(text: "no such receipt in done")
    }
    let publication = job.journal.publication
    guard let receipt = publication.receipt, let verified = publication.verified,
      let output = OutputPath(receipt.output)
    else {
      throw Missing(text: "no receipt: the job file says neither `verified:` nor `done:`")
    }
    return DoneReceipt(receipt: receipt, verified: verified, output: output)
  }
}
