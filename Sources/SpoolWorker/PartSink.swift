internal import Spool
internal import Transfer

/// Takes one response in: its verdict first, then its bytes. Called by libcurl's thread, which is the loop's.
final class PartSink: FetchSink {
  private let run: JobRun.State
  private let plan: ResumePlan
  private let mirror: Int
  private let host: String

  /// Why the response was refused.
  private(set) var refusal: Refusal?
  enum Refusal {
    case startOver(String)
    case askUnbounded(String)
    case complete
    case failed(any Error)
  }

  init(_ run: JobRun.State, plan: ResumePlan, mirror: Int, host: String) {
    self.run = run
    self.plan = plan
    self.mirror = mirror
    self.host = host
  }

  func accept(_ head: ResponseHead) -> Bool {
    let verdict = ResponseVerdict.judge(
      head, plan: plan, version: run.version, mirror: mirror, request: run.request, host: host, now: .now())
    do {
      switch verdict {
      case .append(let version):
        try run.begin(version)
        // After the journal has the size: a job that has to wait for room is not asked for again until there is.
        try run.checkRoom()
        return true
      case .replace(let version):
        try run.discardData()
        try run.begin(version)
        try run.checkRoom()
        return true
      case .startOver(let reason):
        refusal = .startOver(reason)
      case .askUnbounded(let reason):
        refusal = .askUnbounded(reason)
      case .complete:
        refusal = .complete
      case .fail(let failure):
        refusal = .failed(failure)
      }
    } catch {
      refusal = .failed(error)
    }
    return false
  }

  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    do {
      try run.append(bytes, host: host)
      return true
    } catch {
      refusal = .failed(error)
      return false
    }
  }
}
