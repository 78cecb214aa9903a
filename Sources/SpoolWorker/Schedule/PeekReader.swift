internal import Spool
internal import Transfer

/// Reads from a job's text what the schedule needs, in one go.
@WorkerLoop
struct PeekReader {
  private let spool: Spool
  private let environment: JobEnvironment
  private let claims: ClaimReader
  private let began = LoopExecutor.milliseconds()

  init(_ spool: Spool, _ environment: JobEnvironment, _ claims: ClaimReader) {
    self.spool = spool
    self.environment = environment
    self.claims = claims
  }

  /// - Returns: nil for a claim that cannot be read yet.
  func peek(at candidate: Candidate) throws(SpoolError) -> Peek? {
    let found: JobText?
    if candidate.origin == .cur {
      guard case .text(let text) = claims.read(candidate.name) else { return nil }
      found = text
    } else {
      found = try? spool.job(candidate.origin, candidate.name)
    }
    // If the job cannot be read or has no URL, the claim handles that.
    guard let text = found else { return Peek(host: nil) }
    let url = text.request.urls.first.flatMap { try? URLParts($0.text) }
    guard let host = Self.host(of: text.request, url) else { return Peek(host: nil) }
    // A job that was dropped starts over, whatever its journal says.
    let isOrder = text.request.isStandingOrder
    return Peek(
      host: host, deaths: try deaths(candidate, text), needed: isOrder ? nil : try needed(candidate, text),
      proxy: url.flatMap { environment.proxies.name(for: $0) },
      output: isOrder ? nil : JobPlan.rootAndOutput(of: text.request, url),
      priority: isOrder ? .normal : priority(candidate, text),
      isAged: !isOrder && spool.now().seconds - candidate.modified >= Self.day)
  }

  private func deaths(_ candidate: Candidate, _ text: JobText) throws(SpoolError) -> Int {
    if candidate.origin.takesDrops || hasWaited(candidate) { return 0 }
    let attempts = text.journal.attempts
    let all = attempts.deaths(askedBy: spool.owner)
    guard candidate.origin == .cur, let owner = ClaimName(candidate.name)?.owner else { return all }
    let deaths = Suspicion.counted(all, isByLease: !spool.sharesLocks(with: owner))
    guard deaths > 0, try spool.isOwnerFrozen(of: candidate.name) else { return deaths }
    return attempts.deaths(askedBy: spool.owner, isLastFrozen: true)
  }

  /// Jobs whose URL only the hook `resolve` knows count as of one server.
  private static func host(of request: JobRequest, _ url: URLParts?) -> String? {
    if request.urls.isEmpty { return request.resolve == nil ? nil : "resolve" }
    return url.map { "\($0.scheme)://\($0.host):\($0.port)" }
  }

  private static let day: Int64 = 86_400

  private func priority(_ candidate: Candidate, _ text: JobText) -> Priority {
    if candidate.origin == .urgent { return .high }
    let priority = text.priority(inheriting: environment.options.defaults)
    // A dead worker's claim may need only its last move.
    let needsMove = text.journal.attempts.endsInFailure || text.journal.publication.verified != nil
    return candidate.origin == .cur && needsMove ? min(priority, .normal) : priority
  }

  /// Whether the job has waited long enough for others to go first, even if there are always others: since this worker
  /// started, and since the last heartbeat of the worker that had the job.
  private func hasWaited(_ candidate: Candidate) -> Bool {
    let probation = environment.options.probation
    guard LoopExecutor.milliseconds() - began >= probation else { return false }
    return (spool.now().seconds - candidate.modified) * 1000 >= probation
  }

  /// Bytes that a job still needs, by its text and its journal. Also nil if it needs no space, because the claim will
  /// give it up or find that the payload exists.
  private func needed(_ candidate: Candidate, _ text: JobText) throws(SpoolError) -> UInt64? {
    // A dead worker's claim may need only its last move.
    guard environment.space.kept > 0, candidate.origin != .cur, let job = JobName(candidate.name), text.defect == nil
    else { return nil }
    let request = text.request.bounded(by: environment.options)
    if let expires = request.expires, expires <= spool.now() { return nil }
    // For a job that was dropped, the size in the journal may be that of another URL.
    guard let size = (candidate.origin.takesDrops ? nil : text.journal.data.version?.size) ?? request.expected.size
    else {
      return nil
    }
    guard let plan = try? JobPlan(request, protocols: environment.options.protocols) else { return nil }
    // If the output cannot be examined, the claim reports it.
    if request.expected.provesContent, request.overwrite != true {
      do { if try environment.outputs(of: plan).opened().status(plan.output) != nil { return nil } } catch {
        return nil
      }
    }
    let length = UInt64(clamping: try spool.status(.partial, job.part)?.size ?? 0)
    return size > length ? size - length : 0
  }
}
