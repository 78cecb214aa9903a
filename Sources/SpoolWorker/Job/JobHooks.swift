internal import Spool
internal import Transfer

/// What the spool's hooks are told of a job (spool.5, HOOKS). A missing fact is an empty value.
extension JobEnvironment {
  func hooks(of spool: Spool, _ stop: ChildStop) -> Hooks {
    Hooks(spool: spool, stop: stop) { [log] event in log(event) }
  }

  /// - Parameter directory: the output directory; nil for the spool's `files`.
  func facts(
    _ plan: JobPlan, _ directory: String?, _ size: UInt64, _ digests: Digests, in spool: Spool
  ) -> [ChildProcess.Variable] {
    [
      .init("SPOOLRUN_OUTPUT", plan.output.text), .init("SPOOLRUN_URL", plan.shownURL ?? ""),
      .init("SPOOLRUN_DIRECTORY", directory ?? "\(spool.location)/files"), .init("SPOOLRUN_SIZE", "\(size)"),
    ] + digests.all.map { .init($0.algorithm.variable, "\($0)") }
  }

  /// - Parameter record: the fields of a `failed:` line.
  /// - Parameters request, seconds: nil for what is not a valid job. `seconds` counts from its first attempt.
  func tellFailed(_ job: FileName, _ record: Fields, of request: JobRequest?, seconds: Int64?, _ hooks: Hooks) async {
    let fields: [ChildProcess.Variable] = [
      ("CODE", "code"), ("CLASS", "class"), ("REASON", "reason"), ("LINE", "line"), ("ATTEMPTS", "attempt"),
      ("AT", "at"), ("FETCHED", "fetched"), ("EXPECTED", "expected"), ("FOUND", "found"), ("TRIED", "tried"),
    ].map { .init("SPOOLRUN_\($0)", record[$1] ?? "") }
    let wish: [ChildProcess.Variable] = [
      ("SECONDS", seconds.map { "\($0)" }), ("SIZE", request?.expected.size.map { "\($0)" }),
      ("URL", request?.urls.first.flatMap { try? URLParts($0.text) }?.redacted),
      ("OUTPUT", request.flatMap { JobPlan.output(of: $0) }),
    ].map { .init("SPOOLRUN_\($0)", $1 ?? "") }
    _ = await hooks.run(.failed, job: job, fields + wish + DigestAlgorithm.variables(of: request?.expected.digests))
  }

  func tellDone(
    _ job: FileName, _ plan: JobPlan, _ directory: String?, _ payload: Journal.Verified, _ account: AttemptAccount,
    _ hooks: Hooks
  ) async {
    // Asked for only if there is the hook.
    func facts() -> [ChildProcess.Variable] {
      [
        ("ATTEMPTS", "\(account.number)"), ("SECONDS", "\(account.seconds)"), ("FETCHED", "\(account.fetched)"),
        ("RATE", account.rate.map { "\($0)" } ?? ""),
      ].map { .init("SPOOLRUN_\($0)", $1) }
    }
    let known = self.facts(plan, directory, payload.size, payload.digests, in: hooks.spool)
    _ = await hooks.run(.done, job: job, known + facts())
  }

  /// The failure of a job whose hook gave no answer. The signal that stops the worker may have ended the hook: then the
  /// attempt is stopped here, and this is no failure.
  func failure(_ code: FailureCode, _ reason: String) -> Failure {
    lookForStop()
    return Failure(code, reason)
  }
}

extension DigestAlgorithm {
  fileprivate var variable: String { "SPOOLRUN_\(rawValue.uppercased().split(at: "-").joined(separator: "_"))" }

  static func variables(of declared: Digests?) -> [ChildProcess.Variable] {
    allCases.map { .init($0.variable, declared?[$0].map { "\($0)" } ?? "") }
  }
}
