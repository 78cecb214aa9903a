internal import Spool

/// Jobs found since the last scan that do not fit on the disk.
struct RoomWait {
  /// After so many in vain no more are looked at: reading each of a long backlog for its size would keep the loop from its transfers.
  private static let most = 1000

  /// Bytes that are still to come of each.
  private var needed: [FileName: UInt64] = [:]
  private var told: Set<FileName> = []

  var isEmpty: Bool { needed.isEmpty }
  var isFull: Bool { needed.count >= Self.most }
  /// What the first of them to fit needs.
  var least: UInt64? { needed.values.min() }

  /// - Returns: whether that is news since there last was room.
  mutating func add(_ name: FileName, needing bytes: UInt64) -> Bool {
    needed[name] = bytes
    // Told of anew then: other users can put any number there, one after another.
    if told.count >= 10 * Self.most { told = [] }
    return told.insert(name).inserted
  }

  /// A scan finds them again.
  mutating func removeAll() { needed = [:] }
  mutating func roomCame() { told = [] }
}

extension Worker {
  /// Sets a job aside that is known not to fit, without a claim: one that waits for room has nothing to record.
  func waitsForRoom(_ candidate: Backlog.Candidate) throws(SpoolError) -> Bool {
    // A dead worker's claim may only want its last move.
    guard room.kept > 0, candidate.origin != .cur, let needed = try stillToCome(of: candidate),
      let shortage = room.shortage(of: needed)
    else { return false }
    if roomWait.add(candidate.name, needing: needed) {
      let fields = Fields().with("needed", needed).with("free", shortage.free).with("min-free", shortage.kept)
      log(Event("waits-for-room", .info, job: candidate.name, fields))
    }
    return true
  }

  /// Bytes that a job still lacks, as far as its text and its journal say.
  private func stillToCome(of candidate: Backlog.Candidate) throws(SpoolError) -> UInt64? {
    // One that cannot be read is for the claim to judge.
    guard let job = JobName(candidate.name), let text = try? spool.job(candidate.origin, candidate.name),
      let size = text.journal.version?.size ?? text.request.inheriting(options.defaults).size
    else { return nil }
    let length = UInt64(clamping: try spool.status(.partial, job.part)?.size ?? 0)
    return size > length ? size - length : 0
  }

  /// Whether one that waits fits by now.
  func hasRoomForWaiting() -> Bool {
    guard let least = roomWait.least, room.shortage(of: least) == nil else { return false }
    roomWait.roomCame()
    return true
  }
}
