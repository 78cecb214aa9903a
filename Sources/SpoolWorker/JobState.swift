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

    private let minFree: UInt64

    /// - Parameter minFree: bytes to leave on the disk.
    init(claim: Claim, request: JobRequest, part: PartFile, version: RemoteVersion?, minFree: UInt64) {
      self.minFree = minFree
      self.claim = claim
      self.request = request
      self.part = part
      self.version = version
      checkpoint = claim.text.journal.checkpoint
    }

    /// Whether the data is known to be the whole.
    var isComplete: Bool {
      guard let size = version?.size ?? request.size, version != nil else { return false }
      return part.length == size
    }

    /// Journals what the bytes to come belong to, before the first of them.
    /// - Throws: ``SpoolError``; `disk-full` where the bytes to come have no room.
    func begin(_ version: RemoteVersion) throws {
      try checkSpace(for: version.size)
      try claim.append(.response(version, at: part.length, part: part.inode))
      // Data that a durable checkpoint vouched for was thrown away: should the machine stop now, that checkpoint
      // would vouch for the new bytes under the old validator. So the new line has to be durable first.
      if part.length == 0, checkpoint != nil {
        do throws(SpoolError) { try claim.durability.data() } catch { try claim.renew() }
        checkpoint = nil
      }
      self.version = version
    }

    /// Whether what is still to come of `size` bytes, or of those that are known of or declared, has room on the disk.
    func checkSpace(for size: UInt64? = nil) throws(Failure) {
      guard let size = size ?? version?.size ?? request.size, let free = claim.spool.freeSpace() else { return }
      let needed = size > part.length ? size - part.length : 0
      guard needed > free || free - needed < minFree else { return }
      throw Failure(
        .diskFull, "\(needed) bytes are still to come and \(free) are free, of which \(minFree) are to be left",
        expected: "\(needed)", found: "\(free)")
    }

    /// Cuts the data to nothing. Before its journal line: the other way round, a crash in between would leave old bytes
    /// under a new validator.
    func discardData() throws(SpoolError) {
      generation += 1
      try part.truncate(to: 0)
      version = nil
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

    func append(_ bytes: UnsafeRawBufferPointer, host: String) throws {
      let whole = version?.size ?? request.size
      if let whole, part.length + UInt64(bytes.count) > whole {
        throw Failure(
          .mismatchSize, "\(host) sent more than the \(whole) bytes that it should", expected: "\(whole)",
          found: "at least \(part.length + UInt64(bytes.count))")
      }
      try part.append(bytes)
    }

    func isCheckpointDue(_ options: WorkerOptions) -> Bool {
      let fresh = part.length - (checkpoint.map { min($0.offset, part.length) } ?? 0)
      if fresh == 0 { return false }
      return fresh >= options.checkpointBytes
        || LoopExecutor.milliseconds() - lastCheckpoint >= options.checkpointMilliseconds
    }

    func noteCheckpointBegun() { lastCheckpoint = LoopExecutor.milliseconds() }

    func noteCheckpoint(_ mark: Mark) throws(SpoolError) {
      try claim.append(.checkpoint(mark))
      checkpoint = mark
    }
  }
}
