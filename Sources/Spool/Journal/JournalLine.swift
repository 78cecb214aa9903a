/// One line that the worker writes (spool.5, JOURNAL).
package enum JournalLine: Sendable {
  case requeued(Timestamp)
  case urgent(Timestamp)
  case relinked(Timestamp, url: String, isSame: Bool)
  /// `source`: what is asked; only what `url` does not say of it is written. `afterFreeze`: it has taken the job from a
  /// worker that was frozen (``Claim/FormerOwner/mayWake``). `isAlone`: another mirror has sent wrong data.
  case started(
    Timestamp, attempt: Int, worker: WorkerID, boot: String, mirror: Int, url: String, source: DataSource? = nil,
    afterFreeze: Bool = false, dropped: Timestamp? = nil, isAlone: Bool = false)
  case response(RemoteVersion, at: UInt64, part: UInt64)
  case checkpoint(Mark)
  case cleared(Timestamp)
  /// `broken`: see ``Journal/Data/brokenFrom``.
  case interrupted(
    Timestamp, attempt: Int, mark: Mark?, fetched: UInt64, broken: UInt64? = nil, lostWrites: Bool = false,
    reason: String)
  case failed(FailureRecord)
  case verified(Timestamp, Journal.Verified)
  case published(Timestamp, output: String, directory: String?)
  case done(
    Timestamp, attempts: Int, output: String, fetched: UInt64, milliseconds: Int64, existing: Bool, unproven: String?,
    directory: String?, delivered: Timestamp? = nil)
  case checked(Timestamp, Journal.Check)
  /// At most ``Journal/Checks/mostInLine`` keys of entries (``FeedEntry/key``).
  case seen(ArraySlice<String>)

  package var key: JournalKey {
    switch self {
    case .requeued: .requeued
    case .urgent: .urgent
    case .relinked: .relinked
    case .started: .started
    case .response: .response
    case .checkpoint: .checkpoint
    case .cleared: .cleared
    case .interrupted: .interrupted
    case .failed: .failed
    case .verified: .verified
    case .published: .published
    case .done: .done
    case .checked: .checked
    case .seen: .seen
    }
  }

  package var fields: Fields {
    switch self {
    case .requeued(let time), .urgent(let time), .cleared(let time): Fields("\(time)")
    case .relinked(let time, let url, let isSame): Fields("\(time)").with("url", url).with("same", isSame ? "yes" : nil)
    case .started(
      let time, let attempt, let worker, let boot, let mirror, let url, let source, let afterFreeze, let dropped,
      let isAlone):
      Fields("\(time)").with("attempt", attempt).with("worker", worker.text).with("boot", boot)
        .with("mirror", mirror).with("url", url).with("query", source?.query).with("resolve", source?.resolve)
        .with("former", afterFreeze ? "frozen" : nil).with("dropped", dropped).with("alone", isAlone ? "yes" : nil)
    case .response(let version, let offset, let part):
      Fields().with("mirror", version.mirror).with("at", offset).with("part", part)
        .with("size", version.size).with("etag", version.etag).with("modified", version.modified)
        .with("if-range", version.ignoresIfRange ? "ignored" : nil)
        .with("coding", version.coding).with("decoded", version.isDecoded ? "yes" : nil)
        .with("type", version.type).with("resource", version.resource?.place).with("query", version.resource?.query)
        .with(version.stated)
    case .checkpoint(let mark): Fields("\(mark.offset)").with(mark.states)
    case .interrupted(let time, let attempt, let mark, let fetched, let broken, let lostWrites, let reason):
      Fields("\(time)").with("attempt", attempt).with("at", mark?.offset).with(mark?.states).with("fetched", fetched)
        .with("broken", broken).with("lost", lostWrites ? "yes" : nil).with("reason", reason)
    case .failed(let record): record.fields
    case .verified(let time, let verified):
      Fields("\(time)").with("size", verified.size).with(verified.digests).with("part", verified.part)
        .with("unproven", verified.unproven).with("signed", verified.signed)
        .with("existing", verified.isOthers ? "yes" : nil)
    case .published(let time, let output, let directory):
      Fields("\(time)").with("output", output).with("directory", directory)
    case .done(
      let time, let attempts, let output, let fetched, let milliseconds, let existing, let unproven,
      let directory, let delivered):
      Fields("\(time)").with("attempts", attempts).with("output", output)
        .with("bytes-fetched", fetched).with("seconds", milliseconds / 1000).with("milliseconds", milliseconds)
        .with("existing", existing ? "yes" : nil).with("unproven", unproven).with("directory", directory)
        .with("delivered", delivered)
    case .checked(let time, let check):
      Fields("\(time)").with("entries", check.entries).with("new", check.new)
        .with("unchanged", check.version == nil ? "yes" : nil).with("etag", check.version?.etag)
        .with("modified", check.version?.modified).with("list", check.version?.list)
        .with("signed", check.signed).with(check.problems)
    case .seen(let keys): Fields(words: Array(keys))
    }
  }

  package var text: String { String(decoding: bytes, as: UTF8.self) }

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(255)
    bytes.append(utf8Of: key.rawValue)
    bytes.append(utf8Of: ": ")
    fields.append(to: &bytes)
    bytes.append(0x0A)
    return bytes
  }
}
