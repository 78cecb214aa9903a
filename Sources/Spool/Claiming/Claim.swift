internal import Glibc
internal import Synchronization
internal import SystemPackage

/// A job that this worker owns: the locked file `cur/NAME:OWNER`. Its owner appends the journal and makes the next
/// move.
package final class Claim {
  /// Its name; changes when it gets a number.
  package private(set) var job: JobName
  /// The job's text with its journal, as it was when it was claimed.
  package private(set) var text: JobText
  package let origin: Directory
  package let spool: Spool
  /// What counts of the journal for another attempt: nothing for a job that a person has dropped again, whose journal
  /// tells of earlier runs, perhaps with a receipt.
  package var history: Journal { origin.takesNewJobs ? Journal() : text.journal }

  var files: Files
  var file: SharedFile { files.file }
  var identity: FileStatus { files.identity }
  /// Where the next journal line goes: an explicit offset, because O_APPEND of two clients of a network file system
  /// loses data.
  var end: Int64
  private var needsNewline: Bool
  /// A `requeued:` line that ``text`` does not know ends the file.
  package let isRequeueNoted: Bool
  package var priority = Priority.normal
  /// A time at which the job was there already: when its file was written, if it was dropped, or what its journal says;
  /// nil if nothing does.
  package let knownSince: Timestamp?
  /// The error of an fsync of the file, until a copy has taken its place.
  package internal(set) var lostWrites: SpoolError?
  /// Bytes of the job file up to which it is not to be compacted again.
  var compactsBeyond: Int64 = 0
  /// The inode of the data that its journal names.
  private var data: UInt64?
  /// The directory that its last move led to; nil while it is still to come.
  package private(set) var endDirectory: Directory?
  /// The `started:` line that its journal got since it was claimed, without the newline.
  private(set) var begun: [UInt8]?
  /// Its name in ``Spool/namesInHand``; nil after its last move.
  private var nameInHand: FileName?
  /// Who had it before; says nothing of a job that was in no worker's hands.
  package let formerOwner: FormerOwner
  /// When it was claimed or had its last heartbeat, by ``secondsSinceBoot()``.
  var lastSign = secondsSinceBoot()
  /// Whether its last move is still to come.
  package var isOpen: Bool { file.isOpen }

  struct Files {
    /// Open for writing, unless it is to be replaced at once.
    let file: SharedFile
    /// What has the lock: ``file`` itself, or the same inode, open for reading.
    let lock: SharedFile
    let identity: FileStatus

    func rename(to path: Path) { for file in [file, lock] { file.path = path } }

    /// - Throws: ``SpoolError``: close(2) may be the last chance to hear of a failed write.
    func close() throws(SpoolError) {
      // This one first: once the lock is free, others look whether somebody writes the file.
      try file.close()
      try lock.close()
    }
  }

  /// - Parameter files: the job's file, locked, by its name in `cur/`.
  init(
    spool: Spool, job: JobName, origin: Directory, _ files: Files, text: JobText, isRequeueNoted: Bool,
    formerOwner: FormerOwner, knownSince: Timestamp?
  ) {
    (self.isRequeueNoted, self.formerOwner, self.spool, self.job) = (isRequeueNoted, formerOwner, spool, job)
    (self.origin, self.files, self.text, self.knownSince) = (origin, files, text, knownSince)
    end = files.identity.size
    data = text.journal.data.part
    // If a person's last line has no newline, it is kept for them to read. A torn journal line does not count.
    needsNewline = text.hasTornTail && !text.isTornByWorker(in: origin) && !isRequeueNoted
    takeInHand(files.file.path.name)
  }

  deinit { takeInHand(nil) }

  private func takeInHand(_ name: FileName?) {
    let former = nameInHand
    nameInHand = name
    spool.namesInHand.withLock { names in
      if let former { names.remove(former) }
      if let name { names.insert(name) }
    }
  }

  var path: Path { file.path }

  /// Its name in `cur`.
  package var fileName: FileName? { path.name }

  /// Whether it is checked again and again, instead of being done once.
  package var isStandingOrder: Bool { text.request.isStandingOrder }

  /// Cuts off a journal line that has no newline.
  func dropTornTail() throws(SpoolError) {
    guard text.hasTornTail, text.isTornByWorker(in: origin), !isRequeueNoted else { return }
    try file.truncate(to: Int64(text.completeLength))
    end = Int64(text.completeLength)
  }

  /// Adds a line to the job's journal. Not yet durable: see ``flush``.
  /// - Throws: ``SpoolError``: EBADF after the last move, ESTALE where a successor has the job, or has written to the
  ///   file. The journal is as before then.
  package func append(_ line: JournalLine) throws(SpoolError) {
    guard isOpen else { throw SpoolError(call: .write, path: path.display, errno: .badFileDescriptor) }
    try confirmAfterSilence()
    // A successor on another host, after this worker slept too long, may have written to the file: its lines are not to
    // be overwritten.
    guard try file.status().size == end else {
      throw SpoolError(call: .write, path: path.display, errno: .staleNFSFileHandle)
    }
    let text = line.bytes
    let bytes = needsNewline ? [0x0A] + text : text
    do throws(SpoolError) {
      try file.write(bytes, at: end)
      if spool.kind.isMooseFS { try file.writeBack() }
    } catch {
      // Should this fail as well, the line still has no newline, and so did not happen.
      try? file.truncate(to: end)
      throw error
    }
    needsNewline = false
    end += Int64(bytes.count)
    if case .started = line { begun = Array(text[..<(text.count - 1)]) }
    if case .response(_, _, let part) = line { data = part }
  }

  /// Makes the job with its journal durable. Its name becomes durable with the directory.
  package var flush: Flush { Flush(file, identity) }

  /// Bytes of the job file.
  package var length: Int64 { end }

  package func contents() throws(SpoolError) -> [UInt8] { try file.read(limit: Int(end)) }

  /// Whether a call for the bytes of the data or of the job's file failed, which may be of those that were written
  /// before.
  package func mayHaveLost(_ error: SpoolError) -> Bool {
    [.read, .write, .truncate, .fsync, .fdatasync, .close].contains(error.call) && !error.isLackOfSpace && !error.isGone
      && [path, Path(.partial, job.part)].contains { $0.display == error.path }
  }

  /// Does what writes to the file, which keeps its time of modification.
  package func keepingTime<Result>(_ body: () throws(SpoolError) -> Result) throws(SpoolError) -> Result {
    let modified = try file.status().modified
    let result = try body()
    try file.setTimes(to: modified)
    return result
  }

  /// Whether this worker still has the lock: once a successor on another host has it, taking it again fails.
  package func holdsLock() throws(SpoolError) -> Bool { try files.lock.tryLock() }

  /// Renews the claim's mtime, by which other workers see that this one lives.
  /// - Throws: ``SpoolError``; what ``confirmAfterSilence()`` throws.
  package func heartbeat() throws(SpoolError) {
    try confirmAfterSilence()
    lastSign = secondsSinceBoot()
    try spool.touch(file)
  }

  // MARK: moves

  /// Moves the job to `partial/`, where it waits for its next attempt, or a standing order to `standing/`.
  /// - Parameter due: the time of the next attempt or check; it becomes the file's mtime, for the scan and for `ls`.
  /// - Throws: ``SpoolError``, ENOENT where the file has moved.
  package func park(until due: Timestamp) throws(SpoolError) {
    // Before the rename: a job in partial/ with the mtime of its last heartbeat would be due at once. Not a time that
    // has passed: others would take this worker for frozen.
    try file.setTimes(to: max(due.seconds, spool.now().seconds))
    // In `standing/`, what a power cut leaves of the first line of a journal looks like a file that is not complete.
    if isStandingOrder, text.journal.isEmpty { try file.fdatasync() }
    try move(to: isStandingOrder ? .standing : .partial)
  }

  /// Moves the job to `failed/`.
  /// - Throws: ``SpoolError``, ENOENT where the file has moved.
  package func giveUp() throws(SpoolError) { try move(to: .failed) }

  /// Moves the job to `done/`.
  /// - Throws: ``SpoolError``, ENOENT where the file has moved.
  package func finish() throws(SpoolError) { try move(to: .done) }

  private func move(to directory: Directory) throws(SpoolError) {
    if !directory.isScheduled { removeTouched() }
    job = try JobMoves(spool).moveNumbered(path, job, to: directory, data: data)
    endDirectory = directory
    takeInHand(nil)
    try files.close()
  }

  /// Removes the empty file that touch(1) has made where the job would have waited: without the job it would be one. An
  /// error stops nothing.
  package func removeTouched() {
    let home: Directory = isStandingOrder ? .standing : .partial
    _ = try? JobMoves(spool).removeTouched(Path(home, job.fileName), in: home)
  }

  /// Whether data of the job's name is this job's: its journal names it, or no other job can have made it. The journal
  /// names the data only when a response has come: a worker that made it or copied it may have ended before.
  package func owns(data inode: UInt64) throws(SpoolError) -> Bool {
    if inode == data { return true }
    return try !JobSearch(spool).hasNamesake(job, otherThan: identity.inode)
  }

  /// The data that the job has; nil if there is none, or if that of its name is another job's.
  package func dataStatus() throws(SpoolError) -> FileStatus? {
    guard let found = try spool.status(.partial, job.part), try owns(data: found.inode) else { return nil }
    return found
  }

  /// Removes the job's data, which is not open here.
  /// - Parameter payload: of the job. Data that is the same file is the job's own, even if a worker that was frozen
  ///   still has it locked.
  package func removeData(publishedAs payload: FileStatus? = nil) throws(SpoolError) {
    let path = Path(.partial, job.part)
    _ = try JobData(spool).withIdleData(path, or: payload) { (status) throws(SpoolError) in
      var isOwn = payload?.isSameFile(as: status) == true
      if !isOwn { isOwn = try owns(data: status.inode) }
      if isOwn { try spool.system.unlink(spool.root, path) }
    }
  }

  /// Takes another name within `cur/`, because the job's own is an older job's.
  /// - Throws: ``SpoolError``, ENOENT where the file has moved.
  package func renumber() throws(SpoolError) {
    let renamed = try JobSearch(spool).freeName(like: job)
    let name = ClaimName.fileName(renamed, spool.owner)
    let target = Path(.cur, name)
    try spool.system.rename(spool.root, path, target)
    takeInHand(name)
    job = renamed
    files.rename(to: target)
  }
}

package enum ClaimOutcome {
  case claimed(Claim)
  /// Another worker has it, or was faster: normal and silent.
  case unavailable
  /// It had gone before this worker tried, or a job of its name runs here.
  case gone
  /// Its owner has it at least until this second since the epoch.
  case leased(until: Int64)
  /// It may still be written; look again at this second since the epoch.
  case unfinished(Unfinished, until: Int64)
  /// Its next attempt is at this second since the epoch.
  case notDue(Int64)
  /// It is no valid job, and is in `failed/` under this name now, with a record of the reason.
  case rejected(FileName, Defect)
  /// The kernel does not allow this file to be examined, claimed or moved, so it stays where it is. For a file that is
  /// not a valid job there is a record in `failed/`.
  case barred(Defect)
}

/// A claim's file is replaced by a copy of this worker's own making: after a failed fsync, when the journal is long, or
/// where the file is another user's.
extension Claim {
  /// Puts the job into a new inode: a failed fsync is never retried on its inode (fsync(2): the pages count as clean).
  /// - Parameter failure: the fsync's; nil where one is only feared.
  package func renew(after failure: SpoolError? = nil) throws(SpoolError) {
    lostWrites = failure ?? lostWrites
    // The new file would be a second job if a person took the old one away.
    guard try ownership() == .ours else { return }
    try replaceFile()
    lostWrites = nil
  }

  /// Makes the job with its journal durable, in a new inode if it has to be.
  package func makeDurable() throws(SpoolError) {
    do throws(SpoolError) { try flush.run() } catch { try renew(after: error) }
  }

  /// Rewrites a long journal without what later lines supersede: a slow download writes a checkpoint every few seconds
  /// for weeks, and a file beyond ``Spool/maximumJobFile`` is no job.
  ///
  /// If that fails, the journal is not changed for now.
  /// - Parameter limit: bytes of the job file up to which it is not changed.
  /// - Throws: ``SpoolError`` where a flush failed, which the kernel reports only once.
  package func compact(beyond limit: Int64) throws(SpoolError) {
    guard end > max(limit, compactsBeyond) else { return }
    // So that neither a failure nor little gain has it copied with each checkpoint.
    compactsBeyond = end + max(limit, end) / 4
    do throws(SpoolError) {
      guard try ownership() == .ours else { return }
      try replaceFile(by: JobText.compacted(file.read(limit: Int(end))))
    } catch  where ![.fsync, .fdatasync].contains(error.call) {
    }
  }

  /// Copies a standing order without the checks that failed. Those of weeks without a network, one a minute, would make
  /// its file too long for a claim.
  /// - Parameter limit: bytes up to which it is not changed, beside the keys of its entries.
  package func forgetFailedChecks(beyond limit: Int64) throws(SpoolError) {
    guard isStandingOrder, end > limit + 80 * Int64(text.journal.checks.seen.count) else { return }
    try rewrite(JobText.withoutAttempts(try contents()))
  }

  /// Puts another text in the place of the file's, at once or not at all, even by a power cut.
  /// - Throws: ``SpoolError``, ENOENT where the file has moved, ESTALE where it was changed.
  package func rewrite(_ text: [UInt8]) throws(SpoolError) {
    switch try ownership() {
    case .ours: try replaceFile(by: text)
    case .changed: throw SpoolError(call: .write, path: path.display, errno: .staleNFSFileHandle)
    case .moved, .takenOver, .removed:
      throw SpoolError(call: .rename, path: path.display, errno: .noSuchFileOrDirectory)
    }
  }

  /// Replaces the file by a copy: another user's file may be changed or linked elsewhere while this worker appends to
  /// it.
  /// - Parameter text: what was judged to be a job; another user's file may have changed since. nil for the file's own
  ///   content.
  func replaceFile(by text: [UInt8]? = nil) throws(SpoolError) {
    let system = spool.system
    let bytes = if let text { text } else { try file.read(limit: Int(end)) }
    var fresh = try system.createNew(spool.root, spool.temporary(job.fileName))
    let own = try fresh.status()
    do throws(SpoolError) {
      try fresh.write(bytes, at: 0)
      // Locked before it has the claim's name: a claim without its lock looks like a crashed worker's.
      _ = try fresh.lock()
      let status = try fresh.status()
      try fresh.fdatasync()
      try spool.flushFormerNames(.cur, from: origin == .cur ? nil : origin)
      try takePlace(fresh.path, status)
      fresh.path = path
      let copy = fresh.shared()
      (files, end) = (Files(file: copy, lock: copy, identity: status), Int64(bytes.count))
    } catch {
      // By that name there may be another job, which could not be put back.
      try? system.unlink(spool.root, fresh.path, of: own)
      throw error
    }
  }

  private func takePlace(_ copy: Path, _ own: FileStatus) throws(SpoolError) {
    do throws(SpoolError) {
      // Not a rename over it: if a person has just moved the claim elsewhere, the copy would be a second job.
      try spool.system.exchange(spool.root, copy, path)
      let old: FileStatus
      do throws(SpoolError) { old = try spool.system.status(spool.root, copy) } catch {
        try spool.system.exchange(spool.root, copy, path)
        throw error
      }
      guard old.isSameFile(as: files.identity), old.links <= files.identity.links else {
        // A move by link and unlink has begun, and goes on with the old file.
        try spool.system.exchange(spool.root, copy, path)
        throw SpoolError(call: .rename, path: path.display, errno: .noSuchFileOrDirectory)
      }
      // A file left in `tmp/` is removed later, as after a crash.
      try? spool.system.unlink(spool.root, copy)
    } catch  where error.isUnknownRename {
      // Some network file systems cannot exchange. The copy and the flushes may have hung.
      guard try ownership() == .ours else {
        throw SpoolError(call: .rename, path: path.display, errno: .noSuchFileOrDirectory)
      }
      try JobMoves(spool).replaceClaim(path, job, files.identity, by: copy, own)
    }
  }
}

/// A worker that was frozen (SIGSTOP, a suspended machine) may have lost its claims to others, whatever locks it has.
extension Claim {
  package enum FormerOwner: Sendable {
    /// Its lock was free, or there was none.
    case ended
    /// It has the lock, and has given no sign of life for a lease. It may wake up, and go on where it was.
    case mayWake
  }

  /// Whether this worker has given no sign of life for so long that another one may have the job. By this host's clock,
  /// which goes on while the process is stopped and while the machine sleeps.
  var isSilent: Bool {
    // The times of files are in whole seconds.
    secondsSinceBoot() - lastSign >= Leases(spool).length - 1
  }

  /// To be called before a write or a publication: after a silence, makes sure that the job is still this worker's.
  ///
  /// No call of the kernel joins the check with what follows it. So a successor also continues in new inodes, which no
  /// descriptor of this worker leads to.
  /// - Throws: ``SpoolError``, ESTALE where the job is not this worker's any more.
  package func confirmAfterSilence() throws(SpoolError) {
    guard isSilent else { return }
    guard try ownership() == .ours else {
      throw SpoolError(call: .write, path: path.display, errno: .staleNFSFileHandle)
    }
    lastSign = secondsSinceBoot()
    try spool.touch(file)
  }
}

/// CLOCK_BOOTTIME (clock_gettime(2)).
func secondsSinceBoot() -> Int64 { Host.current.milliseconds() / 1000 }
