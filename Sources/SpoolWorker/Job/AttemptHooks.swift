internal import Spool

/// The steps of an attempt in which hooks take part.
extension Attempt {
  /// - Returns: the plan with the links that the hook `resolve` says; `plan` itself for a job that asks for none.
  func resolve(_ plan: JobPlan, _ resolver: LinkResolver?) async throws -> JobPlan {
    guard let resolver else { return plan }
    return try await orStopped { try await resolver.ask() }
  }

  /// - Returns: when the hook `deliver` accepted the payload; nil if there is no hook.
  func deliver(_ plan: JobPlan, _ whole: Mark) async throws -> Timestamp? {
    let delivery = PayloadDelivery(claim, plan, environment, hooks, id: id)
    guard delivery.isWanted else { return nil }
    // Another transfer may have the connection while the hook runs.
    reached(.transferred)
    return try await orStopped { try await delivery.run(whole) }
  }

  /// Reports a job that is done.
  func succeed(_ plan: JobPlan, _ whole: Mark) async -> AttemptEnd {
    // Another transfer may have the connection while the hook runs.
    reached(.transferred)
    log(
      Event(
        "done", .info, job: name,
        Fields().with("output", plan.output.text).with("directory", environment.directory(of: plan))
          .with("size", whole.offset).with("attempt", account.number)
          .with("fetched", account.fetched).with("bytes-fetched", account.fetchedInAll)
          .with("seconds", account.seconds).with("milliseconds", account.milliseconds).with("rate", account.rate)
          .with(whole.digests)))
    await environment.tellDone(name, plan, whole, account, hooks)
    return AttemptEnd(.done)
  }

  /// Runs the `failed` hook for a job that is given up.
  func tellGivenUp(_ job: FileName, _ record: Fields) async {
    reached(.transferred)
    let first = claim.origin.takesDrops ? nil : claim.text.journal.attempts.firstStarted
    let seconds = max(0, Timestamp.now().seconds - (first ?? account.began).seconds)
    await environment.tellFailed(job, record, of: claim.text.request, seconds: seconds, hooks)
  }

  /// Runs a step that a stop of the attempt ends. The step only knows that it was stopped; this attempt knows why.
  func orStopped<Result>(_ step: @WorkerLoop () async throws -> Result) async throws -> Result {
    do {
      if let stopped { throw stopped }
      return try await step()
    } catch {
      throw stopped ?? error
    }
  }
}
