/// A job's journal, folded into what the next attempt has to know. Each part takes from a line what concerns it.
package struct Journal: Sendable, Equatable {
  /// Whether there was no line of a known key.
  package private(set) var isEmpty = true
  package private(set) var isUrgent = false
  /// Since when the job has been there, since it last came through `new/`: as its first attempt says, or by the time of
  /// its first line.
  package private(set) var knownSince: Timestamp?
  package private(set) var attempts = Attempts()
  package private(set) var data = Data()
  package private(set) var traffic = Traffic()
  package private(set) var answers = Answers()
  package private(set) var publication = Publication()
  package private(set) var checks = Checks()

  package init() {}

  /// Takes one line in. A line that cannot be read is skipped, like one of a later version.
  package mutating func apply(_ key: JournalKey, _ fields: Fields) {
    let entry = JournalEntry(key: key, fields: fields)
    isEmpty = false
    isUrgent = isUrgent || key == .urgent
    attempts.endsInFailure = key == .failed
    guard entry.isComplete else { return }
    knownSince = key == .requeued ? entry.fields.time : knownSince ?? entry.fields.time
    if key == .started, let dropped = fields.time("dropped") { knownSince = knownSince.map { min($0, dropped) } }
    attempts.apply(entry)
    data.apply(entry)
    // Before it asks, an attempt writes one of data that it has copied.
    if key != .response || attempts.isOpen {
      traffic.apply(entry)
      answers.apply(entry)
    }
    publication.apply(entry)
    checks.apply(entry)
  }

  // MARK: attempts

  package struct Start: Sendable, Equatable {
    package let host: String
    /// ``WorkerID/text``.
    package let worker: String
    /// The id of that host's boot (random(4)).
    package let boot: String
  }

  /// Who worked on the job, and how that ended.
  package struct Attempts: Sendable, Equatable {
    /// Attempts that count against `attempts:`, since the job last came through `new/`.
    package fileprivate(set) var failures = 0
    /// Failures of its servers in a row, which do not count.
    package fileprivate(set) var deferrals = 0
    /// When the first of them was.
    package fileprivate(set) var deferredSince: Timestamp? { didSet { if deferredSince == nil { asked = [] } } }
    /// The servers that were asked since then.
    private var asked: Set<ExactText> = []
    /// Failures because the data was not what the job declares.
    package fileprivate(set) var mismatches = 0
    /// Whether a mirror has sent such data, in an attempt that may not have ended.
    package fileprivate(set) var hasMismatched = false
    /// The mirrors that alone have sent a wrong file: what ``mirror(_:_:)`` makes of `started:`.
    private var wrongMirrors: Set<ExactText> = []
    private var mirrors: [UInt64: ExactText] = [:]
    /// How often the payload could not be delivered since it was published.
    package fileprivate(set) var failedDeliveries = 0
    package fileprivate(set) var lastStart: Start?
    package fileprivate(set) var firstStarted: Timestamp?
    package fileprivate(set) var lastStarted: Timestamp?
    /// The last attempt has no end record: its worker may be alive or dead. A receipt ends it only in `done/`.
    package fileprivate(set) var isOpen = false
    /// Workers in a row that began with the job and recorded no end.
    fileprivate var openStarts = 0
    package fileprivate(set) var lastFailure: Fields?
    package fileprivate(set) var lastInterruption: Fields?
    /// The last line is a failure: the job's move that follows it may not have happened.
    package fileprivate(set) var endsInFailure = false

    /// How many workers died one after another in an attempt of this job, which may be the cause. A machine that lost
    /// its power counts as well.
    /// - Parameter worker: the one that asks, and so has not died.
    /// - Parameter isLastFrozen: nor has the last one.
    package func deaths(askedBy worker: WorkerID, isLastFrozen: Bool = false) -> Int {
      isLastFrozen || lastStart?.worker == worker.text ? max(0, openStarts - 1) : openStarts
    }

    /// Since when the server of this URL has put the job off, as far as is known; nil if only others have.
    package func deferredSince(by url: String) -> Timestamp? {
      asked.isEmpty || asked.contains(Self.server(of: url)) ? deferredSince : nil
    }

    /// Whether a mirror has sent a wrong file alone.
    /// - Parameter url: as `started:` shows it.
    package func isWrong(_ url: String, _ source: DataSource) -> Bool {
      wrongMirrors.contains(Self.mirror(url, source.query))
    }

    /// Mirrors may differ in the query alone.
    private static func mirror(_ url: String?, _ query: String?) -> ExactText { "\(url ?? "") \(query ?? "")".exact }

    private static func server(of url: String) -> ExactText {
      let text = URLText(url)
      return "\(text.scheme)\(text.host)".exact
    }

    fileprivate mutating func apply(_ entry: JournalEntry) {
      switch entry.key {
      case .requeued:
        (failures, deferrals, mismatches, failedDeliveries) = (0, 0, 0, 0)
        (deferredSince, firstStarted, openStarts, hasMismatched, wrongMirrors) = (nil, nil, 0, false, [])
      case .started:
        let (worker, boot) = (entry.fields["worker"] ?? "", entry.fields["boot"] ?? "")
        // A worker writes this line for each mirror, and when it begins again by itself. One that was frozen has not
        // died.
        if openStarts == 0 || lastStart?.worker != worker && entry.fields["former"] != "frozen" { openStarts += 1 }
        lastStart = Start(host: String(worker.prefix(before: ".")), worker: worker, boot: boot)
        firstStarted = firstStarted ?? entry.fields.time
        if entry.fields["alone"] == "yes" { hasMismatched = true }
        if let mirror = entry.fields.number("mirror") {
          mirrors[mirror] = Self.mirror(entry.fields["url"], entry.fields["query"])
        }
        (lastStarted, isOpen) = (entry.fields.time, true)
        // What another server did is not charged to one that is asked for the first time.
        let server = Self.server(of: entry.fields["url"] ?? "")
        if !asked.contains(server) { (deferredSince, asked) = (nil, asked.union([server])) }
      case .cleared: openStarts = min(openStarts, 1)
      case .interrupted: (lastInterruption, openStarts, isOpen) = (entry.fields, 0, false)
      case .failed:
        (lastFailure, openStarts, isOpen) = (entry.fields, 0, entry.fields["doubt"] == "yes")
        // Attempt 0 is none: the text was no job's.
        let label = entry.fields["code"] ?? ""
        let isDeferral = entry.fields["burned"] == "no" && FailureCode.row(of: label)?.burnsAttempt ?? false
        deferredSince = isDeferral ? deferredSince ?? entry.fields.time : nil
        deferrals = isDeferral ? deferrals + 1 : 0
        if entry.failureCode == .deliver {
          failedDeliveries += 1
        } else if entry.fields["burned"] != "no", entry.fields["attempt"] != "0" {
          failures += 1
        }
        if entry.failureCode?.isMismatch == true { (mismatches, hasMismatched) = (mismatches + 1, true) }
        if let wrong = entry.fields.number("mirror").flatMap({ mirrors[$0] }) { wrongMirrors.insert(wrong) }
      // The transfer has not killed the worker.
      case .published: (failedDeliveries, openStarts) = (0, 0)
      // The attempt stays open until the receipt's fsync(2) has succeeded, and only the move to done/ says that it has.
      case .done: openStarts = 0
      case .checked:
        (failures, deferrals, mismatches, openStarts, isOpen) = (0, 0, 0, 0, false)
        (lastFailure, deferredSince) = (nil, nil)
      case .response: if isOpen { (deferrals, deferredSince) = (0, nil) }
      case .urgent, .relinked, .checkpoint, .verified, .seen: break
      }
    }
  }

  // MARK: data

  /// What is known of the data, `partial/NAME.part`.
  package struct Data: Sendable, Equatable {
    /// What it is a prefix of.
    package fileprivate(set) var version: RemoteVersion?
    /// What the job asked for when ``version`` answered; nil where no line says it.
    package fileprivate(set) var source: DataSource?
    private var asked: DataSource?
    /// The inode that ``version`` was written to.
    package fileprivate(set) var part: UInt64?
    package fileprivate(set) var checkpoint: Mark?
    /// The last mark that is valid if only the process died.
    package fileprivate(set) var softMark: Mark?
    /// The last durable mark that is at least ``Journal/farBack`` before ``checkpoint``, so that cutting the end off
    /// takes no reading from the start.
    package fileprivate(set) var earlierMark: Mark?
    /// The bytes from this offset on came in an answer that broke off, so the last of them may be wrong; nil where none
    /// did.
    package fileprivate(set) var brokenFrom: UInt64?
    /// What the last attempt left, if no answer came since it recorded its end. What is behind it is not believed: the
    /// attempt could not cut it off.
    package fileprivate(set) var end: UInt64?
    /// An attempt ended with a failed fsync: neither the data's inode beyond the checkpoint nor the job's is to be
    /// trusted.
    package fileprivate(set) var lostWrites = false

    fileprivate mutating func apply(_ entry: JournalEntry) {
      switch entry.key {
      case .response:
        let offset = entry.fields.number("at") ?? 0
        let inode = entry.fields.inode("part")
        // Behind the start, a line with another inode only says where the data is now.
        if offset == 0 || inode == part { source = asked }
        (version, part, end, lostWrites) = (entry.version, inode, nil, false)
        // The data was cut to here.
        checkpoint = checkpoint.flatMap { $0.offset > offset || offset == 0 ? nil : $0 }
        softMark = softMark.flatMap { $0.offset > offset || offset == 0 ? nil : $0 }
        earlierMark = earlierMark.flatMap { $0.offset > offset || offset == 0 ? nil : $0 }
        // Until its end is known.
        brokenFrom = min(brokenFrom ?? offset, offset)
      case .checkpoint: noteCheckpoint(entry.mark)
      case .interrupted:
        noteEnd(entry.mark)
        brokenFrom = entry.fields.number("broken")
        if entry.fields["lost"] == "yes" { lostWrites = true }
      case .failed:
        // What is left then is of another mirror.
        if entry.failureCode?.isMismatch == true, entry.mark?.offset ?? 0 == 0 {
          (version, source, part, checkpoint, softMark, earlierMark, end) = (nil, nil, nil, nil, nil, nil, nil)
          brokenFrom = nil
        } else {
          noteEnd(entry.mark)
          // 0.2 did not say where a broken answer began.
          let isCut = entry.failureCode?.isCut == true
          // A failure before the data was opened says nothing about the data.
          brokenFrom = entry.fields.number("broken") ?? (isCut || entry.mark == nil ? brokenFrom : nil)
        }
        // 0.2 did not always say it of `io`.
        if entry.fields["lost"] ?? (entry.failureCode == .io ? "yes" : nil) == "yes" { lostWrites = true }
      // A person's word holds until a response shows what the new URL leads to.
      case .relinked: version?.isVouched = entry.fields["same"] == "yes"
      case .started: asked = DataSource(entry.fields)
      case .verified: brokenFrom = nil
      case .requeued, .urgent, .cleared, .published, .done, .checked, .seen: break
      }
    }

    private mutating func noteEnd(_ mark: Mark?) {
      guard let mark else { return }
      (softMark, end) = (mark, mark.offset)
    }

    private mutating func noteCheckpoint(_ mark: Mark?) {
      if let mark, let checkpoint, mark.offset >= checkpoint.offset + Journal.farBack { earlierMark = checkpoint }
      if let earlier = earlierMark, earlier.offset > mark?.offset ?? 0 { earlierMark = nil }
      (checkpoint, softMark) = (mark, mark)
    }
  }

  /// How long a wrong end of the data may be, in bytes, so that cutting it off needs only the marks that are kept.
  package static let farBack: UInt64 = 1 << 20

  /// Bytes that came over the network.
  package struct Traffic: Sendable, Equatable {
    /// Since the job last came through `new/`.
    package fileprivate(set) var fetched: UInt64 = 0
    /// Where the data began to grow without a later record of how many bytes were fetched.
    package fileprivate(set) var unrecordedFrom: UInt64?
    /// Where the data first began to grow since the last attempt started.
    package fileprivate(set) var grewFrom: UInt64?

    fileprivate mutating func apply(_ entry: JournalEntry) {
      switch entry.key {
      case .requeued: fetched = 0
      case .started: grewFrom = nil
      case .response:
        let offset = entry.fields.number("at") ?? 0
        // Without a resource it is a copy of a file that is there.
        if offset == 0, entry.version?.resource == nil { break }
        unrecordedFrom = min(unrecordedFrom ?? offset, offset)
        grewFrom = min(grewFrom ?? offset, offset)
      case .interrupted, .failed:
        fetched &+= entry.fields.number("fetched") ?? 0
        unrecordedFrom = nil
      case .urgent, .relinked, .checkpoint, .cleared, .verified, .published, .done, .checked, .seen: break
      }
    }
  }

  // MARK: answers

  /// What earlier answers said, by which the next one is judged.
  package struct Answers: Sendable, Equatable {
    /// What the last answer was, as a text, if it was not believed.
    package fileprivate(set) var otherKind: String?
    /// How often in a row the file was refused with a status that may pass.
    package fileprivate(set) var refusals = 0
    private var hasReplacedKind = false
    /// Whether an answer of another kind replaced data, which was set aside for a person, or may do so in this attempt.
    package var mayHaveReplacedKind: Bool { hasReplacedKind || otherKind != nil }

    /// - Parameter refusals: how often in a row, up to now.
    package init(otherKind: String? = nil, refusals: Int = 0) {
      (self.otherKind, self.refusals) = (otherKind, refusals)
    }

    fileprivate mutating func apply(_ entry: JournalEntry) {
      switch entry.key {
      case .requeued: (otherKind, refusals) = (nil, 0)
      case .response:
        if entry.fields.number("at") == 0, otherKind != nil { hasReplacedKind = true }
        (otherKind, refusals) = (nil, 0)
      case .failed:
        if entry.failureCode == .otherKind { otherKind = entry.fields["found"] }
        refusals = Failure.isRefusal(status: entry.httpStatus) ? refusals + 1 : 0
      case .urgent, .relinked, .started, .checkpoint, .cleared, .interrupted, .verified, .published, .done, .checked,
        .seen:
        break
      }
    }
  }

  package struct Verified: Sendable, Equatable {
    package let size: UInt64
    package let digests: Digests
    package let part: UInt64
    /// Which property of the payload is not proven: `length`, if the body ended with the connection.
    package let unproven: String?
    package let signed: String?
    /// Another has put it there, so it is never taken back.
    package var isOthers = false

    /// - Parameter whole: the end of the payload.
    package init(_ whole: Mark, part: UInt64, unproven: String? = nil, signed: String? = nil, isOthers: Bool = false) {
      (size, digests) = (whole.offset, whole.digests)
      (self.part, self.unproven, self.signed, self.isOthers) = (part, unproven, signed, isOthers)
    }

    /// As far as a record says it that has outlived the journal.
    init(size: UInt64, _ digests: Digests, unproven: String?) {
      (self.size, self.digests, part, self.unproven, signed) = (size, digests, 0, unproven, nil)
    }

    fileprivate init?(_ entry: JournalEntry) {
      guard let size = entry.fields.number("size"), let part = entry.fields.inode("part") else { return nil }
      (self.size, self.part) = (size, part)
      digests = Digests(entry.fields)
      if digests[.crc32] == nil { return nil }
      unproven = entry.fields["unproven"]
      signed = entry.fields["signed"]
      isOthers = entry.fields["existing"] == "yes"
    }

    package var expectation: Expectation { Expectation(size: size, digests: digests) }
  }

  /// The fields of a `done:` or a `published:` line.
  package struct Receipt: Sendable, Equatable {
    /// The output's path below its root.
    package let output: String
    /// The output root, where it was not the spool's `files`.
    package let directory: String?
    package let unproven: String?
    /// Whether the hook `deliver` accepted the payload, and may have taken it away.
    package var isDelivered = false

    /// What no two payloads have at the same time: the path and its root.
    package var place: [ExactText?] { [output.exact, directory?.exact] }
  }

  /// What a receipt says of a payload that was published.
  package struct Done: Sendable, Equatable {
    package let receipt: Receipt
    package let verified: Verified
    package let time: Timestamp?
  }

  /// How far the payload's publication went.
  package struct Publication: Sendable, Equatable {
    /// What was verified since the job last began.
    package fileprivate(set) var verified: Verified?
    /// The same, also after the job came through `new/` again: its payload may have its final name.
    package fileprivate(set) var own: Verified?
    /// The receipt since the job last began.
    package fileprivate(set) var receipt: Receipt?
    /// The last receipt, also after the job came through `new/` again, and when it was written.
    package fileprivate(set) var lastReceipt: Receipt?
    package fileprivate(set) var receiptTime: Timestamp?
    /// What has its final name, as far as a receipt or a `published:` line shows, until other data begins to come: a
    /// job that came through `new/` again may stop before that.
    package fileprivate(set) var published: Verified?
    /// The payload that the hook `deliver` has not accepted yet. It has its final name.
    package fileprivate(set) var undelivered: Receipt?
    package var awaitsDelivery: Bool { undelivered != nil }
    package var done: Done? {
      guard let receipt, let verified else { return nil }
      return Done(receipt: receipt, verified: verified, time: receiptTime)
    }

    mutating func apply(_ entry: JournalEntry) {
      switch entry.key {
      // The job may have been edited: what was verified for its old text proves nothing.
      case .requeued: (verified, receipt) = (nil, nil)
      case .started: (verified, own, receipt, undelivered) = (nil, nil, nil, nil)
      case .response: published = nil
      case .failed: if entry.failureCode?.isMismatch == true { (verified, own, undelivered) = (nil, nil, nil) }
      case .verified:
        verified = Verified(entry) ?? verified
        own = entry.fields["existing"] == "yes" ? nil : verified
      case .published:
        published = verified ?? published
        undelivered = Receipt(entry, output: entry.fields["output"] ?? "")
      case .done:
        undelivered = nil
        guard let output = entry.fields["output"] else { return }
        receipt = Receipt(entry, output: output)
        (lastReceipt, receiptTime) = (receipt, entry.fields.time)
        published = verified
      case .urgent, .relinked, .checkpoint, .cleared, .interrupted, .checked, .seen: break
      }
    }
  }

  package struct Check: Sendable, Equatable {
    package let entries: Int
    /// How many of them became jobs.
    package let new: Int
    /// nil if the list is the same as at the last check.
    package let version: ListVersion?
    package let problems: ListProblems
    package let signed: String?

    /// - Parameter version: nil if the list is the same as at the last check.
    package init(
      entries: Int, new: Int, version: ListVersion?, problems: ListProblems = ListProblems(), signed: String? = nil
    ) { (self.signed, self.entries, self.new, self.version, self.problems) = (signed, entries, new, version, problems) }
  }

  /// The version of a list, by which a server can say that it is unchanged (RFC 9110 section 13.1).
  package struct ListVersion: Sendable, Equatable {
    /// A CRC-32 of the URL that was asked, which may contain secrets, and of what its bytes are taken for. A version
    /// counts for these only.
    package let list: Checksum
    /// As sent, also a weak one.
    package let etag: String?
    /// Last-Modified as sent.
    package let modified: String?

    /// - Parameter url: as it was asked; only a CRC-32 of it is kept.
    package init(url: String, format: EntryFormat?, etag: String?, modified: String?) {
      list = Self.checksum(url, format)
      (self.etag, self.modified) = (etag, modified)
    }

    fileprivate init?(_ fields: Fields) {
      guard let list = fields["list"].flatMap({ Checksum($0) }) else { return nil }
      self.list = list
      etag = fields["etag"]
      modified = fields["modified"]
    }

    /// The conditions of a request for a newer version (RFC 9110 section 13.1). With an ETag the date does not count.
    package var conditions: [String] {
      if let etag { return ["If-None-Match: \(etag)"] }
      return modified.map { ["If-Modified-Since: \($0)"] } ?? []
    }

    /// Whether it says the same of the bytes. Mirrors of one file that agree in both have the same version.
    package func hasValidators(of other: ListVersion) -> Bool {
      etag ?? modified != nil && etag?.exact == other.etag?.exact && modified?.exact == other.modified?.exact
    }

    package func isOf(url: String, format: EntryFormat?) -> Bool { list == Self.checksum(url, format) }

    private static func checksum(_ url: String, _ format: EntryFormat?) -> Checksum {
      Checksum(of: "\(url)\n\(format?.rawValue ?? "")")
    }
  }

  package struct Checks: Sendable, Equatable {
    /// Of the last check that found the list sound.
    package private(set) var lastTime: Timestamp?
    package private(set) var entries = 0
    /// What the server said of the list then; nil if it has no validator.
    package private(set) var version: ListVersion?
    package private(set) var problems = ListProblems()
    /// When it was signed, or `yes` if the signature does not say it; nil for what no signature was checked of.
    package private(set) var signed: String?
    /// The entries that are known: the key (``FeedEntry/key``) of one that needs no job; and for one whose job was not
    /// done yet, its key, a dot and its link (``FeedEntry/link(_:)``). Those of the list come first, in its order, then
    /// those that left it, the last one first.
    package private(set) var seen: [String] = []

    /// Hexadecimal digits of a key: 64 bits are enough for the entries of all lists of a spool.
    package static let keyLength = 16
    package static let mostInLine = 64

    mutating func apply(_ entry: JournalEntry) {
      switch entry.key {
      case .checked:
        lastTime = entry.fields.time ?? lastTime
        if entry.fields["unchanged"] == "yes" { return }
        entries = entry.fields.number("entries").flatMap { Int(exactly: $0) } ?? 0
        version = ListVersion(entry.fields)
        problems = entry.fields.problems
        signed = entry.fields["signed"]
      case .seen:
        seen += entry.fields.words.filter { $0.utf8.count == Self.keyLength || $0.utf8.count == 2 * Self.keyLength + 1 }
      default: break
      }
    }
  }
}

/// The keys with which the worker records what happened to a job (spool.5, JOURNAL).
package enum JournalKey: String, CaseIterable, Sendable {
  case requeued, urgent, relinked, started, response, checkpoint, cleared, interrupted, failed, verified, published
  case done
  // Of standing orders.
  case checked, seen
}

/// One journal line as it is read. A field that is missing or cannot be read is nil, as in lines from another version.
struct JournalEntry {
  let key: JournalKey
  let fields: Fields

  /// The offset of a `checkpoint:`, or `at=` of other lines, with the digests of the bytes before it.
  var mark: Mark? {
    Mark(at: key == .checkpoint ? fields.words.first.flatMap { amount($0) } : fields.number("at"), fields)
  }

  var failureCode: FailureCode? { fields["code"].flatMap { FailureCode(label: $0) } }

  /// The status in `code=http-NNN`.
  var httpStatus: Int? { fields["code"].flatMap { FailureCode.status(of: $0) } }

  var version: RemoteVersion? {
    guard let mirror = fields.number("mirror"), mirror <= 1_000_000 else { return nil }
    var version = RemoteVersion(
      mirror: Int(mirror), size: fields.number("size"), etag: fields["etag"], modified: fields["modified"],
      ignoresIfRange: fields["if-range"] == "ignored",
      resource: fields["resource"].map { Resource(place: $0, query: fields["query"].flatMap { Checksum($0) }) },
      type: fields["type"], stated: Digests(fields))
    (version.coding, version.isDecoded) = (fields["coding"], fields["decoded"] == "yes")
    return version
  }

  /// Whether the line has what it cannot do without. A line that has not is skipped.
  var isComplete: Bool {
    switch key {
    case .started: fields["worker"] != nil && fields["boot"] != nil
    case .response: version != nil && fields.number("at") != nil
    case .requeued, .urgent, .relinked, .checkpoint, .cleared, .interrupted, .failed, .verified, .published, .done,
      .checked, .seen:
      true
    }
  }
}

extension Journal.Receipt {
  fileprivate init(_ entry: JournalEntry, output: String) {
    self.init(
      output: output, directory: entry.fields["directory"], unproven: entry.fields["unproven"],
      isDelivered: entry.fields["delivered"] != nil)
  }
}
