internal import Spool

/// How much of the data that a job left behind is to be trusted (protocol, invariant 4).
struct Recovery: Equatable {
  /// Cut the data to this length…
  var length: UInt64
  /// …and carry the checksum on from here.
  var from: Mark
  /// Copy it into a new inode first: writes to this one may still come, or were lost.
  var needsNewInode = false
  /// Write what is read again: its writes may have been lost unseen.
  var rewrites = false
  /// Read all before this mark as well, and start from 0 unless its checksum agrees: the file is another than the one journaled.
  var verifies: Mark?

  static let nothing = Recovery(length: 0, from: .zero)

  /// - Parameters:
  ///   - length: of the data file; `inode`: its own.
  ///   - host, boot: of this worker.
  ///   - isTakenOver: whoever wrote it last could not say how that ended.
  static func decide(
    length: UInt64, inode: UInt64, journal: Journal, host: String, boot: String, isTakenOver: Bool
  ) -> Recovery {
    let isSameHost = journal.attempts.lastStart.map { $0.host == host } ?? true
    // A worker of another host that sleeps may still write to it; and what the journal doesn't know may be another job's.
    let isForeign = !isSameHost || length > 0 && (journal.data.version == nil || journal.data.part != inode)
    var nothing = Self.nothing
    nothing.needsNewInode = journal.data.lostWrites || isForeign
    guard length > 0, journal.data.version != nil, let start = journal.attempts.lastStart else { return nothing }
    // A process that died lost nothing; a machine that did may have the length without the data.
    let isTrusted = isSameHost && start.boot == boot && boot != "unknown" && !journal.data.lostWrites
    // It may have died between a failed fsync and the line that tells of it. The page cache still has the bytes, but takes them for written.
    let isDoubtful = isTrusted && isTakenOver && !isForeign
    let marks = [isTrusted && !isDoubtful ? journal.data.softMark : nil, journal.data.checkpoint].compactMap { $0 }
      .filter { $0.offset <= length }
    let mark = marks.max { $0.offset < $1.offset } ?? .zero
    let usable = isTrusted ? length : mark.offset
    if usable == 0 { return nothing }
    var recovery = Recovery(length: usable, from: mark, needsNewInode: isForeign || journal.data.lostWrites)
    recovery.rewrites = isDoubtful
    if isForeign {
      // Moved here by cp or a restored backup, or another job's of the same name. Another host's may be so under the same
      // number, which the file system gives out again.
      guard mark.offset > 0 else { return nothing }
      recovery.length = mark.offset
      recovery.verifies = mark
    }
    // Shorter than what was once durable: not the file that the journal speaks of.
    if let checkpoint = journal.data.checkpoint, length < checkpoint.offset { return nothing }
    return recovery
  }
}
