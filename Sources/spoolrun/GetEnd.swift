internal import Spool
internal import SpoolStatus

/// How one file of `spoolrun get` ended, as far as this command goes.
enum GetEnd: Equatable {
  case done
  case isThere
  /// The reason why nothing was ordered.
  case refused(String)
  case failed(JobStatus.Problem?)
  case retrying(at: Timestamp, JobStatus.Problem?)
  /// The person has stopped the command, and with it the transfer.
  case stopped
  /// The person has stopped the command, and a worker goes on with the job.
  case goesOn
  case paused
  case cancelled
  /// It is due, and the worker of this command could not run it.
  case left

  /// nil while there is something to wait for.
  init?(_ standing: JobStanding) {
    switch standing {
    case .waiting, .running, .due: return nil
    case .absent: self = .cancelled
    case .retrying(let next, let problem): self = .retrying(at: next, problem)
    case .paused: self = .paused
    case .failed(let problem): self = .failed(problem)
    case .done: self = .done
    }
  }

  var status: ExitStatus {
    switch self {
    case .done, .isThere: .success
    case .refused, .failed, .cancelled: .givenUp
    case .retrying, .stopped, .goesOn, .paused, .left: .waiting
    }
  }

  /// What to tell the person.
  /// - Parameter now: for a terminal, where times are told from now on; nil for a log.
  func line(now: Timestamp?, _ look: Look) -> StyledLine {
    var line = StyledLine(look)
    let again = "the same command goes on where it stopped"
    func append(_ problem: JobStatus.Problem?, _ ink: Ink) {
      line.append(problem.map { "\(escaped($0.code)): \(escaped($0.reason))" } ?? "the attempt failed", ink)
    }
    switch self {
    case .done: line.append("done", .green)
    case .isThere: line.append("is there already, and is what its receipt says")
    case .refused(let reason): line.append(reason, .red)
    case .failed(let problem) where problem?.code == FailureCode.outputExists.rawValue:
      line.append("exists, and nothing shows that it is this file", .red)
      line.append(": remove it, or use --overwrite")
    case .failed(let problem): append(problem, .red)
    case .retrying(let next, let problem):
      append(problem, .yellow)
      // Data that does not match is set aside.
      let isMismatch = problem?.code.begins(with: "mismatch") ?? false
      line.append("; \(isMismatch ? "the same command fetches it again" : again)")
      line.append("; a worker of the spool does so \(next.told(from: now))")
    case .stopped: line.append("stopped; \(again)")
    case .goesOn: line.append("a worker of the spool goes on with it; the same command follows it again")
    case .paused: line.append("somebody has paused its job; the same command releases it")
    case .cancelled: line.append("somebody has cancelled its job")
    case .left: line.append("could not be fetched now; \(again)", .yellow)
    }
    return line
  }

  /// What a person can do about a failure; nil if it may be enough to wait, or if ``line(now:_:)`` says it.
  var advice: String? {
    switch self {
    case .failed(let problem?) where problem.code != FailureCode.outputExists.rawValue:
      return Advice(for: problem.code).text + " The same command tries again."
    case .retrying(_, let problem?):
      let advice = Advice(for: problem.code)
      return advice.isUrgent ? advice.text : nil
    default: return nil
    }
  }
}
