internal import Spool

/// Asks the spool's hook `resolve` for the links of an attempt. What it prints stays in memory.
@WorkerLoop final class LinkResolver {
  private static let noSuchFile: Int32 = 100

  private let job: FileName
  private let text: String
  private let attempt: Int
  private let environment: JobEnvironment
  private let hooks: Hooks
  /// As the job asks for it, without what the hook says.
  private let plan: JobPlan
  private var renewal = LinkRenewal()

  /// nil for a job that does not ask for links.
  init?(_ plan: JobPlan, of claim: Claim, attempt: Int, _ environment: JobEnvironment, _ hooks: Hooks) {
    guard let text = plan.request.resolve?.text else { return nil }
    (self.plan, self.text, self.attempt) = (plan, text, attempt)
    job = claim.job.fileName
    (self.environment, self.hooks) = (environment, hooks)
  }

  /// Asks again where links may have expired.
  /// - Parameter current: the plan that they were in.
  /// - Returns: nil if the hook is not asked again.
  func ask(
    again current: JobPlan, after failures: [Failure], _ progress: FetchPolicy.Progress
  ) async throws(Failure) -> JobPlan? {
    guard let status = renewal.status(of: failures, progress) else { return nil }
    let next = try await ask(after: status)
    // The data is checked for what was said at first.
    guard next.request.expected == current.request.expected else {
      throw Failure(.resolveHook, "asked again, the resolve hook says another size or digest than before")
    }
    return next
  }

  /// - Parameter status: of the refusal that a link has got; nil for the first time.
  func ask(after status: Int? = nil) async throws(Failure) -> JobPlan {
    environment.log(Event("resolving", .info, job: job, Fields().with("attempt", attempt).with("status", status)))
    let answer = try await answer(after: status)
    let links: JobRequest
    do throws(Defect) {
      if answer.count > ChildProcess.outputLimit {
        throw Defect(line: nil, reason: "more than \(ChildProcess.outputLimit / 1024) KiB")
      }
      links = try JobRequest(links: answer, isForURL: !plan.mirrors.isEmpty)
    } catch {
      throw Failure(ofLinks: error)
    }
    return try plan.resolved(by: links, protocols: environment.options.protocols)
  }

  private func answer(after status: Int?) async throws(Failure) -> [UInt8] {
    let ended: ChildProcess.Outcome?
    do throws(Defect) { ended = try await hooks.start(.resolve, job: job, facts(after: status)) } catch {
      throw Failure(.resolveHook, "the resolve hook was not run: \(error.reason)")
    }
    guard let outcome = ended else {
      throw Failure(
        .unresolvable, "the job says `resolve:`, and the spool has no program hooks/resolve",
        line: plan.request.resolve?.number)
    }
    switch outcome.end {
    case .exited(0): return outcome.answer
    case .exited(Self.noSuchFile):
      throw Failure(.unresolvable, "the resolve hook says that there is no such file: \(outcome.reason)")
    default: throw environment.failure(.resolveHook, "the resolve hook gave no links: \(outcome.reason)")
    }
  }

  private func facts(after status: Int?) -> [ChildProcess.Variable] {
    [
      .init("SPOOLRUN_RESOLVE", text), .init("SPOOLRUN_OUTPUT", plan.output.text),
      .init("SPOOLRUN_URL", plan.shownURL ?? ""), .init("SPOOLRUN_ATTEMPT", "\(attempt)"),
      .init("SPOOLRUN_STATUS", status.map { "\($0)" } ?? ""),
      .init("SPOOLRUN_SIZE", plan.request.expected.size.map { "\($0)" } ?? ""),
    ] + DigestAlgorithm.variables(of: plan.request.expected.digests)
  }
}

/// Decides whether the hook `resolve` is asked again within an attempt: after a refusal that an expired link or login
/// explains, once for each time that bytes came. Pure.
struct LinkRenewal {
  /// What servers answer to an expired link or login. Not 404: the file is gone.
  private static let statuses: Set<Int> = [400, 401, 403, 410]

  /// The furthest point that the data reached before the hook was last asked.
  private var reached: UInt64 = 0
  private var wasAsked = false
  private var smallSteps = SmallSteps()

  mutating func status(of failures: [Failure], _ progress: FetchPolicy.Progress) -> Int? {
    // With other links the data could go on although it is wrong.
    guard !failures.contains(where: { $0.code.isMismatch || $0.code == .tooLarge }),
      let status = failures.lazy.compactMap(\.status).first(where: { Self.statuses.contains($0) })
    else { return nil }
    let gained = progress.length > reached ? progress.length - reached : 0
    if wasAsked {
      smallSteps.note(gained)
      if gained == 0 || smallSteps.areTooMany { return nil }
    }
    reached = max(reached, progress.length)
    wasAsked = true
    return status
  }
}
