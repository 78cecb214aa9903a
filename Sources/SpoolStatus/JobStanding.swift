package import Spool

/// What has become of one job that a command waits for.
package enum JobStanding: Sendable, Equatable {
  /// There is no job of the name.
  case absent
  /// In `new`.
  case waiting
  /// In `cur`, and its worker seems to be alive.
  case running(bytes: UInt64, total: UInt64?)
  /// In `cur`, and its worker is gone; or in `partial`, and due.
  case due
  /// In `partial`, until the next attempt.
  case retrying(at: Timestamp, JobStatus.Problem?)
  case paused
  case failed(JobStatus.Problem?)
  case done
}

/// Looks at single jobs. It only reads, like ``SnapshotReader``.
package struct StandingReader {
  private let spool: Spool

  /// Reads `spool` anew at each call.
  package init(_ spool: Spool) { self.spool = spool }

  /// - Throws: ``SpoolError``.
  package func standing(of job: JobName) throws(SpoolError) -> JobStanding {
    // One look can miss a job that moves (INTERNALS.md, invariant 10).
    for _ in 0..<3 {
      for place in try spool.places(of: job.fileName).reversed() {
        if let standing = try look(place, job) { return standing }
      }
    }
    return .absent
  }

  /// - Returns: nil if it has moved.
  func look(_ place: JobPlace, _ job: JobName) throws(SpoolError) -> JobStanding? {
    guard let status = try spool.status(place.directory, place.name) else { return nil }
    let now = spool.now()
    switch place.directory {
    case .new, .urgent: return .waiting
    case .hold: return .paused
    case .done: return .done
    case .cur:
      guard let claim = ClaimName(place.name),
        claim.isAlive(modified: status.modified, in: spool, now: now)
      else { return .due }
      let data = try spool.status(.partial, job.part).map { UInt64(clamping: $0.size) }
      guard let text = try spool.job(.cur, place.name) else { return nil }
      return .running(bytes: data ?? 0, total: text.request.expected.size ?? text.journal.data.version?.size)
    case .partial:
      if Spool.isDue(status.modified, at: now.seconds) { return .due }
      return .retrying(at: Timestamp(seconds: status.modified), try problem(place))
    case .failed: return .failed(try problem(place))
    case .tmp, .standing, .workers, .files: return nil
    }
  }

  private func problem(_ place: JobPlace) throws(SpoolError) -> JobStatus.Problem? {
    guard let attempts = try spool.job(place.directory, place.name)?.journal.attempts else { return nil }
    if let failure = attempts.lastFailure { return JobStatus.Problem(failure) }
    // One that has not failed may wait for another job's output.
    return attempts.lastInterruption.map { JobStatus.Problem(interruption: $0) }
  }
}
