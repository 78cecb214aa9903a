internal import Spool

/// What this worker tells the service manager that has started it.
extension Worker {
  /// Tells what is new. To be called in each turn of the loop, so that a loop that hangs gives no sign of life.
  /// - Returns: `most`, or the milliseconds until something is due, if that is sooner.
  func tellServiceManager(_ stage: ServiceNews.Stage, most: Int64) -> Int64 {
    guard let manager = environment.options.serviceManager else { return most }
    let now = LoopExecutor.milliseconds()
    if let problem = manager.tell(stage, stage == .stopping ? "stopping" : activity, at: now) {
      log(Event("no-service-manager", .warning, Fields().with("reason", problem)))
    }
    return min(most, manager.untilDue(at: now))
  }

  /// What it does, for a person.
  private var activity: String {
    let (progress, summary) = (progress(), account.summary)
    var parts = [
      "\(progress.running.count) running",
      "\(progress.moreWait && progress.waiting > 0 ? "at least " : "")\(progress.waiting) waiting",
    ]
    for (count, what) in [(summary.waiting, "to retry"), (summary.done, "done"), (summary.givenUp, "failed")]
    where count > 0 {
      parts.append("\(count) \(what)")
    }
    return parts.joined(separator: ", ")
  }
}

extension WorkerOptions {
  /// Lets the worker tell the service manager that the environment names, if any, how it is.
  package mutating func takeServiceManager() { serviceManager = ServiceManager() }
}
