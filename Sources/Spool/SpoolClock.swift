internal import Glibc
internal import Synchronization

/// The clock that sets the times of the spool's files. All times that workers compare with those of files are by this
/// clock, because hosts that share a spool may have different ones.
extension Spool {
  /// The time by that clock, as far as ``learnClock(host:)`` knows it. This host's clock before, and where all changes
  /// go through this kernel.
  package func now() -> Timestamp { .now() + clockOffset.load(ordering: .relaxed) }

  /// Learns how far that clock is ahead of this host's. Takes no call where all changes go through this kernel.
  /// - Parameter host: reads this host's clock.
  package func learnClock(host: () -> Timestamp = Timestamp.now) throws(SpoolError) {
    if kind.isLocal { return }
    let before = host()
    let (time, touched) = try fileSystemTimes()
    clockOffset.store(time.offset(from: before, to: host()), ordering: .relaxed)
    let elapsed = max(0, host().seconds - before.seconds)
    touchesNeedTime.store(touched.offset(from: time, to: time + elapsed) != 0, ordering: .relaxed)
  }

  /// Sets the times of an open file to now, by the clock that sets the times of new files. On some file systems, such
  /// as SSHFS, a touch sets them by this host's clock, which other hosts would take for an early or late heartbeat.
  func touch(_ file: borrowing some OpenFile & ~Copyable) throws(SpoolError) {
    if touchesNeedTime.load(ordering: .relaxed) {
      try file.setTimes(to: now().seconds)
    } else {
      try file.touch()
    }
  }

  private func fileSystemTimes() throws(SpoolError) -> (made: Timestamp, touched: Timestamp) {
    let file = try system.createNew(root, temporary(FileName(".clock")))
    defer { try? system.unlink(root, file.path) }
    let made = try file.status().modified
    try file.touch()
    return (Timestamp(seconds: made), Timestamp(seconds: try file.status().modified))
  }

  /// The time by the clock that sets the times of this file system's files, which may be another machine's.
  package func fileSystemTime() throws(SpoolError) -> Timestamp {
    let file = try system.createNew(root, temporary(FileName(".clock")))
    let time = try file.status().modified
    try system.unlink(root, file.path)
    return Timestamp(seconds: time)
  }
}

extension Timestamp {
  package static func now() -> Timestamp { Timestamp(seconds: Host.current.now()) }
}
