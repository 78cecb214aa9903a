/// What a worker may conclude from a lock, from a heartbeat, and from a process id.
extension Spool {
  /// Whether a lock that the worker `owner` let go of, and that this worker can take, proves that `owner` has ended, so
  /// that nobody has to wait for its lease.
  package func sharesLocks(with owner: WorkerName) -> Bool {
    guard owner.host == self.owner.host else { return false }
    // A claim that was made through a mount of this directory, such as by bindfs, says so.
    if kind.isLocal { return owner.seat?.isLocal ?? true }
    return owner.seat != nil && owner.seat == self.owner.seat
  }

  /// Until when a claim is without doubt another worker's, whose locks prove nothing here: its last heartbeat and the
  /// lease say so. Where times say nothing, this look counts as the first of those that tell whether it is frozen.
  /// - Parameter status: the claim's.
  /// - Returns: in seconds since the epoch; nil if only the attempt to take it over can tell.
  package func endOfLease(of claim: FileName, _ status: FileStatus, now: Timestamp) -> Int64? {
    guard let owner = ClaimName(claim)?.owner, !sharesLocks(with: owner),
      let end = endOfLease(since: status.modified, now: now)
    else { return nil }
    if kind.timesAreOfHosts { _ = silence(of: claim, status) }
    return end
  }

  /// Whether the worker `owner` would be found by its process id if it lived.
  package func sharesProcesses(with owner: WorkerName) -> Bool {
    if let seat = owner.seat { return seat == self.owner.seat }
    return kind.isLocal && owner.host == self.owner.host
  }
}
