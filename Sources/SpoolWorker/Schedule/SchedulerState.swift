internal import Spool

/// What is left to do, as far as is known.
extension Scheduler {
  /// Whether there is no job to start.
  var hasNoCandidates: Bool { backlog.isEmpty && slots.outputs.count == 0 }

  /// Whether nothing is left to do, according to a pass that began after the last job's end.
  var isSettled: Bool {
    backlog.isEmpty && passes.areSettled && isFresh && !backlog.isSomethingPassedOver && !slots.outputs.hasPassedOver
  }

  /// Whether all remaining jobs wait for space.
  var onlySpaceIsWantedFor: Bool { backlog.isEmpty && isFresh && passes.areSettled && !spaceWait.isEmpty }

  /// Why no job may start, if all that are left wait for a proxy that fails.
  func proxyObstacle(at now: Int64) -> String? {
    guard slots.areIdle, passes.areSettled, !hasNoCandidates else { return nil }
    let free = slots.free(at: now)
    return backlog.areHeldBack(by: free) && slots.outputs.areHeldBack(by: free) ? slots.proxies.reason : nil
  }

  /// Whether there may be more jobs than those in the backlog.
  var areMore: Bool { passes.areRunning || backlog.isSomethingPassedOver || slots.outputs.hasPassedOver }
}
