internal import Glibc
internal import Synchronization
internal import SystemPackage

/// How long a claim is its owner's without a heartbeat. All workers of a spool have to agree on it, so it is written
/// into the spool.
extension Spool {
  /// Seconds without a heartbeat after which another host's claim may be taken over.
  package var lease: Int64 { agreedLease.load(ordering: .relaxed) }

  /// Whether a lease has passed without a heartbeat.
  /// - Parameter beat: the last one, in seconds since the epoch.
  package func isLeaseOver(since beat: Int64, now: Timestamp) -> Bool { beat + lease <= now.seconds }

  /// Milliseconds between two heartbeats of a claim.
  package var heartbeatInterval: Int64 { min(30_000, lease * 500) }

  /// Agrees with the other workers of the spool on the lease: the first one writes it down.
  ///
  /// Where all workers run under one kernel, it is only written if somebody asks for one.
  /// - Parameter wanted: in seconds; nil for that of the others.
  /// - Throws: ``Defect`` if the others have another one; ``SpoolError``.
  package func agreeOnLease(_ wanted: Int64?) throws {
    var noted = try readLease()
    if noted == nil, wanted != nil || !kind.isLocal {
      try writeLease(wanted ?? Self.standardLease)
      noted = try readLease()
    }
    let lease = noted ?? Self.standardLease
    if let wanted, wanted != lease {
      throw Defect(
        line: nil,
        reason: "its workers have agreed on a lease of \(lease) s: use --lease \(lease)s, or stop all of its workers on"
          + " all hosts, remove its file lease, and start them with another")
    }
    agreedLease.store(lease, ordering: .relaxed)
  }

  /// Another worker may be first.
  private func writeLease(_ seconds: Int64) throws(SpoolError) {
    let temporary = temporary(FileName("lease"))
    // Users who may drop jobs may read it, as far as the umask allows.
    let file = try system.create(root, temporary, O_WRONLY | O_EXCL | O_NOFOLLOW, mode: 0o644)
    defer { try? system.unlink(root, temporary) }
    try file.write(Array("\(seconds)\n".utf8), at: 0)
    try file.fsync()
    do throws(SpoolError) {
      try moveNoReplace(temporary, Self.leasePath)
    } catch  where error.errno == .fileExists {
    }
  }
}

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

/// Shows other processes of this host that a worker watches the spool, until it is let go: a shared lock on the
/// directory `new` (flock(2)). It is a hint, because no lock need be seen by another host, or exist at all: then a
/// command that could leave a job to that worker runs one of its own beside it.
package struct WatchSign: Sendable {
  private let file: SharedFile

  fileprivate init(_ file: SharedFile) { self.file = file }
}

extension Spool {
  /// - Returns: nil if somebody asks at this moment; try again later.
  /// - Throws: ``SpoolError``, also where the file system has no such locks.
  package func giveWatchSign() throws(SpoolError) -> WatchSign? {
    var file = try system.open(root, Path(.new), O_RDONLY | O_DIRECTORY)
    guard try file.lockShared() else { return nil }
    return WatchSign(file.shared())
  }

  /// Whether a worker of this host watches the spool and will see what is dropped.
  package func isWatched() -> Bool {
    do throws(SpoolError) {
      var file = try system.open(root, Path(.new), O_RDONLY | O_DIRECTORY)
      return try !file.lock()
    } catch {
      // Nobody can have given a sign here.
      return false
    }
  }
}
