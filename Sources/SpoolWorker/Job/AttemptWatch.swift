internal import Spool

/// What the worker does to a running attempt, a few times a second.
extension Attempt {
  /// Stops the attempt. The first reason counts.
  func stop(_ reason: JobStop) {
    switch reason {
    case .shutdown, .cancelled, .notOurs, .outranked: hookStop.request()
    // The `failed` hook may still have to run.
    case .noSpace, .noOutput, .outputAwaited, .failed: break
    }
    guard stopped == nil else {
      download?.stop()
      return
    }
    stopped = reason
    if case .outranked = reason { download?.windDown() } else { download?.stop() }
    environment.deliveries.sendAway(id)
  }

  /// Checks whether the job is still ours, whether the claim needs a heartbeat, and whether a checkpoint is due.
  func tick() {
    guard claim.isOpen else { return }
    let now = LoopExecutor.milliseconds()
    do throws(SpoolError) {
      if stopped == nil {
        let ownership = try claim.ownership()
        if ownership != .ours { return stop(.notOurs(ownership)) }
      }
      // Also after a stop: a copy or a hook may run longer than the lease.
      if now - lastHeartbeat >= claim.spool.heartbeatInterval {
        lastHeartbeat = now
        try claim.heartbeat()
      }
      if stopped != nil {
        download?.tick()
        return
      }
      try data?.writePending()
      if checkpointer.isAllowed, probation.isOver(at: now) {
        try claim.append(.cleared(.now()))
        clear()
      }
    } catch {
      return stop(.failed(error))
    }
    // Fetched again from 0: all of it is growth.
    if let data { account.lengthAtStart = min(account.lengthAtStart, data.part.length) }
    if account.connectivity == .unknown, gained > 0 {
      account.connectivity = .open
      reached(.answered)
    }
    download?.tick()
    if let data { checkpointer.beginIfDue(data) }
  }

  func checkpointFailed(_ failure: Checkpointer.Problem) {
    switch failure {
    case .lostWrites(let error):
      trust = .lost(error)
      stop(.failed(error))
    case .other(let error): stop(.failed(error))
    }
  }

  var progress: JobProgress {
    JobProgress(id: id, name: name, bytes: data?.part.length, total: data?.total)
  }

  /// Bytes after the last checkpoint, which may be in the page cache only.
  var undurable: UInt64 { data?.undurable ?? 0 }

  /// Bytes by which the data has grown since the job was claimed.
  var gained: UInt64 {
    let length = data?.part.length ?? account.lengthAtEnd
    return length > account.lengthAtStart ? length - account.lengthAtStart : 0
  }
}
