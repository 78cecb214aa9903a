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
    let (made, touched) = try clockOffsets(host: host)
    clockOffset.store(made, ordering: .relaxed)
    clockChanges.withLock { $0.noteOffset(made) }
    touchesNeedTime.store(touched != 0, ordering: .relaxed)
  }

  /// - Returns: how far that clock is ahead of this host's, and what a touch sets ahead of that clock.
  func clockOffsets(tries: Int = 3, host: () -> Timestamp = Timestamp.now) throws(SpoolError) -> (
    made: Int64, touched: Int64
  ) {
    let before = host()
    let (time, touched) = try fileSystemTimes()
    let now = host()
    // Where the host slept or the server hung meanwhile, the difference is not that of the clocks.
    if tries > 1, now.seconds - before.seconds > 2 { return try clockOffsets(tries: tries - 1, host: host) }
    return (
      time.offset(from: before, to: now), touched.offset(from: time, to: time + max(0, now.seconds - before.seconds))
    )
  }

  /// When the clock was last set, as far as this process has seen it, in milliseconds of the host's clock that never
  /// jumps.
  package var clockSetAt: Int64 { changesOfClock().setAt }

  /// The same, or when the machine last woke up.
  package var clockMovedAt: Int64 {
    let changes = changesOfClock()
    return max(changes.setAt, changes.wokeAt)
  }

  private func changesOfClock() -> ClockChanges {
    clockChanges.withLock { changes in
      changes.look()
      return changes
    }
  }

  /// A time of this clock in milliseconds of the host's clock that never jumps. One from before the clock was set
  /// counts as that moment, because how long before it was is not known.
  package func moment(_ time: Timestamp) -> Int64 {
    max(clockSetAt, Host.current.milliseconds() + (time.seconds - now().seconds) * 1000)
  }

  /// Sets the times of an open file to now, by the clock that sets the times of new files. On some file systems, such
  /// as SSHFS, a touch sets them by this host's clock, which other hosts would take for an early or late heartbeat.
  func touch(_ file: borrowing some OpenFile & ~Copyable) throws(SpoolError) {
    if touchesNeedTime.load(ordering: .relaxed) { try file.setTimes(to: now().seconds) } else { try file.touch() }
  }

  private func fileSystemTimes(touches: Bool = true) throws(SpoolError) -> (made: Timestamp, touched: Timestamp) {
    let file = try system.createNew(root, temporary(FileName(".clock")))
    defer { try? system.unlink(root, file.path) }
    let made = try file.status().modified
    if touches { try file.touch() }
    return (Timestamp(seconds: made), Timestamp(seconds: try file.status().modified))
  }

  /// The time by the clock that sets the times of this file system's files, which may be another machine's.
  package func fileSystemTime() throws(SpoolError) -> Timestamp { try fileSystemTimes(touches: false).made }
}

extension Timestamp { package static func now() -> Timestamp { Timestamp(seconds: Host.current.now()) } }
