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
