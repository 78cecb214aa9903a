internal import Spool

/// Derives a ``JobStatus`` from a job's text and the status of its data. Pure.
struct JobReading {
  let text: JobText
  let defaults: JobRequest
  /// Size and last change of the data; nil if there is none.
  let data: (size: UInt64, modified: Int64)?
  let now: Timestamp

  /// Seconds without a byte after which the average rate of a transfer is meaningless.
  static let quietAfter: Int64 = 5

  func status(_ name: FileName, _ state: JobState, in directory: Directory) -> JobStatus {
    let journal = text.journal
    let request = text.request.inheriting(defaults)
    var status = JobStatus(name, state, in: directory)
    status.priority = text.priority(inheriting: defaults)
    status.target = JobTarget(text.request)
    status.bytes = data?.size
    status.total = total
    status.attemptLimit = request.attempts ?? JobRequest.defaultAttempts
    status.awaitsDelivery = journal.publication.awaitsDelivery
    let failures = status.awaitsDelivery ? journal.attempts.failedDeliveries : journal.attempts.failures
    status.attempts = failures + (state == .running ? 1 : 0)
    status.problem = problem(state)
    if state == .running, !status.awaitsDelivery {
      status.rate = rate
      if let data, let started = journal.attempts.lastStarted,
        now.seconds - max(data.modified, started.seconds) >= Self.quietAfter
      {
        status.quiet = now.seconds - max(data.modified, started.seconds)
      }
    }
    return status
  }

  /// The expected size: the declared one, or that of what the server has if some of it is there.
  var total: UInt64? {
    text.request.inheriting(defaults).expected.size ?? (data == nil ? nil : text.journal.data.version?.size)
  }

  /// The bytes since the attempt began, divided by the time until the data's last change.
  private var rate: Double? {
    guard let data, let started = text.journal.attempts.lastStarted, let from = text.journal.traffic.grewFrom,
      data.size >= from
    else {
      return nil
    }
    if now.seconds - data.modified >= Self.quietAfter { return 0 }
    let seconds = data.modified - started.seconds
    // Both times are whole seconds, so the rate of a shorter time would be far off.
    guard seconds >= 2 else { return nil }
    return Double(data.size - from) / Double(seconds)
  }

  private func problem(_ state: JobState) -> JobStatus.Problem? {
    let journal = text.journal
    // One that has not failed may wait for another job's output.
    let isInterrupted = state == .interrupted || state == .retrying && journal.attempts.lastFailure == nil
    if isInterrupted, let stop = journal.attempts.lastInterruption {
      return .init(interruption: stop)
    }
    guard state != .paused, let failure = journal.attempts.lastFailure else { return nil }
    // After `retry` the old failures no longer count.
    if state == .running, journal.attempts.failures + journal.attempts.failedDeliveries == 0 { return nil }
    return .init(failure)
  }
}

extension JobStatus.Problem {
  /// From the fields of an `interrupted:` line.
  init(interruption: Fields) {
    self.init(
      code: "interrupted", reason: interruption["reason"] ?? "",
      time: interruption.words.first.flatMap { Timestamp($0) })
  }

  /// From the fields of a `failed:` line.
  init(_ failure: Fields) {
    var reason = failure["reason"] ?? ""
    if let line = failure["line"] { reason = "line \(line): \(reason)" }
    if let expected = failure["expected"], let found = failure["found"] {
      reason += " (expected \(expected), found \(found))"
    }
    self.init(code: failure["code"] ?? "failed", reason: reason, time: failure.words.first.flatMap { Timestamp($0) })
  }
}
