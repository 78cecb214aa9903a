internal import Spool
internal import SystemPackage

extension JobRun {
  /// What an attempt holds while it runs: the claim, the data, and what the data is a prefix of. Touched by the loop's thread alone.
  final class State {
    let claim: Claim
    let request: JobRequest
    private(set) var part: PartFile
    private(set) var version: RemoteVersion?
    /// The last durable mark: without one nothing needs to be forgotten durably.
    private(set) var checkpoint: Mark?
    private var lastCheckpoint = LoopExecutor.milliseconds()
    /// Counts how often the data was thrown away, so that a checkpoint under way can tell.
    private(set) var generation = 0

    /// What the last `response:` since `started:` says.
    private var journaled: (version: RemoteVersion, part: UInt64)?

    private let pending: BlockBuffer
    private let room: DiskRoom
    /// Bytes since the room was last looked at, for transfers that do not tell how much they take.
    private var unasked: UInt64 = 0
    private static let askedEach: UInt64 = 1 << 20

    init(claim: Claim, request: JobRequest, part: PartFile, version: RemoteVersion?, room: DiskRoom, blocks: BlockPool)
    {
      pending = BlockBuffer(blocks)
      self.room = room
      self.claim = claim
      self.request = request
      self.part = part
      self.version = version
      checkpoint = claim.text.journal.checkpoint
      room.enter(self)
    }

    /// Gives back what room it was promised.
    func leaveRoom() { room.leave(self) }

    /// Bytes of the whole that are not here yet; nil where neither the server nor the job says.
    var stillToCome: UInt64? {
      (version?.size ?? request.size).map { $0 > part.length ? $0 - part.length : 0 }
    }

    /// Whether the data is known to be the whole.
    var isComplete: Bool {
      guard let size = version?.size ?? request.size, version != nil else { return false }
      return part.length == size
    }

    /// Journals what the bytes to come belong to, before the first of them.
    func begin(_ version: RemoteVersion) throws(SpoolError) {
      // A server that cuts each connection would fill the journal with one line.
      if part.length > 0, let journaled, journaled == (version, part.inode) { return }
      journaled = nil
      try claim.append(.response(version, at: part.length, part: part.inode))
      // Data that a durable checkpoint vouched for was thrown away: should the machine stop now, that checkpoint
      // would vouch for the new bytes under the old validator. So the new line has to be durable first.
      if part.length == 0, checkpoint != nil {
        do throws(SpoolError) { try claim.flush.run() } catch { try claim.renew(after: error) }
        checkpoint = nil
      }
      journaled = (version, part.inode)
      self.version = version
    }

    /// After `started:` the next answer is journaled whatever it says: rates are counted from there.
    func noteStarted() { journaled = nil }

    /// Whether what is still to come has room on the disk, as far as it is known: before a request, and once more when its answer says.
    /// - Throws: ``JobRun/Stop/noRoom(_:)`` where room is to be left: then the job waits for it. Else `disk-full`.
    func checkRoom() throws {
      guard let shortage = room.shortage(of: stillToCome ?? 0, for: self) else { return }
      if room.kept > 0 { throw Stop.noRoom(shortage.reason) }
      throw Failure(.diskFull, shortage.reason, expected: "\(shortage.needed)", found: "\(shortage.free)")
    }

    /// Cuts the data to nothing. Before its journal line: the other way round, a crash in between would leave old bytes
    /// under a new validator.
    func discardData() throws(SpoolError) {
      generation += 1
      try part.truncate(to: 0)
      version = nil
    }

    /// Cuts the data to what is durable: nobody who comes later could know that an fsync has lost of the rest.
    func cutToCheckpoint() throws(SpoolError) {
      try part.truncate(to: min(part.length, checkpoint?.offset ?? 0))
    }

    /// A mismatch is never resumed: the data goes where a person can look at it, and the next begins in a file of its own.
    func setAside() throws(SpoolError) {
      guard part.length > 0 else { return }
      generation += 1
      version = nil
      try part.setAside(claim.job)
      guard let fresh = try PartFile.open(claim.job, in: claim.spool) else {
        throw SpoolError(call: .lock, path: part.path.display, errno: .wouldBlock)
      }
      part = fresh
    }

    /// What becomes of the data of a failed attempt, where it is not what the next one goes on with.
    func dropData(after code: FailureCode) throws(SpoolError) {
      if code.isMismatch { try setAside() }
      if code == .tooLarge { try discardData() }
    }

    /// Bytes taken in: those written, and those that wait in ``pending``.
    var length: UInt64 { part.length + UInt64(pending.count) }

    func append(_ bytes: UnsafeRawBufferPointer, host: String) throws {
      let whole = version?.size ?? request.size
      let end = length + UInt64(bytes.count)
      if let whole, end > whole {
        throw Failure(
          .mismatchSize, "\(host) sent more than the \(whole) bytes that it should", expected: "\(whole)",
          found: "at least \(end)")
      }
      if let failure = request.tooLarge(end, isAll: false) { throw failure }
      try pending.take(bytes, at: part.length, isEnd: end == whole) { (block) throws(SpoolError) in
        try part.append(block)
      }
      unasked += UInt64(bytes.count)
      guard unasked >= Self.askedEach else { return }
      unasked = 0
      if let free = room.freeIfShort { throw Stop.noRoom("\(free) bytes are free and \(room.kept) are to be left") }
    }

    /// Writes what still waits in memory: before anything is decided by ``part``, and a few times a second, so that `ls` shows how far the data is and
    /// a crash costs little.
    func writePending() throws(SpoolError) {
      try pending.flush { (block) throws(SpoolError) in try part.append(block) }
    }

    /// The same at the end of a request, after which no bytes come for a while, or ever.
    func finishPending() throws(SpoolError) {
      defer { pending.giveBack() }
      try writePending()
    }

    func isCheckpointDue(_ options: WorkerOptions) -> Bool {
      let fresh = part.length - (checkpoint.map { min($0.offset, part.length) } ?? 0)
      if fresh == 0 { return false }
      return fresh >= options.checkpointBytes
        || LoopExecutor.milliseconds() - lastCheckpoint >= options.checkpointMilliseconds
    }

    func noteCheckpointBegun() { lastCheckpoint = LoopExecutor.milliseconds() }

    /// - Parameter longJournal: see ``WorkerOptions/longJournal``.
    func noteCheckpoint(_ mark: Mark, longJournal: Int64) throws(SpoolError) {
      try claim.compact(beyond: longJournal)
      try claim.append(.checkpoint(mark))
      checkpoint = mark
    }
  }
}
