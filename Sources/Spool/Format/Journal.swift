/// The keys with which the worker records what happened to a job (spool.5, JOURNAL).
package enum JournalKey: String, CaseIterable, Sendable {
  case requeued, started, response, checkpoint, cleared, interrupted, failed, verified, done
}

/// An offset in the data and the CRC-32 of all before it.
package struct Mark: Sendable, Equatable {
  package let offset: UInt64
  package let checksum: Checksum

  package init(offset: UInt64, checksum: Checksum) {
    self.offset = offset
    self.checksum = checksum
  }
}

/// One line that the worker writes.
package enum JournalLine: Sendable {
  case requeued(Timestamp)
  case started(Timestamp, attempt: Int, worker: WorkerID, boot: String, mirror: Int, url: String)
  case response(RemoteVersion, at: UInt64, part: UInt64)
  case checkpoint(Mark)
  case cleared(Timestamp)
  case interrupted(Timestamp, attempt: Int, mark: Mark, fetched: UInt64, lostWrites: Bool = false, reason: String)
  case failed(FailureRecord)
  case verified(Timestamp, Journal.Verified)
  case done(
    Timestamp, attempts: Int, output: String, fetched: UInt64, seconds: Int64, existing: Bool, unproven: String?,
    directory: String?)

  package var key: JournalKey {
    switch self {
    case .requeued: .requeued
    case .started: .started
    case .response: .response
    case .checkpoint: .checkpoint
    case .cleared: .cleared
    case .interrupted: .interrupted
    case .failed: .failed
    case .verified: .verified
    case .done: .done
    }
  }

  package var fields: Fields {
    switch self {
    case .requeued(let time), .cleared(let time): Fields("\(time)")
    case .started(let time, let attempt, let worker, let boot, let mirror, let url):
      Fields("\(time)").with("attempt", attempt).with("worker", worker.text).with("boot", boot)
        .with("mirror", mirror).with("url", url)
    case .response(let version, let offset, let part):
      Fields().with("mirror", version.mirror).with("at", offset).with("part", part)
        .with("size", version.size).with("etag", version.etag).with("modified", version.modified)
        .with("if-range", version.ignoresIfRange ? "ignored" : nil)
        .with("type", version.type).with("resource", version.resource?.place).with("query", version.resource?.query)
    case .checkpoint(let mark):
      Fields("\(mark.offset)").with("crc32", mark.checksum)
    case .interrupted(let time, let attempt, let mark, let fetched, let lostWrites, let reason):
      Fields("\(time)").with("attempt", attempt).with("at", mark.offset).with("crc32", mark.checksum)
        .with("fetched", fetched).with("lost", lostWrites ? "yes" : nil).with("reason", reason)
    case .failed(let record): record.fields
    case .verified(let time, let verified):
      Fields("\(time)").with("size", verified.size).with("crc32", verified.checksum).with("part", verified.part)
        .with("unproven", verified.unproven)
    case .done(
      let time, let attempts, let output, let fetched, let seconds, let existing, let unproven, let directory):
      Fields("\(time)").with("attempts", attempts).with("output", output)
        .with("bytes-fetched", fetched).with("seconds", seconds)
        .with("existing", existing ? "yes" : nil).with("unproven", unproven).with("directory", directory)
    }
  }

  package var text: String { "\(key.rawValue): \(fields.text)\n" }
}

/// A job's journal folded into what the next attempt has to know.
package struct Journal: Sendable, Equatable {
  package struct Start: Sendable, Equatable {
    package let host: String
    /// ``WorkerID/text``.
    package let worker: String
    package let boot: String
  }
  package struct Verified: Sendable, Equatable {
    package let size: UInt64
    package let checksum: Checksum
    package let part: UInt64
    /// What nothing but the server's silence says of the payload: `length`, where only the end of the connection ended the body.
    package let unproven: String?

    package init(size: UInt64, checksum: Checksum, part: UInt64, unproven: String? = nil) {
      self.size = size
      self.checksum = checksum
      self.part = part
      self.unproven = unproven
    }
  }
  package struct Receipt: Sendable, Equatable {
    package let output: String
    /// The output root, where it was not the spool's `files`.
    package let directory: String?
    /// As in ``Verified/unproven``.
    package let unproven: String?
  }

  /// What earlier answers said, by which the next one is judged.
  package struct Answers: Sendable, Equatable {
    /// The ``AnswerKind`` of the answer that was not believed last, since when no other was taken.
    package internal(set) var otherKind: String?
    /// How often in a row the file was refused with a status that may pass.
    package internal(set) var refusals = 0

    package init(otherKind: String? = nil, refusals: Int = 0) {
      self.otherKind = otherKind
      self.refusals = refusals
    }
  }

  package private(set) var isEmpty = true
  /// Attempts that count against the budget, since the job last came through `new/`.
  package private(set) var failures = 0
  package private(set) var mismatches = 0
  /// Whoever worked on the job last.
  package private(set) var lastStart: Start?
  package private(set) var firstStarted: Timestamp?
  package private(set) var lastStarted: Timestamp?
  /// Where the data stood when it first grew since ``lastStarted``.
  package private(set) var grewFrom: UInt64?
  package private(set) var version: RemoteVersion?
  package private(set) var answers = Answers()
  private var hasReplacedKind = false
  /// Whether an answer of another kind took the place of data, which was set aside for a person to look at, or may do so in this attempt.
  package var mayHaveReplacedKind: Bool { hasReplacedKind || answers.otherKind != nil }
  /// The inode that ``version`` was written to.
  package private(set) var part: UInt64?
  /// The last durable mark.
  package private(set) var checkpoint: Mark?
  /// The last mark that holds as long as nothing but the process died.
  package private(set) var softMark: Mark?
  /// An attempt ended with a failed fsync: the data's inode must not be trusted beyond the checkpoint, nor the job's own.
  package private(set) var lostWrites = false
  package private(set) var verified: Verified?
  package private(set) var receipt: Receipt?
  /// What a receipt was written for. A job that was taken back before its move to `done/` has it still, through `requeued:`, until it starts.
  package private(set) var published: Verified?
  package private(set) var fetched: UInt64 = 0
  /// Where the data stood when it began to grow without a later record of how many bytes were fetched.
  package private(set) var unrecordedFrom: UInt64?
  package private(set) var lastFailure: Fields?
  package private(set) var lastInterruption: Fields?
  /// Whoever started last has not said how that ended: it works still, or died. Nor did anybody look at the data since.
  package private(set) var hasOpenAttempt = false
  /// Workers in a row that began with the job, and have not said how that ended.
  private var openStarts = 0
  /// The last line is a failure: the move that belongs to it may not have happened.
  package private(set) var endsInFailure = false

  package init() {}

  /// How many workers died one after another in an attempt of this job, which may be why. A machine that lost its power
  /// counts as well.
  /// - Parameter worker: who asks, and has not died.
  package func deaths(askedBy worker: WorkerID) -> Int {
    lastStart?.worker == worker.text ? max(0, openStarts - 1) : openStarts
  }

  /// Takes one line in; a line that it cannot read is skipped, as one from a later version would be.
  package mutating func apply(_ key: JournalKey, _ fields: Fields) {
    isEmpty = false
    endsInFailure = key == .failed
    func number(_ name: String) -> UInt64? { fields[name].flatMap { decimal($0) } }
    func checksum() -> Checksum? { fields["crc32"].flatMap { Checksum($0) } }
    let time = fields.words.first.flatMap { Timestamp($0) }
    func mark(at offset: UInt64?) -> Mark? {
      guard let offset, let sum = checksum() else { return nil }
      return Mark(offset: offset, checksum: sum)
    }
    switch key {
    case .requeued:
      (failures, mismatches, fetched, firstStarted, openStarts) = (0, 0, 0, nil, 0)
      answers = Answers()
      // The job may have been edited: what was verified for its old text proves nothing.
      (verified, receipt) = (nil, nil)
    case .started:
      guard let worker = fields["worker"], let boot = fields["boot"] else { return }
      // Each mirror has a line, and whoever could not go on begins once more.
      if openStarts == 0 || lastStart?.worker != worker { openStarts += 1 }
      lastStart = Start(host: String(worker.prefix { $0 != "." }), worker: worker, boot: boot)
      firstStarted = firstStarted ?? time
      (lastStarted, grewFrom, hasOpenAttempt) = (time, nil, true)
      (verified, receipt, published) = (nil, nil, nil)
    case .response:
      guard let mirror = number("mirror"), let offset = number("at"), mirror <= 1_000_000 else { return }
      version = RemoteVersion(
        mirror: Int(mirror), size: number("size"), etag: fields["etag"], modified: fields["modified"],
        ignoresIfRange: fields["if-range"] == "ignored",
        resource: fields["resource"].map { Resource(place: $0, query: fields["query"].flatMap { Checksum($0) }) },
        type: fields["type"])
      part = number("part")
      lostWrites = false
      if offset == 0, answers.otherKind != nil { hasReplacedKind = true }
      answers = Answers()
      // The data was cut to here.
      checkpoint = checkpoint.flatMap { $0.offset > offset || offset == 0 ? nil : $0 }
      softMark = softMark.flatMap { $0.offset > offset || offset == 0 ? nil : $0 }
      unrecordedFrom = min(unrecordedFrom ?? offset, offset)
      grewFrom = min(grewFrom ?? offset, offset)
    case .checkpoint:
      checkpoint = mark(at: fields.words.first.flatMap { decimal($0) })
      softMark = checkpoint
    case .cleared:
      openStarts = min(openStarts, 1)
    case .interrupted:
      (lastInterruption, openStarts) = (fields, 0)
      softMark = mark(at: number("at")) ?? softMark
      fetched &+= number("fetched") ?? 0
      (unrecordedFrom, hasOpenAttempt) = (nil, false)
      if fields["lost"] == "yes" { lostWrites = true }
    case .failed:
      (lastFailure, openStarts) = (fields, 0)
      (unrecordedFrom, hasOpenAttempt) = (nil, fields["doubt"] == "yes")
      fetched &+= number("fetched") ?? 0
      // Without an attempt, as where the text was no job's, none has failed.
      if fields["burned"] != "no", fields["attempt"] != "0" { failures += 1 }
      let code = fields["code"].flatMap { FailureCode(rawValue: $0) }
      if let code, code.isMismatch {
        mismatches += 1
        (version, part, checkpoint, softMark, verified) = (nil, nil, nil, nil, nil)
      } else {
        softMark = mark(at: number("at")) ?? softMark
      }
      if code == .io || fields["lost"] == "yes" { lostWrites = true }
      if code == .otherKind { answers.otherKind = fields["found"] }
      let status = fields["code"].flatMap { $0.hasPrefix("http-") ? Int($0.dropFirst(5)) : nil }
      answers.refusals = Failure.isRefusal(status: status) ? answers.refusals + 1 : 0
    case .verified:
      guard let size = number("size"), let sum = checksum(), let part = number("part") else { return }
      verified = Verified(size: size, checksum: sum, part: part, unproven: fields["unproven"])
    case .done:
      (hasOpenAttempt, openStarts) = (false, 0)
      guard let output = fields["output"] else { return }
      receipt = Receipt(output: output, directory: fields["directory"], unproven: fields["unproven"])
      published = verified
    }
  }
}
