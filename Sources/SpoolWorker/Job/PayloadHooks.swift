internal import Spool

/// Runs the spool's hooks with their environment variables.
extension JobEnvironment {
  /// The hooks for one attempt.
  /// - Parameter stop: stops the running hook.
  func hooks(of spool: Spool, _ stop: ChildStop) -> Hooks {
    Hooks(spool: spool, stop: stop) { [log] event in log(event) }
  }

  /// The environment variables that describe a payload.
  func facts(_ plan: JobPlan, _ whole: Mark, in spool: Spool) -> [ChildProcess.Variable] {
    let digests = whole.digests.all.map { ChildProcess.Variable($0.algorithm.variable, "\($0)") }
    // The payload has been published there.
    let directory = self.directory(of: plan) ?? "\(spool.location)/files"
    return [
      .init("SPOOLRUN_OUTPUT", plan.output.text), .init("SPOOLRUN_URL", plan.shownURL ?? ""),
      .init("SPOOLRUN_DIRECTORY", directory),
      .init("SPOOLRUN_SIZE", "\(whole.offset)"),
    ] + digests
  }

  /// Runs the `failed` hook for a job that is given up.
  /// - Parameters:
  ///   - record: the fields of a `failed:` line.
  ///   - request: nil for what is not a valid job.
  ///   - seconds: since the first attempt began; nil for what is not a valid job.
  func tellFailed(_ job: FileName, _ record: Fields, of request: JobRequest?, seconds: Int64?, _ hooks: Hooks) async {
    _ = await hooks.run(
      .failed, job: job, HookFacts.failed(record, seconds: seconds) + HookFacts.wish(request))
  }

  /// Runs the `done` hook for a payload.
  func tellDone(_ job: FileName, _ plan: JobPlan, _ whole: Mark, _ account: AttemptAccount, _ hooks: Hooks) async {
    _ = await hooks.run(
      .done, job: job, facts(plan, whole, in: hooks.spool) + HookFacts.done(account))
  }
}
