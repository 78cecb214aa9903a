package import Spool
package import Transfer

/// How a worker runs.
package struct WorkerOptions: Sendable {
  /// Transfers at once.
  package var jobs = 8
  /// Transfers at once from one scheme, host and port.
  package var perHost = 4
  /// Connections for one transfer, where the job does not say.
  package var connections = 1
  /// The most connections for one transfer, whatever its job says.
  package var maxConnections = JobRequest.connectionRange.upperBound
  /// Bytes that several connections may take, of all transfers together; nil for what the machine and the process's
  /// control groups allow.
  package var maxMemory: UInt64?
  /// The most bytes that one of several connections asks for at a time.
  package var chunkSize: UInt64 = 4 << 20
  /// The output root as an absolute path; nil for the spool's `files`.
  package var directory: String?
  package var protocols: Set<Scheme> = [.http, .https]
  /// PEM file of certificate authorities; nil for the system's.
  package var caFile: String?
  /// Bytes per second of all transfers together; nil for no limit.
  package var limitRate: UInt64?
  /// The most bytes that any payload may have, whatever its job says; nil for no limit.
  package var maxSize: UInt64?
  /// Bytes to leave free on the spool's file system: while there are fewer, no job starts.
  package var minFree: UInt64 = 0
  /// Decides whether jobs may start now; nil for always.
  package var gate: Gate?
  package var userAgent = "spoolrun"
  /// What jobs inherit.
  package var defaults = JobRequest()
  /// A checkpoint is written after this many bytes…
  package var checkpointBytes: UInt64 = 256 << 20
  /// …or this many milliseconds, whichever comes first.
  package var checkpointMilliseconds: Int64 = 5000
  /// Milliseconds for which a job that may have killed workers waits for others to go first, and for which it runs
  /// before it is cleared.
  package var probation: Int64 = 600_000
  /// Bytes of a job with its journal beyond which checkpoints that later ones supersede are left out.
  package var longJournal: Int64 = 1 << 20

  /// Jobs in their commit beyond which no transfer starts: each holds three descriptors.
  static let mostCommits = 200

  package init() {}

  /// Files, directories and sockets that a worker may have open at once.
  package var descriptors: Int { jobs * 5 + Self.mostCommits * 3 + 64 }

  /// The same with every output as deep, and as many connections for each job, as may be.
  package var mostDescriptors: Int {
    descriptors + (jobs + Self.mostCommits) * OutputPath.maximumParts + jobs * maxConnections
  }
}

/// How a run went, worst outcome first in its exit status.
package struct RunSummary: Sendable {
  package var done = 0
  /// Jobs that wait for another attempt, after a failure or because the worker was told to stop; right as far as ``WaitingJobs`` counts.
  package var waiting = 0
  package var givenUp = 0
  package var cancelled = 0
  /// The spool itself failed: what and where.
  package var spoolError: SpoolError?
  /// What keeps this machine from fetching anything at all: libcurl cannot be loaded. No job was touched.
  package var obstacle: String?

  package init() {}

  /// What a later worker of the same run did.
  package mutating func add(_ later: RunSummary) {
    done += later.done
    givenUp += later.givenUp
    cancelled += later.cancelled
    // What waits in a spool that is gone waits no more.
    (waiting, spoolError, obstacle) = (later.waiting, later.spoolError, later.obstacle)
  }
}
