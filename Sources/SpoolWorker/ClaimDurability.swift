internal import Spool

extension Claim {
  /// Makes the job with its journal durable.
  @WorkerLoop
  func makeDurable(_ durable: GroupFlush) async throws {
    do {
      try await durable(flush)
    } catch is SpoolError {
      try renew()
    }
  }

  /// A failed fsync is never retried on its inode (fsync(2): the pages count as clean): the job goes into a new one, whose own failure counts.
  func renew() throws(SpoolError) {
    // The new file would be a second job if a person took the old one away.
    guard try standing() == .ours else { return }
    try replaceFile()
  }
}
