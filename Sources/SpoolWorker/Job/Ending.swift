internal import Spool

/// How an attempt that did not succeed ends. Pure: a function of its error, ownership and trust.
enum Ending {
  /// Journal the failure; the job waits for its next attempt, or is given up.
  case fail(Failure)
  /// Put the job back without a failure; it is due at once.
  case park(reason: String)
  /// Put the job back until another job is done with its output, or its server may be asked.
  case wait(JobWait)
  /// It is no longer this worker's. Leave the job where it is; if a person removed it, remove its data, too.
  case letGo(Claim.Ownership)
  /// The last move is made, but what was written before it may be lost (close(2), on a network file system).
  case doubtMove
  /// The receipt is written, and only the move to `done/` is left, for whoever can make it.
  case leaveReceipt

  /// The job, whose receipt is written, could not be moved to `done/`.
  struct Unmoved: Error { let error: SpoolError }

  /// - Parameter ownership: nil after the claim's last move.
  /// - Parameter trust: how far the attempt's writes are trusted.
  static func decide(_ cause: any Error, _ ownership: Claim.Ownership?, _ trust: Trust) -> Ending {
    guard var owner = ownership else { return .doubtMove }
    // As a tick saw it, even if the file is back in its place by now.
    if owner == .ours, case .notOurs(let seen)? = cause as? JobStop { owner = seen }
    guard owner == .ours else { return .letGo(owner) }
    switch cause {
    case is Unmoved: return .leaveReceipt
    case let stop as JobStop: return decide(stop, trust)
    case let problem as OutputRootProblem: return decide(.noOutput("\(problem)"), trust)
    case let failure as Failure: return .fail(failure)
    default: break
    }
    let problem = Self.problem(cause)
    return .fail((problem as? SpoolError).map { Failure($0) } ?? Failure(.io, "\(problem)"))
  }

  /// The spool's error, if `cause` has one in it.
  static func problem(_ cause: any Error) -> any Error {
    (cause as? LostWrites)?.error ?? (cause as? Unmoved)?.error ?? cause
  }

  private static func decide(_ stop: JobStop, _ trust: Trust) -> Ending {
    let ending: Ending
    switch stop {
    case .failed(let error): return .fail(Failure(error))
    case .shutdown, .cancelled, .notOurs: ending = .park(reason: "the worker was told to stop")
    case .outranked: ending = .park(reason: "a job of high priority needs its slot")
    case .noSpace(let shortage): ending = .park(reason: "not enough disk space: \(shortage)")
    case .noOutput(let problem): ending = .park(reason: "no output directory: \(problem)")
    case .waits(let wait): ending = .wait(wait)
    }
    // The next attempt has to know that a failed fsync lost data.
    if case .lost(let error) = trust { return .fail(Failure(error)) }
    return ending
  }

  /// Whether this ending writes to or moves the claim's file.
  var needsClaim: Bool {
    switch self {
    case .fail, .park, .wait: true
    case .letGo, .doubtMove, .leaveReceipt: false
    }
  }
}

struct AttemptEnd {
  enum Fate: Sendable {
    case done, waiting, givenUp, cancelled
    /// A person moved it away, or another worker has it now.
    case moved
    /// A standing order waits for its next check.
    case checked
  }

  let fate: Fate
  /// When the next attempt is due; nil for at once.
  var retry: Timestamp?
  var hasDropped = false
  var isOrder = false
  /// It waits for a network, or for these servers or proxies to come back.
  var awaited: [String] = []
  /// The spool failed: the job cannot be moved, or its last move may not be durable.
  var problem: (any Error)?

  init(_ fate: Fate, retry: Timestamp? = nil, problem: (any Error)? = nil) {
    (self.fate, self.retry, self.problem) = (fate, retry, problem)
  }
}

/// The numbers of one attempt, for its records and for progress reports.
final class AttemptAccount {
  /// Counted from 1 since the job last was in `new/`; 0 before it is known.
  var number = 0
  /// By the spool's clock.
  let began: Timestamp
  private let beganAt = LoopExecutor.milliseconds()
  /// From the begin of the first attempt to the receipt.
  private(set) var milliseconds: Int64 = 0
  var seconds: Int64 { milliseconds / 1000 }
  var fetched: UInt64 = 0
  /// The same in all attempts, for the receipt.
  var fetchedInAll: UInt64 = 0
  /// What the transfer brought, and how many milliseconds it took; nil if there was none.
  var transfer: (bytes: UInt64, milliseconds: Int64)?
  /// Data of a mirror was set aside because it was not what the job declares.
  var hasSetAside = false
  /// The job is in `done/`, but may not be there durably.
  var doubt: (any Error)?
  /// The length of the data when the attempt opened it, and when it closed it.
  var lengthAtStart: UInt64 = 0
  var lengthAtEnd: UInt64 = 0

  init(began: Timestamp) { self.began = began }

  /// Takes the time until the receipt.
  /// - Parameter first: when the first attempt began, in whole seconds; nil if this one is the first.
  func end(_ receipt: Timestamp, since first: Timestamp?) {
    milliseconds = max(0, first.map { (receipt.seconds - $0.seconds) * 1000 } ?? LoopExecutor.milliseconds() - beganAt)
  }

  /// Bytes per second of the transfer; nil if it brought nothing.
  var rate: UInt64? {
    guard let transfer, transfer.bytes > 0 else { return nil }
    return UInt64(min(Double(transfer.bytes) / Double(max(1, transfer.milliseconds)) * 1000, 1e18))
  }
}

extension FailureRecord {
  /// A failure of a proxy or a server is told once for all jobs: `proxy-failed`, `server-rests`.
  var eventLevel: Event.Level {
    if retry == nil { return .error }
    return failure.proxy == nil && failure.rest == nil ? .warning : .info
  }
}
