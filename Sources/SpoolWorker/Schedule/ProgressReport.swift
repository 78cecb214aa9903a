internal import Spool

/// What this worker reports while it runs.
extension Worker {
  /// Milliseconds between two reports while nothing runs.
  private static let idleInterval: Int64 = 1000

  /// Reports the progress if it is time.
  func reportProgress() {
    let isRunning = !dispatcher.scheduler.slots.areIdle
    guard let onProgress, isRunning || progressReported.isRunning || admission.stays else { return }
    let now = LoopExecutor.milliseconds()
    let interval = isRunning ? 190 : Self.idleInterval
    if isRunning == progressReported.isRunning, now - progressReported.at < interval { return }
    progressReported = (now, isRunning)
    onProgress(progress())
  }

  /// Milliseconds until a worker that stays reports again that nothing runs.
  var untilReport: Int64 {
    guard onProgress != nil, admission.stays, !progressReported.isRunning else { return .max }
    return progressReported.at + Self.idleInterval - LoopExecutor.milliseconds()
  }

  /// What runs and waits now.
  package func progress() -> WorkerProgress {
    let attempts = dispatcher.attempts
    let scheduler = dispatcher.scheduler
    // A pass also finds the claims of the jobs that run.
    let running = Set(attempts.map(\.name))
    let waiting = (scheduler.backlog.candidates + scheduler.slots.outputs.candidates).count { candidate in
      candidate.origin != .cur || !(ClaimName(candidate.name).map { running.contains($0.job.fileName) } ?? false)
    }
    var progress = WorkerProgress(
      running: attempts.map(\.progress), waiting: waiting, summary: account.summary,
      gained: attempts.reduce(account.summary.gained) { $0 &+ $1.gained })
    progress.moreWait = scheduler.areMore
    if attempts.isEmpty {
      progress.waits = waits
      progress.untilNext = scheduler.nextDue.map { max(0, $0 - spool.now().seconds) }
    }
    return progress
  }
}
