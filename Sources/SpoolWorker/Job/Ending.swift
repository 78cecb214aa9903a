internal import Spool

/// How an attempt that did not succeed ends. Pure: cause × ownership × trust.
enum Ending {
  /// The journal gets the failure; the job waits for its next attempt, or is given up.
  case fail(Failure)
  /// The worker puts the job down, without a failure: it is due at once.
  case park(reason: String)
  /// The job is not this worker's any more, and stays where it is.
  case letGo(Loss)
  /// A person removed the job: its data goes too.
  case remove
  /// The job made its last move before the trouble came: whether that is durable is all that is in doubt.
  case doubtDone

  enum Loss {
    /// Somebody moved the claim, or took it over.
    case moved
    /// Somebody wrote to the claim's file.
    case changed
  }

  /// Why an attempt ends.
  enum Cause {
    case stopped(JobStop)
    case failed(Failure)
    case broken(SpoolError)
  }

  /// - Parameters:
  ///   - ownership: nil where the claim has made its last move.
  ///   - trust: in what the attempt wrote.
  static func decide(_ cause: Cause, _ ownership: Claim.Ownership?, _ trust: Trust) -> Ending {
    switch ownership {
    case nil: return .doubtDone
    case .moved: return .letGo(.moved)
    case .changed: return .letGo(.changed)
    case .removed: return .remove
    case .ours: break
    }
    switch cause {
    case .failed(let failure): return .fail(failure)
    case .broken(let error): return .fail(Failure(error))
    case .stopped(let stop): return decide(stop, trust)
    }
  }

  private static func decide(_ stop: JobStop, _ trust: Trust) -> Ending {
    let reason: String
    switch stop {
    // What a tick saw, though the file is back in its place by now.
    case .lost(let ownership): return decide(.stopped(.shutdown), ownership, trust)
    case .failed(let error): return .fail(Failure(error))
    case .shutdown: reason = "the worker was told to stop"
    case .noSpace(let shortage): reason = "waits for room: \(shortage)"
    case .noOutput(let problem): reason = "waits for the output root: \(problem)"
    }
    // Whoever takes the job up has to know what an fsync lost.
    if case .lost(let error) = trust { return .fail(Failure(error)) }
    return .park(reason: reason)
  }

  /// Whether it takes the claim's own file to end so.
  var needsClaim: Bool {
    switch self {
    case .fail, .park: true
    case .letGo, .remove, .doubtDone: false
    }
  }
}

extension Ending.Cause {
  var error: any Error {
    switch self {
    case .stopped(let stop): stop
    case .failed(let failure): failure
    case .broken(let error): error
    }
  }

  init(_ error: any Error) {
    switch error {
    case let stop as JobStop: self = .stopped(stop)
    case let failure as Failure: self = .failed(failure)
    case let loss as LostWrites: self = .broken(loss.error)
    case let problem as OutputRootProblem: self = .stopped(.noOutput("\(problem)"))
    case let error as SpoolError: self = .broken(error)
    default: self = .failed(Failure(.io, "\(error)"))
    }
  }
}
