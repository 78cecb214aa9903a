internal import Spool
internal import Transfer

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
    let directory = (try? outputs(of: plan))?.location ?? "\(spool.location)/files"
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
  func tellFailed(_ job: FileName, _ record: Fields, of request: JobRequest?, _ hooks: Hooks) async {
    _ = await hooks.run(.failed, job: job, Hooks.failure(record) + Self.wish(request))
  }

  /// What a job asks for. A missing fact is an empty value.
  private static func wish(_ request: JobRequest?) -> [ChildProcess.Variable] {
    let url = request?.urls.first.flatMap { try? URLParts($0.text) }?.redacted
    let output = request.flatMap { JobPlan.output(of: $0) }
    return [.init("SPOOLRUN_URL", url ?? ""), .init("SPOOLRUN_OUTPUT", output ?? "")]
  }

  /// Runs the `done` hook for a payload.
  /// - Parameter seconds: since the first attempt began.
  func tellDone(_ job: FileName, _ plan: JobPlan, _ whole: Mark, seconds: Int64, _ hooks: Hooks) async {
    _ = await hooks.run(
      .done, job: job, facts(plan, whole, in: hooks.spool) + [.init("SPOOLRUN_SECONDS", "\(seconds)")])
  }
}

extension DigestAlgorithm {
  /// The environment variable of hooks for such a digest.
  var variable: String { "SPOOLRUN_\(rawValue.uppercased())" }
}
