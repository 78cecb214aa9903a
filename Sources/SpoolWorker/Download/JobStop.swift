internal import Spool

/// Why a running attempt is ended from outside.
enum JobStop: Error {
  /// The worker was told to stop.
  case shutdown
  /// The claim is not this worker's any more.
  case lost(Claim.Ownership)
  /// Less than `--min-free` would be left: the job waits until there is space.
  case noSpace(String)
  /// The output root is missing, or is no place to publish to: the job waits until there is one.
  case noOutput(String)
  case failed(SpoolError)
}

extension Claim {
  /// - Throws: ``JobStop/lost(_:)`` where the claim is not ours; ``SpoolError``.
  func checkOwnership() throws {
    let ownership = try self.ownership()
    guard ownership == .ours else { throw JobStop.lost(ownership) }
  }
}
