package import Spool

/// How far a running job is.
package struct JobProgress: Sendable {
  /// Tells apart two jobs of one name, one after the other.
  package let id: UInt64
  package let name: FileName
  /// The length of the data.
  package let bytes: UInt64
  /// nil as long as neither the job nor a server has said it.
  package let total: UInt64?

  package init(id: UInt64, name: FileName, bytes: UInt64, total: UInt64?) {
    self.id = id
    self.name = name
    self.bytes = bytes
    self.total = total
  }
}

/// How far a worker is.
package struct WorkerProgress: Sendable {
  /// In the order in which they began.
  package var running: [JobProgress]
  /// Jobs that a scan saw and that may start when there is room.
  package var waiting: Int
  /// The scan is not at its end: there are more.
  package var moreWait = false
  /// How jobs ended since the worker began.
  package var summary: RunSummary
  /// Bytes by which data has grown since the worker began.
  package var gained: UInt64

  package init(running: [JobProgress], waiting: Int, summary: RunSummary, gained: UInt64) {
    self.running = running
    self.waiting = waiting
    self.summary = summary
    self.gained = gained
  }
}
