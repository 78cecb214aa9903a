internal import Spool

/// Reads the jobs that wait in `new` and `urgent`.
struct WaitingReading {
  let spool: Spool
  let defaults: JobRequest
  /// Those that have data: a person has released them or tries them again.
  let begun: Set<FileName>
  let now: Timestamp

  /// The job with what its text says; as it is if it has moved, or this user may not read it.
  func details(_ job: JobStatus) -> JobStatus {
    var job = job
    if job.directory == .urgent { job.priority = .high }
    do throws(SpoolError) {
      guard let status = try spool.status(job.directory, job.name), status.isRegular,
        let bytes = try spool.jobContents(Path(job.directory, job.name))
      else { return job }
      let text = bytes.withUnsafeBytes { JobText($0) }
      if job.directory != .urgent { job.priority = text.priority(inheriting: defaults) }
      job.target = JobTarget(text.request)
      // Data of another user is not this job's: anybody may drop a job of its name, with any journal.
      if begun.contains(job.name), let data = try spool.status(.partial, job.name.data), data.owner == status.owner {
        let size = UInt64(clamping: data.size)
        job.bytes = size
        job.total = JobReading(text: text, defaults: defaults, data: (size, data.modified), now: now).total
      }
      if now.seconds - status.modified < Spool.settlingTime { job.waits = doubt(bytes) }
      return job
    } catch {
      return job
    }
  }

  /// Why a file that has changed a moment ago may not be complete. A process that has it open is not seen from here.
  private func doubt(_ bytes: [UInt8]) -> JobWait? {
    let doubt: Unfinished
    if bytes.isEmpty {
      doubt = .empty
    } else if bytes.last != 0x0A {
      doubt = .lacksNewline
    } else if !spool.kind.leaseShowsAllWriters, !Spool.saysComplete(bytes) {
      doubt = .unsettled
    } else {
      return nil
    }
    return JobWait(.unfinished, doubt.reason)
  }
}
