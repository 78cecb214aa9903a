package import Spool

/// What a job is doing, in the order in which it matters to who looks on.
package enum JobState: String, CaseIterable, Sendable {
  case running, failed, retrying, interrupted, paused, waiting, done
}

/// What one look at the spool tells of a job; nil where it tells nothing.
package struct JobStatus: Sendable {
  package struct Problem: Sendable, Equatable {
    /// A failure code of spool.5, `interrupted`, or `crashed`.
    package var code: String
    package var reason: String
    package var time: Timestamp?

    package init(code: String, reason: String, time: Timestamp? = nil) {
      self.code = code
      self.reason = reason
      self.time = time
    }
  }

  package var name: FileName
  package var state: JobState
  /// The length of the data.
  package var bytes: UInt64?
  package var total: UInt64?
  /// Bytes per second.
  package var rate: Double?
  /// Seconds for which the data of a running job has not grown, where that is longer than usual.
  package var quiet: Int64?
  /// Attempts begun, the current one included.
  package var attempts: Int?
  package var attemptLimit: Int?
  /// When the next attempt is due.
  package var next: Timestamp?
  package var problem: Problem?
  /// Who has it: `HOST.PID.TAG`.
  package var worker: String?

  package init(_ name: FileName, _ state: JobState) {
    self.name = name
    self.state = state
  }

  package var secondsLeft: Int64? {
    state == .running ? SpoolStatus.secondsLeft(bytes ?? 0, of: total, rate: rate) : nil
  }
}

/// One look at a spool.
package struct SpoolSnapshot: Sendable {
  package var location: String
  package var time: Timestamp
  package var counts: [JobState: Int] = [:]
  /// Details, by state; for waiting jobs the name alone, for done ones nothing.
  package var jobs: [JobState: [JobStatus]] = [:]
  /// Bytes that are there of jobs begun and not done.
  package var stored: UInt64 = 0
  /// Done jobs of which only the end of a connection says that the payload is whole (spool.5, `unproven`), among the first
  /// ``SnapshotReader/receiptsRead``.
  package var unproven = 0
  /// Directories that this user may not read.
  package var unreadable: [Directory] = []

  package init(location: String, time: Timestamp) {
    self.location = location
    self.time = time
  }

  package func count(_ state: JobState) -> Int { counts[state] ?? 0 }

  /// Bytes that all jobs are to become that have data or are to get some now; nil where one of them doesn't say.
  package var total: UInt64? { progress?.total }

  /// The same with what is there of these jobs.
  package var progress: (bytes: UInt64, total: UInt64)? {
    var sum: (bytes: UInt64, total: UInt64) = (0, 0)
    for state in [JobState.running, .retrying, .interrupted, .paused] {
      let known = jobs[state] ?? []
      guard known.count == count(state) else { return nil }
      for job in known {
        // One without data has no more begun than a waiting one.
        if job.bytes == nil, job.total == nil { continue }
        guard let total = job.total else { return nil }
        sum.bytes &+= UInt64(clamping: job.bytes ?? 0)
        sum.total &+= total
      }
    }
    return sum
  }

  /// Bytes per second of all running jobs; nil where no rate is known.
  package var rate: Double? {
    let rates = (jobs[.running] ?? []).compactMap(\.rate)
    return rates.isEmpty ? nil : rates.reduce(0, +)
  }

  /// Seconds until the running jobs have their data; nil where that cannot be told.
  package var secondsLeft: Int64? {
    let running = jobs[.running] ?? []
    guard !running.isEmpty, running.count == count(.running) else { return nil }
    var (bytes, total): (UInt64, UInt64) = (0, 0)
    for job in running {
      guard let size = job.total else { return nil }
      bytes &+= min(job.bytes ?? 0, size)
      total &+= size
    }
    return SpoolStatus.secondsLeft(bytes, of: total, rate: rate)
  }
}

/// The rates of running jobs from look to look.
package struct RateBook: Sendable {
  private var meters: [FileName: RateMeter] = [:]
  private let window: Int64

  /// - Parameter window: milliseconds that a rate is averaged over.
  package init(window: Int64 = 8000) { self.window = window }

  /// Puts what the data grew by since the last look in the place of what the journal told.
  package mutating func apply(to snapshot: inout SpoolSnapshot, at milliseconds: Int64) {
    let running = snapshot.jobs[.running] ?? []
    var kept: [FileName: RateMeter] = [:]
    snapshot.jobs[.running] = running.map { job in
      guard let bytes = job.bytes else { return job }
      var (job, meter) = (job, meters[job.name] ?? RateMeter(window: window))
      meter.add(bytes, at: milliseconds)
      kept[job.name] = meter
      if let rate = meter.rate { job.rate = rate }
      return job
    }
    meters = kept
  }
}
