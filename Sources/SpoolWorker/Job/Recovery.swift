internal import Spool

/// How much of the data of earlier attempts is trusted (INTERNALS.md, invariant 4).
struct Recovery: Equatable {
  /// A mark that was written without a flush of the data before it: a write that failed since, and that no fsync has
  /// reported, may have lost some of it.
  struct Confirmation: Equatable {
    /// The data up to here must have this CRC-32. Otherwise…
    let mark: Mark
    /// …only this length is durable.
    let durable: UInt64
  }

  /// Cut the data to this length…
  var length: UInt64
  /// …and continue the digests from here.
  var from: Mark
  /// Copy the data to a new inode first: writes to this one may still arrive, or were lost.
  var needsNewInode = false
  /// Write the data that is read again beyond this offset: its earlier writes may have been lost unnoticed.
  var rewritesFrom: UInt64?
  /// Where the data is cut unless it agrees with what was written.
  var confirmation: Confirmation?
  /// Also read everything before this mark, and start from 0 unless its digests agree: the file is not the one that the
  /// journal names.
  var verifies: Mark?

  /// - Parameters:
  ///   - length, inode: of the data file.
  ///   - isNew: whether this attempt has made it.
  ///   - host, boot: of this worker.
  ///   - isTakenOver: whether the last attempt has no end record.
  ///   - sharesLocks: whether the lock that this worker has proves that the last one has ended.
  ///   - digests: those to compute beside CRC-32.
  static func decide(
    length: UInt64, inode: UInt64, isNew: Bool, journal: Journal, host: String, boot: String, isTakenOver: Bool,
    sharesLocks: Bool, digests: Set<DigestAlgorithm> = []
  ) -> Recovery {
    let length = min(length, journal.data.end ?? length)
    // A host of the same name may be another one, whose worker only sleeps unless it has recorded its end.
    let isSameHost = journal.attempts.lastStart.map { $0.host == host && (sharesLocks || !isTakenOver) } ?? sharesLocks
    // A sleeping worker on another host may still write to the file. A file that the journal does not name may be
    // another job's, or such a worker may have opened it, also while it is still empty.
    let isForeign =
      !isSameHost || (length > 0 || !isNew) && (journal.data.version == nil || journal.data.part != inode)
    var nothing = Recovery(length: 0, from: .zero(digests))
    nothing.needsNewInode = journal.data.lostWrites || isForeign
    guard length > 0, journal.data.version != nil, let start = journal.attempts.lastStart else { return nothing }
    // After the death of a process its writes are still there. After the crash of a machine the file may have the
    // length without the data.
    let isTrusted = isSameHost && start.boot == boot && boot != "unknown" && !journal.data.lostWrites
    // The worker may have died between a failed fsync and the line that records it. The page cache still has the bytes,
    // but treats them as written.
    let isDoubtful = isTrusted && isTakenOver && !isForeign
    let marks = [isTrusted && !isDoubtful ? journal.data.softMark : nil, journal.data.checkpoint].compactMap { $0 }
      .filter { $0.offset <= length }
    let mark = marks.max { $0.offset < $1.offset } ?? .zero
    let usable = isTrusted ? length : mark.offset
    if usable == 0 { return nothing }
    // A mark that has not all of the digests still tells how much of the data is there. A job whose text was changed,
    // or that another version worked on, has such marks.
    let durable = isForeign ? marks : marks.filter { $0 == journal.data.checkpoint }
    let known = durable.compactMap { $0.narrowed(to: digests) }.max { $0.offset < $1.offset } ?? .zero(digests)
    var recovery = Recovery(length: usable, from: known, needsNewInode: isForeign || journal.data.lostWrites)
    if isDoubtful { recovery.rewritesFrom = mark.offset }
    let durableLength = journal.data.checkpoint?.offset ?? 0
    if isTrusted, let soft = journal.data.softMark, soft.offset <= length, soft.offset > durableLength {
      recovery.confirmation = Confirmation(mark: soft, durable: durableLength)
    }
    if isForeign {
      // The file may come from cp or a restored backup, or belong to another job of the same name. Data from another
      // host may be such a file even with the same inode number, because file systems reuse numbers.
      guard mark.offset > 0 else { return nothing }
      recovery.length = mark.offset
      (recovery.verifies, recovery.confirmation) = (mark, nil)
    }
    // Shorter than what was durable, so it is not the file that the journal describes.
    if let checkpoint = journal.data.checkpoint, length < checkpoint.offset { return nothing }
    return recovery
  }
}
