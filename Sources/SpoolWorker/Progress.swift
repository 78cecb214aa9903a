package import Spool

/// The progress of a running job.
package struct JobProgress: Sendable {
  /// Distinguishes successive jobs of the same name.
  package let id: UInt64
  /// The job's name.
  package let name: FileName
  /// The length of the data; nil until the worker has opened it, so that what an earlier attempt got is no growth.
  package let bytes: UInt64?
  /// The size of the whole; nil until the job or a server states it.
  package let total: UInt64?

  /// - Parameter id: a number that no other claim of the worker has had.
  package init(id: UInt64, name: FileName, bytes: UInt64?, total: UInt64?) {
    self.id = id
    self.name = name
    self.bytes = bytes
    self.total = total
  }
}

/// The progress of a worker.
package struct WorkerProgress: Sendable {
  /// In the order of their start.
  package var running: [JobProgress]
  /// Jobs that a scan found and that may start when a slot is free.
  package var waiting: Int
  /// The scan has not finished, so more jobs may wait.
  package var moreWait = false
  /// How jobs ended since the worker started.
  package var summary: RunSummary
  /// Bytes by which data has grown since the worker started.
  package var gained: UInt64
  /// Why jobs that could run do not start.
  package var waits: [WorkerReport.Wait] = []
  /// Seconds until the first next attempt, as far as the worker knows; nil if no job waits for one.
  package var untilNext: Int64?

  /// - Parameter waiting: as far as the scan has come; see ``moreWait``.
  package init(running: [JobProgress], waiting: Int, summary: RunSummary, gained: UInt64) {
    self.running = running
    self.waiting = waiting
    self.summary = summary
    self.gained = gained
  }
}
