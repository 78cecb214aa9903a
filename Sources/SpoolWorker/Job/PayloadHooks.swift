internal import Spool
internal import Transfer

/// Runs the spool's hooks with their environment variables.
extension JobEnvironment {
  /// - Parameter stop: stops the running hook.
  func hooks(of spool: Spool, _ stop: ChildStop) -> Hooks {
    Hooks(spool: spool, stop: stop) { [log] event in log(event) }
  }

  /// The environment variables that describe a payload.
  func facts(_ plan: JobPlan, _ whole: Mark, in spool: Spool) -> [ChildProcess.Variable] {
    let digests = whole.digests.all.map { digest in
      ChildProcess.Variable("SPOOLRUN_\(digest.algorithm.rawValue.uppercased())", "\(digest)")
    }
    // The payload has been published there.
    let directory = (try? outputs(of: plan))?.location ?? "\(spool.location)/files"
    return [
      .init("SPOOLRUN_OUTPUT", plan.output.text), .init("SPOOLRUN_URL", plan.mirrors[0].redacted),
      .init("SPOOLRUN_DIRECTORY", directory),
      .init("SPOOLRUN_SIZE", "\(whole.offset)"),
    ] + digests
  }

  /// Runs the `failed` hook for a job that is given up.
  /// - Parameter record: the fields of a `failed:` line.
  func tellFailed(_ job: FileName, _ record: Fields, in spool: Spool, _ stop: ChildStop) async {
    _ = await hooks(of: spool, stop).run(.failed, job: job, Hooks.failure(record))
  }

  /// Runs the `done` hook for a payload.
  func tellDone(_ job: FileName, _ plan: JobPlan, _ whole: Mark, in spool: Spool, _ stop: ChildStop) async {
    _ = await hooks(of: spool, stop).run(.done, job: job, facts(plan, whole, in: spool))
  }
}
