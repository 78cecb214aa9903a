internal import Spool

/// Checks data that is whole: against what the job and the server say of it, then by the spool's own `verify` hook.
@WorkerLoop
struct Verification {
  private let plan: JobPlan
  private let data: PartData
  private let environment: JobEnvironment
  private let hookStop: ChildStop
  private var claim: Claim { data.claim }

  init(_ plan: JobPlan, _ data: PartData, _ environment: JobEnvironment, hookStop: ChildStop) {
    self.plan = plan
    self.data = data
    self.environment = environment
    self.hookStop = hookStop
  }

  func run() async throws {
    try check()
    try await askHook()
  }

  private func check() throws(Failure) {
    let part = data.part
    // Fetched when more was allowed.
    if let failure = data.request.tooLarge(part.length) { throw failure }
    let expected = Expectation(size: data.total, digests: data.request.expected.digests)
    if let mismatch = expected.mismatch(part.mark) { throw Failure(mismatch) }
  }

  /// The spool's own `verify` program has the last word on a payload.
  private func askHook() async throws {
    let hooks = environment.hooks(of: claim.spool, hookStop)
    guard hooks.has(.verify) else { return }
    let payload = Array("\(claim.spool.location)/".utf8) + data.part.path.bytes
    let seal = try data.part.seal()
    let answer = await hooks.run(
      .verify, job: claim.job.fileName,
      environment.facts(plan, data.part.mark, in: claim.spool) + [.init("SPOOLRUN_PAYLOAD", payload)])
    // What is set aside anyway, nobody has to vouch for.
    if case .no(let reason) = answer { throw Failure(.rejected, "the verify hook rejected the data: \(reason)") }
    try await checkSeal(seal)
    if case .nothing(let reason) = answer {
      // What ends the worker has ended the hook: then the attempt is stopped by now, and this is no failure.
      environment.lookForStop()
      throw Failure(.hook, "the verify hook gave no answer: \(reason)")
    }
  }

  /// A hook may be root, whom no mode and no descriptor keeps from writing. The data is read again only where something
  /// was done to its file.
  private func checkSeal(_ seal: FileStatus.Stamp) async throws {
    let part = data.part
    let stamp = try part.stamp()
    if stamp == seal { return }
    func changed(_ expected: String, _ found: String) -> Failure {
      Failure(
        .hookChanged, "the verify hook changed the data: let it work on a copy", expected: expected, found: found)
    }
    guard stamp.size == seal.size else { throw changed("\(seal.size)", "\(stamp.size)") }
    let expected = part.mark
    let found = try await runBlocking {
      [reading = part.reading(from: .zero, to: expected.offset)] in
      try reading.run()
    }
    guard found == expected else { throw changed("\(expected.checksum)", "\(found.checksum)") }
  }
}
