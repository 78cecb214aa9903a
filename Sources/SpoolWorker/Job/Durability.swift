internal import Spool

extension Claim {
  /// Makes the job and its journal durable.
  @WorkerLoop
  func makeDurable(_ durable: GroupCommit) async throws {
    do {
      try await durable(flush)
    } catch let error as SpoolError {
      try renew(after: error)
    }
  }
}

extension PartFile {
  /// Bytes of data above which the data is flushed alone, so that small jobs do not wait for it.
  private static let bulk: UInt64 = 8 << 20

  /// Makes the data durable.
  /// - Throws: ``LostWrites``.
  @WorkerLoop
  func makeDurable(_ durable: GroupCommit) async throws {
    let data = flush
    do {
      if length > Self.bulk {
        try await runBlocking { try data.run() }
      } else {
        try await durable(data)
      }
    } catch let error as SpoolError {
      throw LostWrites(error)
    }
  }
}
