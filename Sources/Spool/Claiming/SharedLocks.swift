/// What a worker may conclude from a free lock, and from a process id.
extension Spool {
  /// Whether a lock that the worker `owner` let go of, and that this worker can take, proves that `owner` has ended, so
  /// that nobody has to wait for its lease.
  /// - Parameter owner: `HOST.PID.TAG`.
  package func sharesLocks(with owner: String) -> Bool {
    guard owner.prefix(while: { $0 != "." }) == self.owner.host else { return false }
    let seat = WorkerSeat(ofOwner: owner)
    // A claim that was made through a mount of this directory, such as by bindfs, says so.
    if kind.isLocal { return seat?.isLocal ?? true }
    return seat != nil && seat == self.owner.seat
  }

  /// Whether the worker `owner` would be found by its process id if it lived.
  /// - Parameter owner: `HOST.PID.TAG`.
  package func sharesProcesses(with owner: String) -> Bool {
    if let seat = WorkerSeat(ofOwner: owner) { return seat == self.owner.seat }
    return kind.isLocal && owner.prefix { $0 != "." } == self.owner.host
  }
}
