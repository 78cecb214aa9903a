internal import Spool

/// An attempt that ends because another job has its output.
extension Attempt {
  /// Puts the job back, without a failure.
  func wait(for awaited: AwaitedOutput) throws -> AttemptEnd {
    let job = name
    if data == nil {
      try claim.wait(for: awaited)
    } else {
      _ = try noteInterrupted(awaited.reason)
      try closeData()
      try claim.park(until: awaited.until)
    }
    log(Event("waits-for-output", .info, job: job, awaited.facts))
    var end = AttemptEnd(.waiting)
    end.retry = awaited.until
    return end
  }
}
