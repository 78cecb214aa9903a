internal import Spool
internal import SpoolStatus

/// How one file of `spoolrun get` ended, as far as this command goes.
enum GetEnd: Equatable {
  case done
  case isThere
  /// The reason why nothing was ordered.
  case refused(String)
  case failed(JobStatus.Problem?)
  case retrying(at: String, JobStatus.Problem?)
  /// The person has stopped the command.
  case stopped
  case paused
  case cancelled
  /// It is due, and the worker of this command could not run it.
  case left

  /// nil while there is something to wait for.
  init?(_ standing: JobStanding) {
    switch standing {
    case .waiting, .running, .due: return nil
    case .absent: self = .cancelled
    case .retrying(let next, let problem): self = .retrying(at: "\(next)", problem)
    case .paused: self = .paused
    case .failed(let problem): self = .failed(problem)
    case .done: self = .done
    }
  }

  var status: ExitStatus {
    switch self {
    case .done, .isThere: .success
    case .refused, .failed, .cancelled: .givenUp
    case .retrying, .stopped, .paused, .left: .waiting
    }
  }

  /// What to tell the person; nil for nothing.
  /// - Parameter isTerminal: whether standard error is a terminal.
  func sentence(isTerminal: Bool) -> String? {
    let again = "the same command goes on where it stopped"
    func text(_ problem: JobStatus.Problem?) -> String {
      problem.map { "\($0.code): \($0.reason)" } ?? "the attempt failed"
    }
    switch self {
    case .done: return isTerminal ? "done" : nil
    case .isThere: return "is there already, and is what its receipt says"
    case .refused(let reason): return reason
    case .failed(let problem) where problem?.code == FailureCode.outputExists.rawValue:
      return "exists, and nothing shows that it is this file: remove it, or use --overwrite"
    case .failed(let problem): return text(problem)
    case .retrying(let next, let problem):
      // Data that does not match is set aside.
      let isMismatch = problem?.code.hasPrefix("mismatch") ?? false
      let next = "a worker of the spool does so at \(next)"
      return "\(text(problem)); \(isMismatch ? "the same command fetches it again" : again); \(next)"
    case .stopped: return "stopped; \(again)"
    case .paused: return "somebody has paused its job; the same command releases it"
    case .cancelled: return "somebody has cancelled its job"
    case .left: return "could not be fetched now; \(again)"
    }
  }
}
