internal import Spool

/// Jobs found since the last scan that do not fit on the disk.
struct SpaceWait {
  /// After so many in vain there is a pause: reading each of a long backlog for its size would keep the loop from its transfers.
  private static let most = 1000
  private static let pause: Int64 = 1000

  /// What the first of them to fit needs, in bytes; nil where there are none.
  private(set) var least: UInt64?
  private var told: Set<FileName> = []
  private var inVain = 0
  private var pausesUntil: Int64 = 0

  var isEmpty: Bool { least == nil }

  /// Whether more candidates may be looked at, at this time in milliseconds.
  func mayGoOn(at time: Int64) -> Bool { time >= pausesUntil }

  /// Whether some were looked at a moment ago: in the pause, and a turn after it.
  func isGoingOn(at time: Int64) -> Bool { time < pausesUntil + Self.pause }

  /// - Returns: whether that is news since there last was room.
  mutating func add(_ name: FileName, needing bytes: UInt64, at time: Int64) -> Bool {
    least = min(least ?? bytes, bytes)
    inVain += 1
    if inVain >= Self.most { (inVain, pausesUntil) = (0, time + Self.pause) }
    // Told of anew then: other users can put any number there, one after another.
    if told.count >= 10 * Self.most { told = [] }
    return told.insert(name).inserted
  }

  /// A scan finds them again.
  mutating func removeAll() { least = nil }
  mutating func roomCame() { told = [] }
}

extension Worker {
  /// Sets a job aside that is known not to fit, without a claim: one that waits for room has nothing to record.
  func waitsForRoom(_ candidate: Backlog.Candidate) throws(SpoolError) -> Bool {
    // A dead worker's claim may only want its last move.
    guard room.kept > 0, candidate.origin != .cur, let needed = try stillToCome(of: candidate),
      let shortage = room.shortage(of: needed)
    else { return false }
    if spaceWait.add(candidate.name, needing: needed, at: LoopExecutor.milliseconds()) {
      let fields = Fields().with("needed", needed).with("free", shortage.free).with("min-free", shortage.kept)
      log(Event("waits-for-room", .info, job: candidate.name, fields))
    }
    return true
  }

  /// Bytes that a job still lacks, as far as its text and its journal say; nil too where it needs no room, because the claim will give it up, or find
  /// that the payload is there.
  private func stillToCome(of candidate: Backlog.Candidate) throws(SpoolError) -> UInt64? {
    // One that cannot be read is for the claim to judge.
    guard let job = JobName(candidate.name), let text = try? spool.job(candidate.origin, candidate.name),
      text.defect == nil
    else { return nil }
    let request = text.request.bounded(by: options)
    if let expires = request.expires, expires <= .now() { return nil }
    // What an earlier answer said may have been of another URL, in a job that comes through `new/`.
    guard let size = (candidate.origin == .new ? nil : text.journal.version?.size) ?? request.size else { return nil }
    guard let plan = try? JobPlan(request, protocols: options.protocols) else { return nil }
    // Whatever keeps it from being looked at is for the claim to tell.
    if request.crc32 != nil, request.overwrite != true {
      do { if try outputs.opened().status(plan.output) != nil { return nil } } catch { return nil }
    }
    let length = UInt64(clamping: try spool.status(.partial, job.part)?.size ?? 0)
    return size > length ? size - length : 0
  }

  /// Whether a pass that passes over jobs for want of room is still to come to its end: it is slow, and begun anew each minute it never would. Not for
  /// long, because it may stand still behind a host that is busy, and only another one sees what is new.
  var isLookingForRoom: Bool {
    let now = LoopExecutor.milliseconds()
    guard !spaceWait.isEmpty, now - scanBegan < 10 * Self.scanInterval else { return false }
    return scan.isUnderWay || !backlog.isEmpty && spaceWait.isGoingOn(at: now)
  }

  /// Whether one that waits fits by now.
  func hasRoomForWaiting() -> Bool {
    guard let least = spaceWait.least, room.shortage(of: least) == nil else { return false }
    spaceWait.roomCame()
    return true
  }
}
