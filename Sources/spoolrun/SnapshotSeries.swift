internal import Spool
internal import SpoolStatus

/// One look at the spool after the other, with rates from the growth between them.
struct SnapshotSeries {
  private(set) var spool: Spool
  private let limit: Int
  private var rates = RateBook()

  /// - Parameter limit: the maximum number of jobs of each state to read.
  init(_ spool: Spool, limit: Int) {
    self.spool = spool
    self.limit = limit
  }

  /// - Throws: ``SpoolError``.
  mutating func next() throws(SpoolError) -> SpoolSnapshot {
    // The spool was removed and created again, or replaced.
    if try !spool.isInPlace(), let next = try spool.reopened() { spool = next }
    var snapshot = try SnapshotReader(spool, limit: limit).read()
    rates.apply(to: &snapshot, at: Terminal.milliseconds())
    return snapshot
  }
}
