internal import Spool

extension Claim {
  /// Makes the job with its journal durable.
  @WorkerLoop
  func makeDurable(_ durable: GroupCommit) async throws {
    do {
      try await durable(flush)
    } catch let error as SpoolError {
      try renew(after: error)
    }
  }
}
