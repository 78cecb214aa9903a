internal import Spool

/// What happens to a running attempt from outside, a few times a second.
extension Attempt {
  /// Ends it: the first reason counts.
  func stop(_ reason: JobStop) {
    switch reason {
    case .shutdown, .lost: hookStop.request()
    // The hook that may follow is to be heard.
    case .noSpace, .noOutput, .failed: break
    }
    guard stopped == nil else { return }
    stopped = reason
    download?.stop()
  }

  /// Looks after it: is the job still ours, does the claim need a heartbeat, is a checkpoint due?
  func tick() {
    guard claim.isHeld else { return }
    let now = LoopExecutor.milliseconds()
    do throws(SpoolError) {
      if stopped == nil {
        let ownership = try claim.ownership()
        if ownership != .ours { return stop(.lost(ownership)) }
      }
      // Also of one that was told to stop: a copy or a hook may keep it for longer than the lease.
      if now - lastHeartbeat >= 30_000 {
        lastHeartbeat = now
        try claim.heartbeat()
      }
      if stopped != nil { return }
      try data?.writePending()
      if checkpointer.isAllowed, probation.isOver(at: now) {
        try claim.append(.cleared(.now()))
        clear()
      }
    } catch {
      return stop(.failed(error))
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
    JobProgress(id: id, name: name, bytes: data?.part.length ?? 0, total: data?.total)
  }

  /// Bytes that only the page cache has, as far as checkpoints tell.
  var undurable: UInt64 { data?.undurable ?? 0 }

  /// Bytes by which the data has grown since the job was claimed.
  var gained: UInt64 {
    let length = data?.part.length ?? account.lengthAtEnd
    return length > account.lengthAtStart ? length - account.lengthAtStart : 0
  }
}
