internal import CLinux
internal import Glibc
internal import SystemPackage

/// A job in this worker's hands: the locked file `cur/NAME:OWNER`. Its owner appends the journal and makes the next move.
package final class Claim {
  package private(set) var job: JobName
  package private(set) var text: JobText
  /// Where the job stood before.
  package let origin: Directory
  package let spool: Spool

  private(set) var path: Path
  private var descriptor: Int32
  private var identity: FileStatus
  /// Where the next journal line goes: an explicit offset, because O_APPEND of two clients of a network file system loses data.
  private var end: Int64
  private var needsNewline: Bool
  /// A `requeued:` line that ``text`` does not know ends the file.
  package let isRequeueNoted: Bool
  /// What an fsync of the file failed with, until a copy has taken its place.
  package private(set) var lostWrites: SpoolError?
  private var isOpen = true
  /// Bytes of the job file up to which it is not to be compacted again.
  private var compactsBeyond: Int64 = 0
  /// Whether its last move is still to come.
  package var isHeld: Bool { isOpen }

  init(
    spool: Spool, job: JobName, origin: Directory, path: Path, descriptor: Int32, identity: FileStatus, text: JobText,
    isRequeueNoted: Bool = false
  ) {
    self.isRequeueNoted = isRequeueNoted
    self.spool = spool
    self.job = job
    self.origin = origin
    self.path = path
    self.descriptor = descriptor
    self.identity = identity
    self.text = text
    end = identity.size
    // A person's last line that lacks its newline stays as it is, for them to read; a torn journal line did not happen.
    needsNewline = text.hasTornTail && !text.isTornByWorker(in: origin) && !isRequeueNoted
  }

  deinit { if isOpen { System.release(descriptor) } }

  /// Cuts off a journal line that has no newline.
  func dropTornTail() throws(SpoolError) {
    guard text.hasTornTail, text.isTornByWorker(in: origin), !isRequeueNoted else { return }
    try spool.system.truncate(descriptor, path, to: Int64(text.completeLength))
    end = Int64(text.completeLength)
  }

  /// Adds a line to the job's journal. Not yet durable: see ``flush``.
  package func append(_ line: JournalLine) throws(SpoolError) {
    // The descriptor's number may be another job's file by now.
    guard isOpen else { throw SpoolError(call: .write, path: path.display, errno: .badFileDescriptor) }
    // A successor on another host, after this worker slept too long, has written behind our back: its lines are not to be written over.
    guard try spool.system.status(descriptor, path: path).size == end else {
      throw SpoolError(call: .write, path: path.display, errno: .staleNFSFileHandle)
    }
    let bytes = Array(((needsNewline ? "\n" : "") + line.text).utf8)
    let result: Result<Void, SpoolError> = bytes.withUnsafeBytes { buffer in
      Result { () throws(SpoolError) in try spool.system.write(descriptor, path, buffer, at: end) }
    }
    if case .failure(let error) = result {
      // Should this fail as well, the line still has no newline, and so did not happen.
      try? spool.system.truncate(descriptor, path, to: end)
      throw error
    }
    needsNewline = false
    end += Int64(bytes.count)
  }

  /// Makes the job with its journal durable (its name is the directory's affair).
  package var flush: Flush { Flush(descriptor, path, identity, spool.system) }

  /// How many bytes the job file has.
  package var length: Int64 { end }

  package enum Standing: Sendable {
    case ours
    /// Somebody renamed the file: to `hold/`, or took the claim over.
    case moved
    /// Somebody removed the file: the job is cancelled.
    case removed
    /// Somebody wrote to the file in place, as some editors save, or a successor on another host did: what stands there is not this worker's to go on with.
    case changed
  }

  /// Whether the file still stands under the claim's own name.
  package func standing() throws(SpoolError) -> Standing {
    do throws(SpoolError) {
      let found = try spool.system.status(spool.root, path)
      if found.isSameFile(as: identity) { return found.size == end ? .ours : .changed }
    } catch  where error.errno == .noSuchFileOrDirectory {
    }
    // Only now: in the other order, one that is removed between the two looks would seem moved.
    do throws(SpoolError) {
      guard try spool.system.status(descriptor, path: path).links == 0 else { return .moved }
      // A successor on another host has given the job a new inode; or an editor has after `hold`: then the data is not nobody's.
      let isTakenOver = try spool.places(of: job.fileName, in: [.cur]).contains { $0.name != path.name }
      if isTakenOver { return .moved }
      return try spool.isBegunJobPresent(job.fileName) ? .moved : .removed
    } catch  where error.isGone {
      // Which of the two, nobody says: as moved, the data is left alone.
      return .moved
    }
  }

  /// Whether the lock still holds: after its loss to a successor on another host, taking it again fails.
  package func holdsLock() throws(SpoolError) -> Bool { try spool.system.lock(descriptor, path) }

  /// Renews the claim's mtime, by which workers of other hosts see that this one lives.
  package func heartbeat() throws(SpoolError) { try spool.system.touch(descriptor, path) }

  // MARK: moves

  /// Puts the job where it waits for its next attempt; `due` becomes its mtime, for the scan and for `ls`.
  package func park(until due: Timestamp) throws(SpoolError) {
    // Before the rename: a job in partial/ with the mtime of its last heartbeat would be due at once.
    try spool.system.setTimes(descriptor, path, to: due.seconds)
    try move(to: .partial)
  }

  package func giveUp() throws(SpoolError) { try move(to: .failed) }
  package func finish() throws(SpoolError) { try move(to: .done) }

  private func move(to directory: Directory) throws(SpoolError) {
    job = try spool.moveNumbered(path, job, to: directory)
    isOpen = false
    try spool.system.close(descriptor, path)
  }

  /// Takes another name within `cur/`, because the job's own belongs to an older job.
  package func renumber() throws(SpoolError) {
    let renamed = try spool.freeName(like: job)
    let target = Path(.cur, ClaimName.fileName(renamed, spool.owner))
    try spool.system.rename(spool.root, path, target)
    (job, path) = (renamed, target)
  }

  /// A failed fsync is never retried on its inode (fsync(2): the pages count as clean): the job goes into a new one, whose own failure counts.
  /// - Parameter failure: the fsync's; nil where one is only to be feared.
  package func renew(after failure: SpoolError? = nil) throws(SpoolError) {
    lostWrites = failure ?? lostWrites
    // The new file would be a second job if a person took the old one away.
    guard try standing() == .ours else { return }
    try replaceFile()
    lostWrites = nil
  }

  /// Rewrites a long journal without the checkpoints that later ones supersede: a slow download writes one every few seconds for weeks, and a
  /// job beyond ``Spool/maximumJobFile`` is none.
  ///
  /// Where it cannot be done the journal stays as it is for now.
  /// - Parameter limit: bytes of the job file up to which it stays as it is.
  /// - Throws: ``SpoolError`` where a flush failed, which the kernel tells of only once.
  package func compact(beyond limit: Int64) throws(SpoolError) {
    guard end > max(limit, compactsBeyond) else { return }
    // So that neither a failure nor little gain has it copied with each checkpoint.
    compactsBeyond = end + max(limit, end) / 4
    do throws(SpoolError) {
      guard try standing() == .ours else { return }
      let bytes = try spool.read(descriptor, path, limit: Int(end))
      try replaceFile(by: JobText.compacted(bytes))
    } catch  where ![.fsync, .fdatasync].contains(error.call) {
    }
  }

  /// Replaces the file by a copy of our own making: somebody else's file may be changed or be linked elsewhere while
  /// we append to it, and after a failed fsync an inode must not be trusted.
  /// - Parameter text: what was judged to be a job; a stranger's file may hold something else by now. nil for what the file holds.
  func replaceFile(by text: [UInt8]? = nil) throws(SpoolError) {
    let system = spool.system
    let bytes = if let text { text } else { try spool.read(descriptor, path, limit: Int(end)) }
    let copy = spool.temporary(job.fileName)
    let fresh = try system.create(spool.root, copy, O_RDWR | O_EXCL | O_NOFOLLOW)
    do throws(SpoolError) {
      let result: Result<Void, SpoolError> = bytes.withUnsafeBytes { buffer in
        Result { () throws(SpoolError) in try system.write(fresh, copy, buffer, at: 0) }
      }
      try result.get()
      // Locked before it bears the claim's name: a claim without its lock looks like a crashed worker's.
      _ = try system.lock(fresh, copy)
      let status = try system.status(fresh, path: copy)
      try system.fdatasync(fresh, copy)
      // The old file's way here first. btrfs keeps no order between renames of different files: after a power cut the copy could stand here,
      // and the old file in `new/` again, a second job.
      try spool.flush(.cur).run()
      if origin != .cur { try spool.flush(origin).run() }
      do throws(SpoolError) {
        // Not a rename over it: if a person has just moved the claim elsewhere, the copy would be a second job.
        try system.exchange(spool.root, copy, path)
        // One that stays is swept, as what a killed worker leaves there.
        try? system.unlink(spool.root, copy)
      } catch  where error.isUnknownRename {
        // Some network file systems cannot. What a rename replaces must still be ours, after a copy and flushes that may have hung.
        guard try standing() == .ours else {
          throw SpoolError(call: .rename, path: path.display, errno: .noSuchFileOrDirectory)
        }
        try system.rename(spool.root, copy, path)
      }
      System.release(descriptor)
      (descriptor, identity, end) = (fresh, status, Int64(bytes.count))
    } catch {
      System.release(fresh)
      try? system.unlink(spool.root, copy)
      throw error
    }
  }
}
