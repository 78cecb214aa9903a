package import Spool

/// The state of a job as `status` shows it, the most important first.
package enum JobState: String, CaseIterable, Sendable {
  case running, failed, retrying, interrupted, paused, waiting, done

  var usualDirectory: Directory {
    switch self {
    case .running, .interrupted: .cur
    case .failed: .failed
    case .retrying: .partial
    case .paused: .hold
    case .waiting: .new
    case .done: .done
    }
  }
}

/// What the spool knows about a job. A property is nil if it is not known.
package struct JobStatus: Sendable {
  /// Why a job is not done.
  package struct Problem: Sendable, Equatable {
    /// A failure code of spool.5, `interrupted`, or `crashed`.
    package var code: String
    /// For a person.
    package var reason: String
    /// When it was recorded.
    package var time: Timestamp?

    /// - Parameter time: nil where the journal does not say when.
    package init(code: String, reason: String, time: Timestamp? = nil) {
      self.code = code
      self.reason = reason
      self.time = time
    }
  }

  /// The job's name.
  package var name: FileName
  /// Its state.
  package var state: JobState
  /// The directory that it was seen in.
  package var directory: Directory
  /// The length of the data.
  package var bytes: UInt64?
  /// The expected size of the data, in bytes.
  package var total: UInt64?
  /// Bytes per second.
  package var rate: Double?
  /// Seconds for which the data of a running job has not grown; nil if that is not unusual.
  package var quiet: Int64?
  /// Attempts that count, including the current one.
  package var attempts: Int?
  /// The number of attempts after which the job is given up.
  package var attemptLimit: Int?
  /// When the next attempt is due.
  package var next: Timestamp?
  /// Why it is not done.
  package var problem: Problem?
  /// The payload is in its place, and the hook `deliver` has not accepted it yet. Then ``attempts`` counts deliveries.
  package var awaitsDelivery = false
  /// The claim's owner: `HOST.PID.TAG`.
  package var worker: String?
  /// That of the job or of `defaults`; nil if the job was not read.
  package var priority: Priority?
  /// What it may share with other jobs; nil if the job was not read.
  package var target: JobTarget?
  /// Why it does not run now; nil if it does, or nothing is seen that it waits for.
  package var waits: JobWait?

  /// Of a job of which only the place is known.
  /// - Parameter directory: nil for the usual one of that state.
  package init(_ name: FileName, _ state: JobState, in directory: Directory? = nil) {
    self.name = name
    self.state = state
    self.directory = directory ?? state.usualDirectory
  }

  /// Seconds until a running job's transfer ends, at its present rate.
  package var secondsLeft: Int64? {
    state == .running ? SpoolStatus.secondsLeft(bytes ?? 0, of: total, rate: rate) : nil
  }
}
