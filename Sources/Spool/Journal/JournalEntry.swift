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

  /// The first word of most lines.
  var time: Timestamp? { word.flatMap { Timestamp($0) } }

  var word: String? { fields.words.first }

  func number(_ name: String) -> UInt64? { fields[name].flatMap { decimal($0) } }

  /// The offset of a `checkpoint:`, or `at=` of other lines, with the digests of the bytes before it.
  var mark: Mark? { Mark(at: key == .checkpoint ? word.flatMap { decimal($0) } : number("at"), fields) }

  var failureCode: FailureCode? { fields["code"].flatMap { FailureCode(label: $0) } }

  /// The status in `code=http-NNN`.
  var httpStatus: Int? { fields["code"].flatMap { FailureCode.status(of: $0) } }

  /// What the answer was of, from a `response:`.
  var version: RemoteVersion? {
    guard let mirror = number("mirror"), mirror <= 1_000_000 else { return nil }
    var version = RemoteVersion(
      mirror: Int(mirror), size: number("size"), etag: fields["etag"], modified: fields["modified"],
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
    case .response: version != nil && number("at") != nil
    case .requeued, .urgent, .relinked, .checkpoint, .cleared, .interrupted, .failed, .verified, .published, .done,
      .checked, .seen:
      true
    }
  }
}
