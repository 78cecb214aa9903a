internal import Spool

/// Performs what ``Ending`` decides.
extension Attempt {
  func end(_ cause: Ending.Cause) async -> AttemptEnd {
    await checkpointer.finish()
    var ending = Ending.decide(cause, ownership, fullTrust)
    while true {
      do {
        return try await perform(ending, cause)
      } catch {
        // A person can move or remove the job between any two steps. Then the attempt ends because of that, and the
        // error is no failure.
        let next = Ending.decide(cause, ownership, fullTrust)
        guard ending.needsClaim, !next.needsClaim else { return AttemptEnd(.waiting, problem: error) }
        ending = next
      }
    }
  }

  /// The trust in the data and in the job's own file.
  private var fullTrust: Trust { trust.joined(with: claim.lostWrites) }

  /// nil after the claim's last move.
  private var ownership: Claim.Ownership? {
    guard claim.isOpen else { return nil }
    // If the ownership cannot be determined, the attempt ends with its first error.
    do throws(SpoolError) { return try claim.ownership() } catch { return .ours }
  }

  private func perform(_ ending: Ending, _ cause: Ending.Cause) async throws -> AttemptEnd {
    switch ending {
    case .fail(let failure): return try await fail(failure)
    case .park(let reason): return try park(reason)
    case .wait(let awaited): return try wait(for: awaited)
    case .letGo(let loss): return try letGo(loss)
    case .remove: return try remove()
    case .doubtDone: return AttemptEnd(.done, problem: cause.error)
    case .leaveReceipt: return AttemptEnd(.waiting, problem: cause.error)
    }
  }

  // MARK: failure

  private func fail(_ failure: Failure) async throws -> AttemptEnd {
    try data?.dropData(after: failure.code)
    // Data of an earlier attempt, from before `max-size` was lowered.
    if data == nil, failure.code == .tooLarge { try claim.spool.removeData(of: claim.job) }
    let record = try write(failure)
    account.connectivity = Connectivity(record.failure)
    // Before the job appears in its new directory, where another worker may claim it: a claim without data starts from
    // 0.
    try closeData()
    let job = name
    if let retry = record.retry { try claim.park(until: retry) } else { try claim.giveUp() }
    log(Event("failed", record.eventLevel, job: job, record.facts))
    guard let retry = record.retry else {
      await tellGivenUp(job, record.facts)
      return AttemptEnd(.givenUp)
    }
    var end = AttemptEnd(.waiting)
    end.retry = retry
    end.isOrder = claim.isStandingOrder
    return end
  }

  /// Journals the failure and the time of the next attempt.
  private func write(_ failure: Failure) throws(SpoolError) -> FailureRecord {
    let journal = claim.origin.takesDrops ? Journal() : claim.text.journal
    let failure = RetryDecision.believed(failure, mismatches: journal.attempts.mismatches)
    // Deliveries have attempts of their own.
    let number = failure.code == .deliver ? journal.attempts.failedDeliveries + 1 : account.number
    let decision = retryDecision(after: failure, failures: number)
    let mark = data.flatMap { $0.part.length > 0 ? $0.part.mark : nil }
    let record = FailureRecord(
      time: claim.spool.now(), attempt: number, failure: failure, trust: fullTrust, mark: mark,
      fetched: account.fetched, broken: mark.flatMap { _ in data?.doubt?.floor }, retry: decision.next)
    try append(record)
    return record
  }

  private func append(_ record: FailureRecord) throws(SpoolError) {
    do throws(SpoolError) {
      try claim.append(.failed(record))
    } catch {
      guard error.isLackOfSpace, claim.lostWrites == nil else { throw error }
      // There is no space even for the record. The move and its mtime need none, and the log has the facts. But later
      // attempts must not trust data that a failed fsync lost, so that data is cut off.
      if record.trust.isLost { try data?.cutToCheckpoint() }
    }
  }

  /// Moves a job whose failure is recorded, if a crash came between the record and the move.
  func finishRecordedFailure() async throws -> AttemptEnd? {
    let journal = claim.text.journal
    guard claim.origin == .cur, journal.attempts.endsInFailure else { return nil }
    let spool = claim.spool
    if let data = try spool.status(.partial, claim.job.part), data.size == 0 { try spool.removeData(of: claim.job) }
    let job = name
    let record = journal.attempts.lastFailure ?? Fields()
    let retry = record["retry"].flatMap { Timestamp($0) }
    if let retry { try claim.park(until: retry) } else { try claim.giveUp() }
    // The worker that wrote the record died before it logged the failure.
    var facts = Fields()
    for (key, value) in FailureRecord.facts(of: record).named { facts = facts.with(key, escaped(value)) }
    log(Event("failed", retry == nil ? .error : .warning, job: job, facts))
    if retry != nil { return AttemptEnd(.waiting) }
    await tellGivenUp(job, record)
    return AttemptEnd(.givenUp)
  }

  // MARK: no failure

  private func park(_ reason: String) throws -> AttemptEnd {
    let mark = try noteInterrupted(reason)
    try closeData()
    let job = name
    try claim.park(until: claim.spool.now())
    log(Event("parked", .info, job: job, Fields().with("at", mark.offset).with("reason", reason)))
    return AttemptEnd(.waiting)
  }

  private func letGo(_ loss: Ending.Loss) throws -> AttemptEnd {
    switch loss {
    case .takenOver:
      let mark = lastMark
      releaseData()
      log(Event("taken-over", .info, job: name, Fields().with("at", mark.offset)))
    case .moved:
      let mark = try noteLoss("moved away from cur")
      try closeData()
      log(Event("held", .info, job: name, Fields().with("at", mark.offset)))
    case .changed:
      _ = try noteLoss("its file was changed")
      try closeData()
      // The job stays in cur/ without an owner. The next worker that claims it reads its new text.
      let reason = "its file was changed while it ran: the job starts again with its new text"
      log(Event("changed", .warning, job: name, Fields().with("reason", reason)))
    }
    return AttemptEnd(.moved)
  }

  private func noteLoss(_ reason: String) throws(SpoolError) -> Mark {
    do throws(SpoolError) {
      // Whoever moved it may have said when it is due.
      return try claim.keepingTime { () throws(SpoolError) in try noteInterrupted(reason) }
    } catch  where error.isGone {
      // A successor on another host has written to the journal, so this worker must not write to it any more.
      return lastMark
    }
  }

  private func remove() throws -> AttemptEnd {
    try data?.part.remove()
    try closeData()
    try claim.spool.removeOrphanedData(of: claim.job)
    log(Event("cancelled", .info, job: name))
    return AttemptEnd(.cancelled)
  }

  private var lastMark: Mark {
    data?.part.mark ?? claim.text.journal.data.softMark ?? Mark.zero
  }

  /// Journals the length of the data, if the attempt did anything.
  func noteInterrupted(_ reason: String) throws(SpoolError) -> Mark {
    let mark = lastMark
    let hasLostWrites = fullTrust.isLost
    let broken = data == nil ? claim.text.journal.data.brokenFrom : data?.doubt?.floor
    // An order has no data, and a check without its end would count as the death of a worker.
    guard data != nil || hasLostWrites || claim.isStandingOrder else { return mark }
    do throws(SpoolError) {
      try claim.append(
        .interrupted(
          .now(), attempt: account.number, mark: mark, fetched: account.fetched, broken: broken,
          lostWrites: hasLostWrites, reason: reason))
    } catch  where error.isLackOfSpace {
      // The move needs no space. Without the line the next attempt only has to read more of the data, but it must not
      // find data that a failed fsync lost.
      if hasLostWrites { try data?.cutToCheckpoint() }
    }
    return mark
  }

  func closeData() throws(SpoolError) {
    // Empty data is removed: there is nothing to resume from.
    if let part = data?.part, part.length == 0 { try part.remove() }
    releaseData()
  }

  private func releaseData() {
    // Closing only releases the lock. Only checkpoints are promised to be durable, and they already are.
    try? data?.part.close()
    account.lengthAtEnd = data?.part.length ?? 0
    data?.leaveSpace()
    data = nil
  }
}

extension FailureRecord {
  /// A proxy's failure is told once for all jobs: `proxy-failed`.
  fileprivate var eventLevel: Event.Level {
    if retry == nil { return .error }
    return failure.proxy == nil ? .warning : .info
  }
}
