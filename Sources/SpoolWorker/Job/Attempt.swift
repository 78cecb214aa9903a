internal import Spool

/// One attempt at a claimed job: claim → plan → recover → transfer → verify → commit → record.
@WorkerLoop
final class Attempt {
  /// What an attempt reports to the schedule while it runs.
  enum Milestone: Sendable {
    /// It has run long enough to show that it does not kill the worker.
    case cleared
    /// It no longer needs its connection.
    case transferred
    /// Bytes come, so the server can be reached.
    case answered
  }

  let claim: Claim
  let id: UInt64
  let environment: JobEnvironment
  let account = AttemptAccount()
  let hookStop = ChildStop()
  private(set) lazy var hooks = environment.hooks(of: claim.spool, hookStop)
  private(set) lazy var checkpointer = Checkpointer(claim, environment) { [unowned self] in checkpointFailed($0) }
  /// The data, from its recovery to the end of the attempt.
  var data: PartData?
  var trust: Trust
  var stopped: JobStop?
  var download: (any RunningTransfer)?
  var probation: Probation
  var lastHeartbeat = LoopExecutor.milliseconds()
  private let note: (Milestone) -> Void

  /// - Parameters:
  ///   - id: unique among the worker's attempts; the ids of its requests derive from it.
  ///   - note: called at each milestone.
  init(_ claim: Claim, id: UInt64, _ environment: JobEnvironment, note: @escaping (Milestone) -> Void) {
    self.claim = claim
    self.id = id
    self.environment = environment
    self.note = note
    trust = claim.isTakenOver ? .doubtful : .sound
    probation = Probation(
      deaths: claim.origin.takesDrops
        ? 0
        : claim.text.journal.attempts.deaths(
          askedBy: claim.spool.owner, isLastFrozen: claim.formerOwner == .mayWake),
      period: environment.options.probation)
  }

  var name: FileName { claim.job.fileName }

  /// Takes the job to `done/`, or ends the attempt otherwise. Throws nothing, because each error leads to an
  /// ``Ending``.
  func run() async -> AttemptEnd {
    defer { data?.leaveSpace() }
    var end: AttemptEnd
    do {
      end = try await takeToDone()
    } catch {
      if let loss = error as? LostWrites { trust = .lost(loss.error) }
      end = await self.end(Ending.Cause(error))
    }
    end.connectivity =
      account.connectivity == .unknown && account.fetched > 0 ? .open : account.connectivity
    return end
  }

  func reached(_ milestone: Milestone) { note(milestone) }

  func log(_ event: Event) { environment.log(event) }
}

extension Claim {
  /// Whether the last attempt has no end record, because its worker was killed, even if the job was moved since.
  var isTakenOver: Bool { origin == .cur || text.journal.attempts.isOpen }
}
