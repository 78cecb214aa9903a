internal import SystemPackage

/// A job that this worker owns: the locked file `cur/NAME:OWNER`. Its owner appends the journal and makes the next
/// move.
package final class Claim {
  /// Its name; changes when it gets a number.
  package private(set) var job: JobName
  /// The job's text with its journal, as it was when it was claimed.
  package private(set) var text: JobText
  /// The directory that the job was claimed from.
  package let origin: Directory
  /// The spool that it was claimed in.
  package let spool: Spool

  var files: Files
  var file: SharedFile { files.file }
  var identity: FileStatus { files.identity }
  /// Where the next journal line goes: an explicit offset, because O_APPEND of two clients of a network file system
  /// loses data.
  var end: Int64
  private var needsNewline: Bool
  /// A `requeued:` line that ``text`` does not know ends the file.
  package let isRequeueNoted: Bool
  /// The priority that it was chosen with.
  package var priority = Priority.normal
  /// A time at which the job was there already: when its file was written, if it was dropped, or what its journal says;
  /// nil if nothing does.
  package let knownSince: Timestamp?
  /// The error of an fsync of the file, until a copy has taken its place.
  package internal(set) var lostWrites: SpoolError?
  /// Bytes of the job file up to which it is not to be compacted again.
  var compactsBeyond: Int64 = 0
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

  /// The open files of a claim.
  struct Files {
    /// Open for writing, unless it is to be replaced at once.
    let file: SharedFile
    /// What has the lock: ``file`` itself, or the same inode, open for reading.
    let lock: SharedFile
    let identity: FileStatus

    /// It has this name now.
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
    self.isRequeueNoted = isRequeueNoted
    self.formerOwner = formerOwner
    self.spool = spool
    self.job = job
    self.origin = origin
    self.files = files
    self.text = text
    self.knownSince = knownSince
    end = files.identity.size
    // If a person's last line has no newline, it is kept for them to read. A torn journal line does not count.
    needsNewline = text.hasTornTail && !text.isTornByWorker(in: origin) && !isRequeueNoted
    takeInHand(files.file.path.name)
  }

  deinit { takeInHand(nil) }

  private func takeInHand(_ name: FileName?) {
    if let nameInHand { spool.namesInHand.remove(nameInHand) }
    nameInHand = name
    if let name { spool.namesInHand.insert(name) }
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
  }

  /// Makes the job with its journal durable. Its name becomes durable with the directory.
  package var flush: Flush { Flush(file, identity) }

  /// Bytes of the job file.
  package var length: Int64 { end }

  /// The text with the journal.
  /// - Throws: ``SpoolError``.
  package func contents() throws(SpoolError) -> [UInt8] { try file.read(limit: Int(end)) }

  /// Does what writes to the file, which keeps its time of modification.
  /// - Throws: ``SpoolError``.
  package func keepingTime<Result>(_ body: () throws(SpoolError) -> Result) throws(SpoolError) -> Result {
    let modified = try file.status().modified
    let result = try body()
    try file.setTimes(to: modified)
    return result
  }

  /// Whether this worker still has the lock: once a successor on another host has it, taking it again fails.
  /// - Throws: ``SpoolError``.
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
    // Before the rename: a job in partial/ with the mtime of its last heartbeat would be due at once.
    try file.setTimes(to: due.seconds)
    try move(to: isStandingOrder ? .standing : .partial)
  }

  /// Moves the job to `failed/`.
  /// - Throws: ``SpoolError``, ENOENT where the file has moved.
  package func giveUp() throws(SpoolError) { try move(to: .failed) }

  /// Moves the job to `done/`.
  /// - Throws: ``SpoolError``, ENOENT where the file has moved.
  package func finish() throws(SpoolError) { try move(to: .done) }

  private func move(to directory: Directory) throws(SpoolError) {
    job = try spool.moveNumbered(path, job, to: directory, hasData: !isStandingOrder)
    takeInHand(nil)
    try files.close()
  }

  /// Whether data of the job's name may be another job's.
  /// - Throws: ``SpoolError``.
  package func hasNamesake() throws(SpoolError) -> Bool { try spool.hasNamesake(job, otherThan: identity.inode) }

  /// Takes another name within `cur/`, because the job's own is an older job's.
  /// - Throws: ``SpoolError``, ENOENT where the file has moved.
  package func renumber() throws(SpoolError) {
    let renamed = try spool.freeName(like: job)
    let name = ClaimName.fileName(renamed, spool.owner)
    let target = Path(.cur, name)
    try spool.system.rename(spool.root, path, target)
    takeInHand(name)
    job = renamed
    files.rename(to: target)
  }
}
