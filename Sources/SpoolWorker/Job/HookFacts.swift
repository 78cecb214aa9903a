internal import Spool
internal import Transfer

/// What the hooks `done` and `failed` are told of a job (spool.5, HOOKS). A missing fact is an empty value.
enum HookFacts {
  /// What is known of the attempt that took the job to `done/`, beside its payload.
  static func done(_ account: AttemptAccount) -> [ChildProcess.Variable] {
    [
      ("ATTEMPTS", "\(account.number)"), ("SECONDS", "\(account.seconds)"), ("FETCHED", "\(account.fetched)"),
      ("RATE", account.rate.map { "\($0)" } ?? ""),
    ].map { .init("SPOOLRUN_\($0)", $1) }
  }

  /// - Parameters:
  ///   - record: the fields of a `failed:` line.
  ///   - seconds: since the first attempt began; nil for what is not a valid job.
  static func failed(_ record: Fields, seconds: Int64?) -> [ChildProcess.Variable] {
    [
      ("CODE", "code"), ("CLASS", "class"), ("REASON", "reason"), ("LINE", "line"), ("ATTEMPTS", "attempt"),
      ("AT", "at"), ("FETCHED", "fetched"), ("EXPECTED", "expected"), ("FOUND", "found"), ("TRIED", "tried"),
    ].map { .init("SPOOLRUN_\($0)", record[$1] ?? "") } + [.init("SPOOLRUN_SECONDS", seconds.map { "\($0)" } ?? "")]
  }

  /// What a job asks for.
  /// - Parameter request: nil for what is not a valid job.
  static func wish(_ request: JobRequest?) -> [ChildProcess.Variable] {
    let url = request?.urls.first.flatMap { try? URLParts($0.text) }?.redacted
    let output = request.flatMap { JobPlan.output(of: $0) }
    let size = request?.expected.size.map { "\($0)" }
    return [
      .init("SPOOLRUN_URL", url ?? ""), .init("SPOOLRUN_OUTPUT", output ?? ""), .init("SPOOLRUN_SIZE", size ?? ""),
    ] + digests(request?.expected.digests)
  }

  /// All digests that a job declares.
  static func digests(_ declared: Digests?) -> [ChildProcess.Variable] {
    DigestAlgorithm.allCases.map { .init($0.variable, declared?[$0].map { "\($0)" } ?? "") }
  }
}

extension DigestAlgorithm {
  /// The environment variable of hooks for such a digest.
  var variable: String { "SPOOLRUN_\(rawValue.uppercased())" }
}
