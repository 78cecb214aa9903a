import Glibc

@testable import Spool

/// Locks and leases of open files.
extension SimulatedDisk {
  func isOpen(_ inode: Inode, by process: Int, locked isLocked: Bool = false) -> Bool {
    open.values.contains { $0.inode === inode && $0.process == process && (!isLocked || $0.lock != LOCK_UN) }
  }

  private func isSeen(_ other: OpenFile, by file: OpenFile) -> Bool {
    hostOfLocks.map { $0(other.process) == $0(file.process) } ?? true
  }

  /// flock(2), LOCK_NB.
  func lock(_ number: Int32, _ operation: Int32) throws(Failure) {
    let file = try file(number)
    let wanted = operation & ~LOCK_NB
    if wanted == file.lock { return }
    // The old lock is given back first.
    file.lock = LOCK_UN
    let others = allOpen.filter { $0 !== file && $0.inode === file.inode && isSeen($0, by: file) }.map(\.lock)
    if wanted == LOCK_EX, others.contains(where: { $0 != LOCK_UN }) { throw fail(EWOULDBLOCK) }
    if wanted == LOCK_SH, others.contains(LOCK_EX) { throw fail(EWOULDBLOCK) }
    file.lock = wanted
  }

  /// fcntl(2), F_OFD_SETLK.
  func lockRange(_ number: Int32, _ lock: RangeLock, _ range: Range<Int64>) throws(Failure) {
    let file = try file(number)
    if lock != .none, !file.writes { throw fail(EBADF) }
    let inTheWay = try rangeLocks(besides: number).contains {
      $0.range.overlaps(range) && (lock == .exclusive || lock == .shared && $0.lock == .exclusive)
    }
    if inTheWay { throw fail(EAGAIN) }
    file.ranges = file.ranges.flatMap { held in
      [
        (held.range.lowerBound, min(held.range.upperBound, range.lowerBound)),
        (max(held.range.lowerBound, range.upperBound), held.range.upperBound),
      ].filter { $0.0 < $0.1 }.map { ($0.0..<$0.1, held.lock) }
    }
    if lock != .none { file.ranges.append((range, lock)) }
  }

  /// What other open files have locked of the file.
  func rangeLocks(besides number: Int32) throws(Failure) -> [(range: Range<Int64>, lock: RangeLock)] {
    let file = try file(number)
    return open.sorted { $0.key < $1.key }
      .filter { $0.value !== file && $0.value.inode === file.inode && isSeen($0.value, by: file) }
      .flatMap(\.value.ranges)
  }

  /// F_SETLEASE with F_RDLCK.
  func probeLease(_ number: Int32) throws(Failure) {
    let file = try file(number)
    guard file.inode.type == S_IFREG else { throw fail(EINVAL) }
    if allOpen.contains(where: { $0.inode === file.inode && $0.writes }) { throw fail(EAGAIN) }
  }
}
