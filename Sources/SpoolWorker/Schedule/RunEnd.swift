internal import Spool

extension Worker {
  /// What keeps all work from starting.
  enum Obstacle {
    /// What the gate said.
    case gate(String)
    case room
    /// Why there is no output root.
    case output(String)
  }

  /// Counts the jobs that wait as they stand at the end of a run, and tells why they do: for status 75.
  /// - Parameter obstacle: what the run was held back by when nothing else was left to do.
  func countWaiting(heldBackBy obstacle: Obstacle?) {
    guard summary.spoolError == nil, summary.obstacle == nil else { return }
    do throws(SpoolError) {
      let next = try waiting.recount(in: spool)
      let obstacle = try isAnyCandidateLeft() ? obstacle : nil
      summary.waiting = waiting.count + (obstacle == nil ? 0 : 1)
      tellWaiting(obstacle, next: next)
    } catch {
      summary.spoolError = error
    }
  }

  /// Whether what was held back is still there. What waits for room is not in the backlog, and was seen a moment ago.
  private func isAnyCandidateLeft() throws(SpoolError) -> Bool {
    for candidate in backlog.candidates {
      if try spool.status(candidate.origin, candidate.name) != nil { return true }
    }
    return backlog.isEmpty
  }

  private func tellWaiting(_ obstacle: Obstacle?, next: Timestamp?) {
    // What was parked for want of room is due at once, and so is what was parked for a stop.
    let isDue = next.map { $0 <= .now() } ?? false
    var isForRoom = room.kept > 0 && isDue && !isStopping
    var fields = Fields().with("jobs", waiting.count > 0 ? waiting.count : nil).with("next", isDue ? nil : next)
    switch obstacle {
    case nil: break
    case .gate(let reason): fields = fields.with("gate", reason)
    case .room: isForRoom = true
    case .output(let reason):
      isForRoom = false
      fields = fields.with("output-root", reason)
    }
    if isForRoom {
      fields = fields.with("needed", spaceWait.least).with("free", spool.freeSpace()).with("min-free", room.kept)
    }
    let isNews = isShortageNews(isForRoom)
    // That it was told to stop has been said.
    if summary.waiting > 0, !isStopping { log(Event("waiting", isNews ? .warning : .info, fields)) }
  }

  /// Whether a person has to hear that there is no room: where nothing else came of the run, and no run before has said so.
  private func isShortageNews(_ isForRoom: Bool) -> Bool {
    guard !stays, room.kept > 0 else { return false }
    if !isForRoom { spool.forgetShortage() }
    return isForRoom && summary.done == 0 && summary.givenUp == 0 && spool.noteShortage()
  }
}
