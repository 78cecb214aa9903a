internal import Spool

/// Why a running attempt is stopped.
enum JobStop: Error {
  /// The worker was told to stop.
  case shutdown
  /// The download was stopped. Only its attempt knows why.
  case cancelled
  /// The claim is no longer this worker's.
  case notOurs(Claim.Ownership)
  /// Less than `--min-free` would be left, so the job waits for space.
  case noSpace(String)
  /// The output root is missing or must not be published to, so the job waits for it.
  case noOutput(String)
  /// A job of high priority needs the slot of this one, which is of low priority.
  case outranked
  /// Another job has published a file at the output, and has still to deliver it.
  case outputAwaited(AwaitedOutput)
  case failed(SpoolError)
}

extension Claim {
  /// - Throws: ``JobStop/notOurs(_:)`` if this worker slept too long: then a successor on another host has the lock,
  ///   and the job is no longer ours; ``SpoolError``.
  func checkLock() throws {
    guard try holdsLock() else { throw JobStop.notOurs(.takenOver) }
  }

  /// - Throws: ``JobStop/notOurs(_:)`` if the claim is not ours; ``SpoolError``.
  func checkOwnership() throws {
    let ownership = try self.ownership()
    guard ownership == .ours else { throw JobStop.notOurs(ownership) }
  }
}
