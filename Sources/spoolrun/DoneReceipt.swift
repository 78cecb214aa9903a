internal import Spool

/// The receipt of a job in `done`, or in an archive.
struct DoneReceipt {
  let receipt: Journal.Receipt
  let verified: Journal.Verified
  let output: OutputPath

  /// Why a job has no receipt that can be used, for a person.
  struct Missing: Error {
    let text: String
    /// Whether it was there when `done` was listed.
    var hasMoved = false
  }

  /// - Throws: ``Missing``, ``SpoolError``.
  static func read(_ listed: ListedReceipt, _ spool: Spool) throws -> DoneReceipt {
    let job: JobText
    switch listed {
    case .named(let name), .listed(let name):
      guard JobName(name) != nil, let found = try spool.job(.done, name) else {
        var missing = Missing(text: "no such receipt in done")
        if case .listed = listed { missing.hasMoved = try spool.status(.done, name) == nil }
        throw missing
      }
      job = found
    case .archived(let receipt): job = receipt.bytes.withUnsafeBytes { JobText($0) }
    case .unreadable(let reason): throw Missing(text: reason)
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
