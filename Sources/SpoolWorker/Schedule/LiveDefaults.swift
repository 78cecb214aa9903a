internal import Spool

/// Reads the spool's `defaults` again while a worker runs. If they are wrong, those that were read before stay.
@WorkerLoop
struct LiveDefaults {
  private let spool: Spool
  private let environment: JobEnvironment
  /// What was wrong with them when they were last read, and has been reported.
  private var problem: String?

  init(_ spool: Spool, _ environment: JobEnvironment) {
    self.spool = spool
    self.environment = environment
  }

  /// - Returns: whether they have changed.
  mutating func read() -> Bool {
    let found: JobRequest
    do { found = try spool.defaults() } catch {
      let reason = "\(error)"
      if reason != problem {
        environment.log(Event("defaults-invalid", .error, Fields().with("reason", reason)))
      }
      problem = reason
      return false
    }
    let wasWrong = problem != nil
    let isNew = found != environment.options.defaults
    let isForNextStart = found.network != environment.options.defaults.network
    problem = nil
    if isNew { environment.options.defaults = found }
    if isNew || wasWrong {
      let facts = Fields().with("restart", isForNextStart ? "needed" : nil)
      environment.log(Event("defaults-read", wasWrong || isForNextStart ? .warning : .info, facts))
    }
    return isNew
  }
}
