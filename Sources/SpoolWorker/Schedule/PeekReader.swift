internal import Spool
internal import Transfer

/// Reads what the schedule has to know of a job's text, once.
@WorkerLoop
struct PeekReader {
  private let spool: Spool
  private let environment: JobEnvironment
  private let began = LoopExecutor.milliseconds()

  init(_ spool: Spool, _ environment: JobEnvironment) {
    self.spool = spool
    self.environment = environment
  }

  func peek(at candidate: Candidate) throws(SpoolError) -> Peek {
    // A job that cannot be read, or names no URL, is for the claim to judge.
    guard let text = try? spool.job(candidate.origin, candidate.name), let url = text.request.urls.first,
      let parts = try? URLParts(url.text)
    else { return Peek(host: nil) }
    // Who sends a job through `new/` begins anew.
    let deaths =
      candidate.origin == .new || hasWaited(candidate) ? 0 : text.journal.attempts.deaths(askedBy: spool.owner)
    return Peek(
      host: "\(parts.scheme)://\(parts.host):\(parts.port)", deaths: deaths, needed: try needed(candidate, text))
  }

  /// Whether others have gone before it for long enough, where there are always some: since this worker began, and
  /// since the last heartbeat of the one that had it.
  private func hasWaited(_ candidate: Candidate) -> Bool {
    let probation = environment.options.probation
    guard LoopExecutor.milliseconds() - began >= probation else { return false }
    return (Timestamp.now().seconds - candidate.modified) * 1000 >= probation
  }

  /// Bytes that a job still lacks, as far as its text and its journal say; nil too where it needs no space, because the
  /// claim will give it up, or find that the payload is there.
  private func needed(_ candidate: Candidate, _ text: JobText) throws(SpoolError) -> UInt64? {
    // A dead worker's claim may only want its last move.
    guard environment.space.kept > 0, candidate.origin != .cur, let job = JobName(candidate.name), text.defect == nil
    else { return nil }
    let request = text.request.bounded(by: environment.options)
    if let expires = request.expires, expires <= .now() { return nil }
    // What an earlier answer said may have been of another URL, in a job that comes through `new/`.
    guard let size = (candidate.origin == .new ? nil : text.journal.data.version?.size) ?? request.expected.size else {
      return nil
    }
    guard let plan = try? JobPlan(request, protocols: environment.options.protocols) else { return nil }
    // Whatever keeps it from being looked at is for the claim to tell.
    if request.expected.provesContent, request.overwrite != true {
      do { if try environment.outputs.opened().status(plan.output) != nil { return nil } } catch { return nil }
    }
    let length = UInt64(clamping: try spool.status(.partial, job.part)?.size ?? 0)
    return size > length ? size - length : 0
  }
}
