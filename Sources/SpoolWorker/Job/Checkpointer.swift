internal import Spool
internal import SystemPackage

/// Makes the received data durable from time to time, and journals how far it is durable.
@WorkerLoop
final class Checkpointer {
  enum Problem: Sendable {
    /// The data's fsync failed.
    case lostWrites(SpoolError)
    case other(SpoolError)
  }

  /// Whether a checkpoint may begin.
  var isAllowed = false
  private let claim: Claim
  private let environment: JobEnvironment
  private let failed: (Problem) -> Void
  private var current: Task<Void, Never>?

  init(_ claim: Claim, _ environment: JobEnvironment, failed: @escaping (Problem) -> Void) {
    self.claim = claim
    self.environment = environment
    self.failed = failed
  }

  /// Waits for the checkpoint that is being written, because it uses the data's descriptor.
  func finish() async { await current?.value }

  func beginIfDue(_ data: PartData) {
    guard isAllowed, current == nil, data.isCheckpointDue(environment.options) else { return }
    data.noteCheckpointBegun()
    let part = data.part
    let mark = part.mark
    let generation = data.generation
    current = WorkerLoop.start {
      // Other data may replace this data meanwhile, but the checkpoint uses its descriptor until it ends.
      defer { withExtendedLifetime(part) {} }
      await self.write(data, mark, of: part, generation)
      self.current = nil
    }
  }

  private func write(_ data: PartData, _ mark: Mark, of part: PartFile, _ generation: Int) async {
    let (flush, cache) = (part.flush, part.cache)
    // The most recent data stays in the page cache, because the payload is likely to be read soon.
    let kept = environment.options.checkpointBytes
    do throws(SpoolError) {
      try await runBlocking { () throws(SpoolError) in
        try flush.run()
        if mark.offset > kept { cache.forget(before: mark.offset - kept) }
      }
    } catch {
      return failed(.lostWrites(error))
    }
    // The transfer continued meanwhile and may have started over. Then this mark describes bytes that are gone.
    guard data.generation == generation else { return }
    do {
      try data.noteCheckpoint(mark, longJournal: environment.options.longJournal)
      try await claim.makeDurable(environment.durable)
      environment.log(Event("checkpoint", .debug, job: claim.job.fileName, Fields().with("at", mark.offset)))
    } catch {
      let error = error as? SpoolError
      failed(.other(error ?? SpoolError(call: .fdatasync, path: claim.job.display, errno: .ioError)))
    }
  }
}
