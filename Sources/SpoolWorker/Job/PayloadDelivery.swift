internal import Spool

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
