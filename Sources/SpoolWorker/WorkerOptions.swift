package import Spool
package import Transfer

package struct WorkerOptions: Sendable {
  /// Maximum number of parallel transfers.
  package var jobs = 20
  /// Maximum number of parallel transfers from one scheme, host and port.
  package var perHost = 16
  /// Whether a server begins with fewer, and gets as many as bring more.
  package var perHostGrows = true
  /// Seconds for which a server may answer nobody before its jobs are given up, unless they say otherwise.
  package var patience = JobRequest.defaultPatience
  /// Connections per transfer, unless the job says otherwise.
  package var connections = 1
  /// Connections of a transfer that turns out to be slow over one, where neither the job nor ``connections`` asks for
  /// several. For a person who waits: a worker leaves this at 1.
  package var connectionsIfSlow = 1
  /// Maximum connections per transfer, whatever the job says.
  package var maxConnections = JobRequest.connectionRange.upperBound
  /// Bytes of memory for transfers over several connections, all together; nil to derive it from the machine's memory
  /// and the process's control groups.
  package var maxMemory: UInt64?
  /// Maximum bytes per request of a transfer over several connections.
  package var chunkSize: UInt64 = 4 << 20
  /// The output root as an absolute path; nil for the spool's `files`.
  package var directory: String?
  package var protocols: Set<Scheme> = [.http, .https]
  package var network = NetworkOptions()
  /// The authorities to trust, whatever `defaults` say, as in ``Transfer/NetworkOptions/authorities``.
  package var authorities: String?
  /// What is said in place of keys in `defaults`.
  package var networkKeys = NetworkKeys()
  /// The rate limits of all transfers together. Those that a clause applies to share its rate. nil for no limit.
  package var limitRate: RateRules?
  /// Maximum bytes of a payload, whatever the job says; nil for no limit.
  package var maxSize: UInt64?
  /// Bytes to keep free on the spool's file system. No job starts while fewer are free.
  package var minFree: UInt64 = 0
  /// Decides whether jobs may start; nil for always.
  package var gate: Gate?
  /// The User-Agent field of requests whose job gives none.
  package var userAgent = "spoolrun"
  /// The names of the jobs to run, for which a person waits; nil for all.
  package var only: Set<FileName>?
  /// Whether a worker that watches ends when no job waits or runs; of ``only``, none that it could run.
  package var endsWhenDone = false
  /// Whether failures of servers use up `attempts:` like any other: a person who waits has said how often to try.
  package var countsEachFailure = false
  /// Whether the URL of a server that has never answered is taken for a mistake, so that its failure is final.
  package var expectsMistakes = false
  /// Such a worker also ends after so many milliseconds without a byte; nil for never.
  package var longestStandstill: Int64?
  /// Whether anybody reads the events of a job that goes well: `started`, `done`.
  package var tellsSuccess = true
  package var defaults = JobRequest()
  /// A checkpoint is written after this many bytes…
  package var checkpointBytes: UInt64 = 256 << 20
  /// …or this many milliseconds, whichever comes first.
  package var checkpointMilliseconds: Int64 = 5000
  /// Milliseconds that a job that may have killed workers waits for other jobs to go first, and then runs before it is
  /// cleared.
  package var probation: Int64 = 600_000
  /// Bytes of a job with its journal above which superseded checkpoints are removed.
  package var longJournal: Int64 = 1 << 20
  /// Milliseconds between passes over the whole spool while there is no work; nil for what fits the file system.
  package var rescan: Int64?
  /// What is to be told how the worker is; nil if nothing is, as for a worker of `spoolrun get`.
  var serviceManager: ServiceManager?
  /// What the spool's file system can do, for the log; nil if it was not tried.
  package var fileSystem: FileSystemTraits?
  /// The program that reads the lists of standing orders; nil if its place is not known.
  package var entriesProgram = System.path(ofProgramBeside: "spoolrun-entries")

  /// No transfer starts while this many jobs are in their commit, because each has four open descriptors.
  static let mostCommits = 200

  /// Those of a worker that is given none (spoolrun(1)).
  package init() {}

  /// Lets the worker tell the service manager that the environment names, if any, how it is.
  package mutating func takeServiceManager() { serviceManager = ServiceManager() }

  /// Reads ``limitRate`` as a person gave it; nil for no limit.
  package mutating func setLimitRate(_ text: String?) throws(Defect) {
    limitRate = if let text { try RateRules.read(text) } else { nil }
  }

  /// Files, directories and sockets that a worker normally has open at most.
  package var descriptors: Int { jobs * 6 + Self.mostCommits * 4 + 64 }

  /// The same in the worst case: all outputs at the maximum depth, and all jobs with the maximum number of connections.
  package var mostDescriptors: Int {
    descriptors + (jobs + Self.mostCommits) * OutputPath.maximumParts + jobs * maxConnections
  }
}

/// The result of a run. Its exit status tells the worst outcome.
package struct RunSummary: Sendable {
  package var done = 0
  /// Jobs that wait for another attempt, after a failure or because the worker was told to stop. Exact up to the limit
  /// of ``WaitingJobs``.
  package var waiting = 0
  /// Jobs that were moved to `failed/`.
  package var givenUp = 0
  /// Running jobs that were removed.
  package var cancelled = 0
  /// Bytes by which the data of ended jobs has grown.
  package var gained: UInt64 = 0
  package var spoolError: SpoolError?
  /// Why nothing can be fetched: libcurl cannot be loaded. No job was touched.
  package var obstacle: String?

  package init() {}

  package mutating func add(_ later: RunSummary) {
    done += later.done
    givenUp += later.givenUp
    cancelled += later.cancelled
    gained &+= later.gained
    // Jobs that wait in a replaced spool do not count.
    (waiting, spoolError, obstacle) = (later.waiting, later.spoolError, later.obstacle)
  }
}

package struct JobProgress: Sendable {
  /// Distinguishes successive jobs of the same name.
  package let id: UInt64
  package let name: FileName
  /// The length of the data; nil until the worker has opened it, so that what an earlier attempt got is no growth.
  package let bytes: UInt64?
  /// The size of the whole; nil until the job or a server states it.
  package let total: UInt64?

  /// - Parameter id: a number that no other claim of the worker has had.
  package init(id: UInt64, name: FileName, bytes: UInt64?, total: UInt64?) {
    (self.id, self.name, self.bytes, self.total) = (id, name, bytes, total)
  }
}

package struct WorkerProgress: Sendable {
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
    (self.running, self.waiting, self.summary, self.gained) = (running, waiting, summary, gained)
  }
}
