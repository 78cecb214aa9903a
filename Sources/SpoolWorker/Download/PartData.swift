internal import Spool
internal import SystemPackage

/// What an attempt holds while it runs: the claim, the data, and what the data is a prefix of. Touched by the loop's
/// thread alone.
final class PartData {
  let claim: Claim
  let request: JobRequest
  /// What earlier attempts were answered.
  let answers: Journal.Answers
  /// Only the end of the connection says that the data is all.
  var isLengthUnproven = false
  private(set) var part: PartFile
  /// New data that is not yet longer than ``part``, which stays until then.
  private var beside: PartFile?
  /// What the data that grows is a prefix of: ``beside``, or ``part``.
  private(set) var version: RemoteVersion?
  /// What ``part`` is a prefix of while there is new data beside it.
  private var keptVersion: RemoteVersion?
  private var marks: KnownMarks
  /// Counts how often the data was thrown away, so that a checkpoint under way can tell.
  private(set) var generation = 0

  /// What the last `response:` since `started:` says.
  private var journaled: (version: RemoteVersion, part: UInt64)?

  private let pending: BlockBuffer
  private let space: DiskSpace
  /// Bytes since the room was last looked at, for transfers that do not tell how much they take.
  private var unasked: UInt64 = 0
  private static let askedEach: UInt64 = 1 << 20

  init(claim: Claim, request: JobRequest, part: PartFile, version: RemoteVersion?, space: DiskSpace, blocks: BlockPool)
  {
    pending = BlockBuffer(blocks)
    self.space = space
    self.claim = claim
    self.request = request
    answers = claim.text.journal.answers
    self.part = part
    self.version = version
    marks = KnownMarks(start: part.mark, durable: claim.text.journal.data.checkpoint)
    space.enter(self) { [unowned self] in stillToCome ?? 0 }
  }

  /// Gives back what room it was promised.
  func leaveSpace() { space.leave(self) }

  /// The data that grows.
  private var growing: PartFile { beside ?? part }

  /// Bytes of the whole; nil where neither the job nor the server says.
  var total: UInt64? { request.expected.size ?? version?.size }

  /// Bytes that only the page cache has, as far as checkpoints tell.
  var undurable: UInt64 {
    let durable = marks.durable?.offset ?? 0
    return part.length > durable ? part.length - durable : 0
  }

  /// Bytes of the whole that are not here yet; nil where neither the server nor the job says.
  var stillToCome: UInt64? {
    (version?.size ?? request.expected.size).map { $0 > growing.length ? $0 - growing.length : 0 }
  }

  /// Whether the data is known to be the whole.
  var isComplete: Bool {
    guard let size = version?.size ?? request.expected.size, version != nil else { return false }
    return growing.length == size
  }

  /// Journals what the bytes to come belong to, before the first of them. What is beside the data is journaled when
  /// it takes its place.
  func begin(_ version: RemoteVersion) throws(SpoolError) {
    self.version = version
    if beside == nil { try journal(version, at: part.length) }
  }

  private func journal(_ version: RemoteVersion, at offset: UInt64) throws(SpoolError) {
    // A server that cuts each connection would fill the journal with one line.
    if offset > 0, let journaled, journaled == (version, part.inode) { return }
    journaled = nil
    try claim.append(.response(version, at: offset, part: part.inode))
    // Data that a durable checkpoint vouched for was thrown away: should the machine stop now, that checkpoint
    // would vouch for the new bytes under the old validator. So the new line has to be durable first.
    if let durable = marks.durable, durable.offset > offset {
      do throws(SpoolError) { try claim.flush.run() } catch { try claim.renew(after: error) }
      marks.forgetDurable()
    }
    journaled = (version, part.inode)
  }

  /// Makes way for a body from 0.
  func begin(anew old: ResponseVerdict.OldData) throws(SpoolError) {
    switch old {
    case .dropped: try discardData()
    case .kept: try beginBeside()
    case .setAside: try setAside()
    }
  }

  // MARK: data beside the data

  /// Begins anew in a file beside the data, which stays until the new one is longer: a server whose
  /// ranges are of no use, or another mirror, may fail before it has brought as much.
  func beginBeside() throws(SpoolError) {
    try abandonBeside()
    generation += 1
    beside = try part.beginReplacement(owner: claim.job)
    (keptVersion, version) = (version, nil)
    marks.forget()
  }

  /// Removes what is beside the data; the data counts again.
  func abandonBeside() throws(SpoolError) {
    guard let beside else { return }
    generation += 1
    self.beside = nil
    (version, keptVersion) = (keptVersion, nil)
    marks.forget()
    pending.drop()
    try beside.remove()
    try beside.close()
  }

  /// Has the new data, if there is any, take the place of the old. A crash before the journal tells of that does no
  /// harm: whoever finds another inode there reads the bytes before the last mark, and begins from 0 where they
  /// differ (``Recovery``).
  func takePlace() throws(SpoolError) {
    guard let beside, let version else { return }
    generation += 1
    try beside.takePlace(of: part)
    part = beside
    (self.beside, keptVersion) = (nil, nil)
    try journal(version, at: 0)
  }

  // MARK: data in doubt

  /// Where the data that grows ends now, as written.
  var mark: Mark { growing.mark }

  /// Cuts off what came since `mark`.
  func cutBack(to mark: Mark) throws(SpoolError) {
    pending.drop()
    guard growing.length > mark.offset else { return }
    generation += 1
    try growing.truncate(to: mark.offset)
    growing.adopt(mark)
    marks.cut(to: mark)
    journaled = nil
    if let version { try begin(version) }
  }

  /// The same by an offset: reads from the last mark before it to know the checksum there.
  func cutBack(to offset: UInt64) async throws {
    guard growing.length > offset else { return }
    let known = marks.last(before: offset) ?? .zero
    let mark = try await runBlocking { [reading = growing.reading(from: known, to: offset)] in try reading.run() }
    try cutBack(to: mark)
  }

  /// After `started:` the next answer is journaled whatever it says: rates are counted from there.
  func noteStarted() { journaled = nil }

  /// Whether what is still to come has room on the disk, as far as it is known: before a request, and once more when
  /// its answer says.
  /// - Throws: ``JobStop/noSpace(_:)`` where room is to be left: then the job waits for it. Else `disk-full`.
  func checkSpace() throws {
    guard let shortage = space.shortage(of: stillToCome ?? 0, for: self) else { return }
    if space.kept > 0 { throw JobStop.noSpace(shortage.reason) }
    throw Failure(.diskFull, shortage.reason, expected: "\(shortage.needed)", found: "\(shortage.free)")
  }

  /// Cuts the data to nothing. Before its journal line: the other way round, a crash in between would leave old bytes
  /// under a new validator.
  func discardData() throws(SpoolError) {
    try abandonBeside()
    generation += 1
    marks.forget()
    try part.truncate(to: 0)
    version = nil
  }

  /// Cuts the data to what is durable: nobody who comes later could know that an fsync has lost of the rest.
  func cutToCheckpoint() throws(SpoolError) {
    try part.truncate(to: min(part.length, marks.durable?.offset ?? 0))
  }

  /// A mismatch is never resumed: the data goes where a person can look at it, and the next begins in a file of its
  /// own.
  func setAside() throws(SpoolError) {
    try abandonBeside()
    guard part.length > 0 else { return }
    generation += 1
    version = nil
    marks.forget()
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
  var length: UInt64 { growing.length + UInt64(pending.count) }
  /// Bytes of the file that are trusted, whatever becomes of what is beside them.
  var held: UInt64 { max(part.length, growing.length) }

  func append(_ bytes: UnsafeRawBufferPointer, host: String) throws {
    let whole = version?.size ?? request.expected.size
    let end = length + UInt64(bytes.count)
    if let whole, end > whole {
      throw Failure(
        .mismatchSize, "\(host) sent more than the \(whole) bytes that it should", expected: "\(whole)",
        found: "at least \(end)")
    }
    if let failure = request.tooLarge(end, isAll: false) { throw failure }
    try pending.take(bytes, at: growing.length, isEnd: end == whole) { (block) throws(SpoolError) in
      try write(block)
    }
    unasked += UInt64(bytes.count)
    guard unasked >= Self.askedEach else { return }
    unasked = 0
    if let free = space.freeIfShort { throw JobStop.noSpace("\(free) bytes are free and \(space.kept) are to be left") }
  }

  /// Writes what still waits in memory: before anything is decided by ``part``, and a few times a second, so that
  /// `ls` shows how far the data is and
  /// a crash costs little.
  func writePending() throws(SpoolError) {
    try pending.flush { (block) throws(SpoolError) in try write(block) }
  }

  private func write(_ block: UnsafeRawBufferPointer) throws(SpoolError) {
    try growing.append(block)
    if let beside, beside.length > part.length { try takePlace() }
  }

  /// The same at the end of a request, after which no bytes come for a while, or ever.
  func finishPending() throws(SpoolError) {
    defer { pending.giveBack() }
    try writePending()
  }

  func isCheckpointDue(_ options: WorkerOptions) -> Bool { marks.isCheckpointDue(at: part.length, options) }

  func noteCheckpointBegun() { marks.noteCheckpointBegun() }

  /// - Parameter longJournal: see ``WorkerOptions/longJournal``.
  func noteCheckpoint(_ mark: Mark, longJournal: Int64) throws(SpoolError) {
    try claim.compact(beyond: longJournal)
    try claim.append(.checkpoint(mark))
    marks.add(durable: mark, isOfGrowing: beside == nil)
  }
}
