internal import Spool

/// One attempt at a claimed job: claim → recover → plan → transfer → verify → commit → record.
@WorkerLoop
final class Attempt {
  /// What the schedule is told while the attempt goes on.
  enum Milestone: Sendable {
    /// It has run for long enough to show that it kills no worker.
    case cleared
    /// It needs its connection no more.
    case transferred
  }

  let claim: Claim
  let id: UInt64
  let environment: JobEnvironment
  let account = AttemptAccount()
  let hookStop = ChildStop()
  private(set) lazy var checkpointer = Checkpointer(claim, environment) { [unowned self] in checkpointFailed($0) }
  /// The data, from its recovery to the attempt's end.
  var data: PartData?
  var trust: Trust
  var stopped: JobStop?
  var download: Download?
  var probation: Probation
  var lastHeartbeat = LoopExecutor.milliseconds()
  private let note: (Milestone) -> Void

  /// - Parameters:
  ///   - id: tells this attempt from all others of the worker, and its requests from theirs.
  ///   - note: called at each milestone.
  init(_ claim: Claim, id: UInt64, _ environment: JobEnvironment, note: @escaping (Milestone) -> Void) {
    self.claim = claim
    self.id = id
    self.environment = environment
    self.note = note
    trust = claim.isTakenOver ? .doubtful : .sound
    probation = Probation(
      deaths: claim.origin == .new ? 0 : claim.text.journal.attempts.deaths(askedBy: claim.spool.owner),
      period: environment.options.probation)
  }

  var name: FileName { claim.job.fileName }

  /// Takes the job to `done/`, or ends the attempt in another way; throws nothing, because each trouble has its ending.
  func run() async -> AttemptEnd {
    defer { data?.leaveSpace() }
    do {
      return try await takeToDone()
    } catch {
      if let loss = error as? LostWrites { trust = .lost(loss.error) }
      return await end(Ending.Cause(error))
    }
  }

  func reached(_ milestone: Milestone) { note(milestone) }

  func log(_ event: Event) { environment.log(event) }
}

extension Claim {
  /// Whether whoever worked on the job last could not say how that ended, wherever the job was moved since.
  var isTakenOver: Bool { origin == .cur || text.journal.attempts.isOpen }
}
