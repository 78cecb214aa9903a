package import Spool
internal import SystemPackage
internal import Transfer

/// The data of a running attempt: the claim, the data file, and the version that the data is a prefix of. Used on the
/// loop's thread only.
final class PartData {
  let claim: Claim
  var request: JobRequest
  let answers: Journal.Answers
  /// The data came when the job asked for something else, as far as is known: even if it is complete, a server has to
  /// say whether it is what the job asks for now.
  private var isOfOtherSource: Bool
  /// The mirror has to send all of the data: it does not continue that of another one, or of another resource.
  var isAlone = false
  /// Only the end of the connection indicates that the data is complete.
  var isLengthUnproven = false
  var signed: String?
  private(set) var part: PartFile
  /// New data that is not yet longer than ``part``, which is kept until then.
  private var beside: PartFile?
  /// The version of the growing data, which is ``beside`` or ``part``.
  private(set) var version: RemoteVersion?
  private var marks: KnownMarks
  /// How often the data was discarded. A running checkpoint compares it.
  private(set) var generation = 0
  /// The end of the growing data that an answer left which broke off.
  var doubt: TailDoubt?
  /// The version and the doubt of ``part`` while there is new data beside it.
  private var kept: (version: RemoteVersion?, doubt: TailDoubt?) = (nil, nil)

  /// The last `response:` line since `started:`.
  private var journaled: (version: RemoteVersion, part: UInt64)?

  /// Which mirrors sent the data in this attempt, by the offsets from which on.
  private var senders: [(from: UInt64, mirror: Int)] = []
  /// How many pieces in a row were wrong before the running answer.
  private var wrongBefore = 0
  /// The digests are those of bytes that were replaced since: the journal must not say them.
  private(set) var isStale = false

  private let pending: BlockBuffer
  private let space: DiskSpace
  /// Bytes since the last check of the free space, for transfers of unknown size.
  private var unasked: UInt64 = 0

  init(
    claim: Claim, request: JobRequest, part: PartFile, version: RemoteVersion?, isOfOtherSource: Bool = false,
    space: DiskSpace, blocks: BlockPool
  ) {
    pending = BlockBuffer(blocks)
    (self.space, self.claim, self.request) = (space, claim, request)
    self.isOfOtherSource = isOfOtherSource && version != nil
    answers = claim.history.answers
    (self.part, self.version) = (part, version)
    let known = claim.text.journal.data
    marks = KnownMarks(start: part.mark, earlier: known.earlierMark, durable: known.checkpoint)
    // Marks behind what recovery left are of other bytes than those that come now. `durable` stays, so that the next
    // `response:` line is made durable.
    marks.cut(to: part.mark)
    // What a declared digest proves in the end is asked for again only where more is asked for.
    doubt = known.brokenFrom.flatMap { TailDoubt(from: $0, to: part.length) }
    if request.expected.provesContent, isComplete { doubt = nil }
    space.enter(self) { [unowned self] in stillToCome ?? 0 }
  }

  func leaveSpace() { space.leave(self) }

  private var growing: PartFile { beside ?? part }

  /// Bytes of the whole; nil if neither the job nor the server states it.
  var total: UInt64? { request.expected.size ?? version?.size }

  /// Bytes after the last checkpoint, which may be in the page cache only.
  var undurable: UInt64 {
    let durable = marks.durable?.offset ?? 0
    return part.length > durable ? part.length - durable : 0
  }

  /// Bytes still to come; nil if neither the server nor the job states the size.
  var stillToCome: UInt64? {
    (version?.size ?? request.expected.size).map { $0 > growing.length ? $0 - growing.length : 0 }
  }

  var isComplete: Bool {
    guard let size = version?.size ?? request.expected.size, version != nil else { return false }
    return growing.length == size
  }

  /// Whether a request has to show first that the complete data is what the job asks for. A declared digest does so
  /// without one.
  var needsAnswer: Bool { isComplete && (isOfOtherSource && !request.expected.provesContent || doubt != nil) }

  /// Journals the version of the following bytes before the first of them is written. New data beside the data is
  /// journaled when it replaces the data.
  func begin(_ version: RemoteVersion) throws(SpoolError) {
    self.version = version
    isOfOtherSource = false
    wrongBefore = growing.wrongPieces.inRow
    // What the server states can be checked without a second reading only if it is known before the first byte.
    let digests = request.computedDigests(for: version)
    if growing.length == 0, growing.algorithms != digests {
      growing.compute(digests)
      marks.cut(to: .zero)
    }
    if beside == nil { try journal(version, at: part.length) }
  }

  /// Journals in which inode the data is now. It is no answer.
  func noteInode() throws(SpoolError) { if let version { try journal(version, at: part.length) } }

  private func journal(_ version: RemoteVersion, at offset: UInt64) throws(SpoolError) {
    // A server that cuts each connection would fill the journal with repetitions of one line.
    if offset > 0, let journaled, journaled == (version, part.inode) { return }
    journaled = nil
    try claim.append(.response(version, at: offset, part: part.inode))
    // Data with a durable checkpoint was discarded. If the machine stopped now, the checkpoint would confirm the new
    // bytes under the old validator. So the new line is made durable first.
    if let durable = marks.durable, durable.offset > offset {
      try claim.makeDurable()
      marks.durable = nil
    }
    journaled = (version, part.inode)
  }

  func prepareForWhole(keeping old: ResponseVerdict.OldData) throws(SpoolError) {
    switch old {
    // Beside the data, it is only the new data that an answer replaces.
    case .dropped: if beside == nil { try discardData() } else { try beginBeside() }
    case .kept: try beginBeside()
    case .setAside: try setAside()
    }
  }

  // MARK: data beside the data

  /// Starts over in a file beside the data. The data is kept until the new file is longer, because the server may fail
  /// before it has sent as much again.
  private func beginBeside() throws(SpoolError) {
    try abandonBeside()
    generation += 1
    beside = try part.beginReplacement(owner: claim.job)
    kept = (version, doubt)
    (version, doubt) = (nil, nil)
    marks.cut(to: .zero)
  }

  /// Removes the new data beside the data. The data counts again.
  /// - Returns: whether there was any.
  @discardableResult func abandonBeside() throws(SpoolError) -> Bool {
    guard let beside else { return false }
    generation += 1
    self.beside = nil
    (version, doubt) = kept
    marks.cut(to: .zero)
    pending.drop()
    try beside.remove()
    try beside.close()
    return true
  }

  /// Replaces the data with the new data, if there is any. A crash before the journal line does no harm: the next
  /// attempt finds another inode, reads the bytes before the last mark, and starts from 0 if they differ
  /// (``Recovery``).
  func takePlace() throws(SpoolError) {
    guard let beside, let version else { return }
    generation += 1
    try beside.takePlace(of: part)
    part = beside
    self.beside = nil
    try journal(version, at: 0)
  }

  // MARK: data in doubt

  var mark: Mark { growing.mark }

  func cutBack(to mark: Mark) throws(SpoolError) {
    pending.drop()
    guard growing.length > mark.offset else { return }
    generation += 1
    // If a call fails, the journal says that the data ends here, so that nobody goes on with the rest.
    growing.disown(from: mark)
    doubt = nil
    // The journal first: behind a checkpoint, data that is shorter counts as another file.
    if beside == nil, let durable = marks.durable, durable.offset > mark.offset {
      try claim.append(.checkpoint(mark))
      try claim.makeDurable()
      marks.durable = mark
    }
    try growing.cutDisowned()
    marks.cut(to: mark)
    journaled = nil
    if let version { try begin(version) }
  }

  func cutBack(to offset: UInt64) async throws {
    guard growing.length > offset else { return }
    try cutBack(to: try await mark(at: offset))
  }

  private func mark(at offset: UInt64) async throws -> Mark {
    let known = marks.last(before: offset)?.narrowed(to: growing.algorithms, pieces: growing.pieces) ?? growing.zero
    return try await growing.read(from: known, to: offset)
  }

  /// After `started:` the next response is always journaled, because rates are computed from there.
  func noteStarted() { journaled = nil }

  /// Checks whether the bytes still to come fit on the disk, as far as the size is known: before a request, and again
  /// after its head.
  /// - Throws: ``JobStop/noSpace(_:)`` with `--min-free`, so that the job waits for space; otherwise `disk-full`.
  func checkSpace() throws {
    guard let shortage = space.shortage(of: stillToCome ?? 0, for: self) else { return }
    if space.kept > 0 { throw JobStop.noSpace(shortage.reason) }
    throw Failure(.diskFull, shortage.reason, expected: "\(shortage.needed)", found: "\(shortage.free)")
  }

  /// Cuts the data to 0 bytes. This comes before its journal line: in the other order, a crash in between would leave
  /// old bytes under a new validator.
  private func discardData() throws(SpoolError) {
    try abandonBeside()
    generation += 1
    marks.cut(to: .zero)
    try part.truncate(to: 0)
    (version, doubt) = (nil, nil)
  }

  /// Cuts the data to its durable part, because a later attempt could not know that a failed fsync lost some of the
  /// rest.
  func cutToCheckpoint() throws(SpoolError) { try part.truncate(to: min(part.length, marks.durable?.offset ?? 0)) }

  /// Moves the data to where a person can examine it, because data with a mismatch is never resumed. New data goes to a
  /// new file.
  func setAside() throws(SpoolError) {
    try abandonBeside()
    // Also of no bytes: an empty file would be complete for the next mirror, too.
    (version, doubt) = (nil, nil)
    marks.cut(to: .zero)
    guard part.length > 0 else { return }
    generation += 1
    try part.setAside(claim.job)
    let (digests, pieces) = (request.computedDigests, part.pieces)
    guard let fresh = try PartFile.open(claim.job, in: claim.spool, digests: digests, pieces: pieces) else {
      throw SpoolError(call: .lock, path: part.path.display, errno: .wouldBlock)
    }
    part = fresh
  }

  /// Drops the data of a failed attempt, if the next attempt must not resume it.
  func dropData(after code: FailureCode) throws(SpoolError) {
    if code.isMismatch { try setAside() }
    if code == .tooLarge { try discardData() }
  }

  /// Bytes received: those written, and those in ``pending``.
  var length: UInt64 { growing.length + UInt64(pending.count) }
  /// The digests are so far behind that more bytes would have to wait for them.
  var isFull: Bool { growing.isFull }
  /// Bytes of the longer of the data and the new data beside it.
  var dataLength: UInt64 { max(part.length, growing.length) }

  func append(_ bytes: UnsafeRawBufferPointer, host: String, mirror: Int = 0) throws {
    if growing.pieces != nil {
      try checkPieces(host)
      if senders.last?.mirror != mirror { senders.append((length, mirror)) }
    }
    let whole = version?.size ?? request.expected.size
    let end = length + UInt64(bytes.count)
    if let whole, end > whole {
      throw Failure(
        .mismatchSize,
        "\(host) sent more than the \(whole) bytes that \(version?.size == nil ? "the job declares" : "it announced")",
        expected: "\(whole)", found: "at least \(end)")
    }
    if let failure = Failure.tooLarge(end, most: request.maxSize, isAll: false) { throw failure }
    try pending.take(bytes, at: growing.length, isEnd: end == whole) { (bytes, block) throws(SpoolError) in
      try write(bytes, in: block)
    }
    unasked += UInt64(bytes.count)
    guard unasked >= DiskSpace.asked else { return }
    unasked = 0
    if let free = space.freeIfShort { throw JobStop.noSpace("\(free) bytes free, --min-free keeps \(space.kept)") }
  }

  /// Writes the bytes still in memory: before decisions that depend on ``part``, and a few times a second, so that `ls`
  /// shows the progress and a crash loses little.
  func writePending() throws(SpoolError) {
    try pending.flush { (bytes, block) throws(SpoolError) in try write(bytes, in: block) }
  }

  private func write(_ bytes: UnsafeRawBufferPointer, in block: Block?) throws(SpoolError) {
    try claim.confirmAfterSilence()
    try growing.append(bytes, in: block)
    if let beside, beside.length > part.length { try takePlace() }
  }

  /// How many of `bytes` are those of the data from `offset` on; the data is at least as long.
  func agreement(of bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(SpoolError) -> Int {
    if offset + UInt64(bytes.count) > growing.length { try writePending() }
    return try growing.agreement(of: bytes, at: offset)
  }

  /// At the end of a request: releases the memory, too, because no bytes come for a while.
  func finishPending() throws(SpoolError) {
    defer { pending.giveBack() }
    try writePending()
  }

  /// Whether a checkpoint is due. It counts as begun then.
  func beginsCheckpoint(_ options: WorkerOptions) -> Bool { marks.beginsCheckpoint(of: undurable, options) }

  func noteCheckpoint(_ mark: Mark, longJournal: Int64) throws(SpoolError) {
    try claim.compact(beyond: longJournal)
    try claim.append(.checkpoint(mark))
    marks.add(durable: mark, isOfGrowing: beside == nil)
  }
}

/// Pieces that are wrong (spool.5, PIECES).
extension PartData {
  /// Counted from 0; of complete data, the last one as well.
  var wrongPieces: [Int] { part.mark.states.pieces?.wrong ?? [] }

  /// A few wrong ones are fetched again when the data is complete. Where nothing is right, no more is taken.
  private func checkPieces(_ host: String) throws(Failure) {
    let found = growing.wrongPieces
    if found.inRow < wrongBefore { wrongBefore = 0 }
    guard found.inRow >= wrongBefore + PieceState.mostInRow || found.isFull else { return }
    throw Failure(.wrongPiece, "\(host) sent \(found.isFull ? PieceState.most : found.inRow) pieces that are wrong")
  }

  /// Whether a mirror sent some of these bytes in this attempt, as far as is known.
  func hasSent(_ mirror: Int, _ range: Range<UInt64>) -> Bool {
    zip(senders, senders.dropFirst().map(\.from) + [.max]).contains { sender, end in
      sender.mirror == mirror && sender.from < range.upperBound && end > range.lowerBound
    }
  }

  /// Lets the bytes from `offset` on be replaced: whoever continues after a crash reads these again. The data is
  /// durable.
  func beginReplacing(from offset: UInt64) async throws -> Mark {
    let mark = try await mark(at: offset)
    generation += 1
    try claim.append(.checkpoint(mark))
    try claim.makeDurable()
    marks.cut(to: mark)
    marks.add(durable: mark, isOfGrowing: true)
    (isStale, journaled) = (true, nil)
    return mark
  }

  func replace(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(SpoolError) {
    try claim.confirmAfterSilence()
    try part.replace(bytes, at: offset)
  }

  func endReplacing(from mark: Mark) async throws {
    part.adopt(try await part.read(from: mark, to: part.length))
    isStale = false
  }
}

/// The marks that an attempt knows: those from which a checksum can continue when the data is cut, and the last durable
/// one.
private struct KnownMarks {
  /// The start of the attempt, and the last two checkpoints, which are ``Journal/farBack`` apart.
  private var marks: [Mark]
  /// The last durable mark. Without one, cutting the data needs no durable journal line.
  var durable: Mark?
  private var lastBegun = LoopExecutor.milliseconds()

  init(start: Mark, earlier: Mark? = nil, durable: Mark?) {
    marks = [start] + [earlier, durable].compactMap { $0 }
    self.durable = durable
  }

  mutating func cut(to mark: Mark) { marks.removeAll { $0.offset > mark.offset } }

  func last(before offset: UInt64) -> Mark? { marks.filter { $0.offset <= offset }.max { $0.offset < $1.offset } }

  mutating func add(durable mark: Mark, isOfGrowing: Bool) {
    durable = mark
    guard isOfGrowing else { return }
    if marks.count == 3, mark.offset < marks[2].offset + Journal.farBack { marks.removeLast() }
    marks = marks.prefix(1) + marks.dropFirst().suffix(1) + [mark]
  }

  /// - Parameter fresh: the number of bytes that are not durable yet.
  mutating func beginsCheckpoint(of fresh: UInt64, _ options: WorkerOptions) -> Bool {
    let now = LoopExecutor.milliseconds()
    guard fresh > 0, fresh >= options.checkpointBytes || now - lastBegun >= options.checkpointMilliseconds else {
      return false
    }
    lastBegun = now
    return true
  }
}

/// The end of data that an answer left which broke off: its last bytes may be an error page or a filled buffer. They
/// are asked for once more, and believed only where both answers agree (INTERNALS.md, invariant 5). Pure. Offsets are
/// in bytes from the file's start.
struct TailDoubt: Equatable {
  /// The number of bytes that have to agree. At first as many are asked for, but no more than half of the answer: a
  /// server that breaks off all its answers early would bring nothing else.
  static let least: UInt64 = 64 << 10

  /// Where the answer began: the bytes before are not in doubt.
  let floor: UInt64
  let end: UInt64
  /// The next byte to compare, with which the next request begins.
  private(set) var position: UInt64
  /// All bytes from here to ``position`` agree.
  private var agreedFrom: UInt64
  private var window: UInt64
  /// How many bytes have to agree before one that differs.
  private var enough = Self.least

  /// - Returns: nil if there is nothing in doubt.
  init?(from floor: UInt64, to end: UInt64) {
    guard floor < end else { return nil }
    (self.floor, self.end) = (floor, end)
    position = Self.begin(from: floor, to: end)
    window = end - position
    agreedFrom = position
  }

  /// Where the request begins that compares the end of an answer.
  static func begin(from floor: UInt64, to end: UInt64) -> UInt64 { end - min(least, (end - floor + 1) / 2) }

  mutating func agree(_ count: Int) { position += UInt64(count) }

  var isSettled: Bool { position >= end }

  /// Notes that an answer agreed and broke off at the same place: it may have the same junk. The next one has to begin
  /// elsewhere.
  mutating func endAlike() {
    // Nothing further back is left to ask for, so fewer bytes have to do.
    if agreedFrom == floor { enough = min(enough, (end - floor) / 4) }
    position = agreedFrom + (end - agreedFrom + 1) / 2
    agreedFrom = position
  }

  /// Notes that the byte at ``position`` differs.
  /// - Returns: where the data is to be cut. nil if too few bytes before it agree, for junk can agree by chance; then
  ///   ``position`` is further back, twice as far from the end.
  mutating func differ() -> UInt64? {
    if agreedFrom == floor || position - agreedFrom >= enough { return position }
    window *= 2
    position = max(floor, end - min(end, window))
    agreedFrom = position
    return nil
  }
}

extension PartData {
  func noteEnd(ofAnswerFrom start: UInt64, isBroken: Bool) {
    guard let doubt else {
      if isBroken { self.doubt = TailDoubt(from: start, to: length) }
      return
    }
    // What was compared before an answer broke off stays compared.
    guard doubt.isSettled else { return }
    if isBroken { self.doubt?.endAlike() } else { self.doubt = nil }
  }

  var position: UInt64 { doubt?.position ?? length }

  /// Compares the bytes from ``position`` on with the data, as far as it is in doubt.
  /// - Returns: how many agree; nil if one differs.
  func compare(_ bytes: UnsafeRawBufferPointer) throws(SpoolError) -> Int? {
    guard var doubt else { return 0 }
    let count = Int(min(UInt64(bytes.count), doubt.end - doubt.position))
    let agreed = try agreement(of: UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: doubt.position)
    doubt.agree(agreed)
    // A byte behind it shows that this answer has not broken off there.
    self.doubt = doubt.isSettled && agreed < bytes.count ? nil : doubt
    return agreed == count ? count : nil
  }

  /// Cuts off the end of the data after a byte differed.
  /// - Returns: the number of bytes; nil if more has to be asked for first, further back.
  func cutAfterDifference() async throws -> UInt64? {
    guard let floor = doubt?.floor, let offset = doubt?.differ() else { return nil }
    let count = length - offset
    try await cutBack(to: offset)
    // The answer that differed may have broken off at the same place, and its junk may agree in the first bytes.
    doubt = TailDoubt(from: floor, to: offset)
    return count
  }
}

extension Digests {
  /// Those that a server states, as far as they are in base64.
  init(_ stated: [StatedDigest]) {
    self.init()
    for digest in stated {
      guard let algorithm = DigestAlgorithm(rawValue: digest.algorithm.rawValue) else { continue }
      self[algorithm] = Digest(algorithm, base64: digest.base64)
    }
  }
}

extension Expectation {
  /// The digest that the server states of this version and that the data has to have: the strongest one, as weaker ones
  /// beside it are often stale. None if the job declares a digest, because the job's word counts more than the
  /// server's.
  package func checkedDigests(of version: RemoteVersion?) -> Digests {
    guard let version, !provesContent else { return Digests() }
    let strongest = DigestAlgorithm.byStrength.first { version.stated[$0] != nil }
    return version.stated.only(strongest.map { [$0] } ?? [])
  }
}

extension JobRequest {
  package func computedDigests(for version: RemoteVersion?) -> Set<DigestAlgorithm> {
    computedDigests.union(expected.checkedDigests(of: version).algorithms)
  }
}
