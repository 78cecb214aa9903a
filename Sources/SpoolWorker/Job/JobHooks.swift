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

  static func digests(_ declared: Digests?) -> [ChildProcess.Variable] {
    DigestAlgorithm.allCases.map { .init($0.variable, declared?[$0].map { "\($0)" } ?? "") }
  }
}

extension DigestAlgorithm {
  /// The environment variable of hooks for such a digest.
  var variable: String { "SPOOLRUN_\(rawValue.uppercased().split(at: "-").joined(separator: "_"))" }
}

/// Passes a published payload on by the spool's hook `deliver`, before its job is done.
@WorkerLoop
struct PayloadDelivery {
  private let claim: Claim
  private let plan: JobPlan
  private let environment: JobEnvironment
  private let hooks: Hooks
  /// Of the attempt, in ``JobEnvironment/deliveries``.
  private let id: UInt64

  init(_ claim: Claim, _ plan: JobPlan, _ environment: JobEnvironment, _ hooks: Hooks, id: UInt64) {
    (self.claim, self.plan, self.environment) = (claim, plan, environment)
    (self.hooks, self.id) = (hooks, id)
  }

  /// Whether there is such a hook.
  var isWanted: Bool { hooks.has(.deliver) }

  /// - Parameter whole: the end of the payload, which has its final name, durably.
  /// - Returns: when the hook accepted it; nil if there is none any more.
  /// - Throws: ``Failure``: `deliver`; ``JobStop``, ``SpoolError``.
  func run(_ whole: Mark) async throws -> Timestamp? {
    try await journal()
    if hooks.stop.isRequested { throw JobStop.cancelled }
    guard await environment.deliveries.enter(id) else { throw JobStop.cancelled }
    defer { environment.deliveries.leave() }
    switch await hooks.run(
      .deliver, job: claim.job.fileName, environment.facts(plan, whole, in: claim.spool))
    {
    case nil: return nil
    case .yes: return .now()
    case .no(let reason), .nothing(let reason):
      // The signal that stops the worker may have ended the hook. Then the attempt is stopped here, and this is no
      // failure.
      environment.lookForStop()
      throw Failure(.deliver, "the deliver hook failed: \(reason)")
    }
  }

  /// Records that only the delivery is left. After a power cut the next worker must know this as well, because others
  /// may have seen the payload by then.
  private func journal() async throws {
    // Failed deliveries are counted from this line on.
    if !claim.origin.takesDrops, claim.text.journal.publication.awaitsDelivery { return }
    let directory = try environment.outputs(of: plan).location
    try claim.append(.published(.now(), output: plan.output.text, directory: directory))
    try await claim.makeDurable(environment.durable)
    let fields = Fields().with("output", plan.output.text)
    environment.log(Event("published", .info, job: claim.job.fileName, fields))
  }
}
