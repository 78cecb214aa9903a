import Spool
import SystemPackage
import Testing

/// Journal lines of one key with every field that they can have.
struct JournalSample: Sendable, CustomTestStringConvertible {
  let key: JournalKey
  let fields: Set<String>

  var testDescription: String { key.rawValue }

  /// One for each key; `switch` in ``JournalLine/key`` makes sure that no case is left out of the program's own.
  static let all: [JournalSample] = {
    let now = Timestamp(seconds: 1_795_000_000)
    let mark = Mark.zero(Set(DigestAlgorithm.allCases))
    var version = RemoteVersion(
      mirror: 1, size: 2, etag: "\"a\"", modified: "yes", ignoresIfRange: true,
      resource: Resource(place: "https://a", query: "b"), type: "text/plain", stated: mark.digests)
    (version.coding, version.isDecoded) = ("gzip", true)
    var problems = ListProblems()
    problems.note(Defect(line: 1, reason: "no URL"))
    // A full disk burns no attempt, which is a field.
    var failure = Failure(.diskFull, "full", expected: "a", found: "b", line: 3)
    (failure.tried, failure.wrongMirror) = ("HTTP/1.1", 2)
    let lost = Trust.lost(SpoolError(call: .fsync, path: "a", errno: .ioError))
    let records = [lost, .doubtful].map { trust in
      FailureRecord(
        time: now, attempt: 1, failure: failure, trust: trust, mark: mark, fetched: 1, broken: 1, retry: now)
    }
    let lines: [JournalLine] = [
      .requeued(now),
      .urgent(now),
      .relinked(now, url: "https://a", isSame: true),
      .started(
        now, attempt: 1, worker: WorkerID(host: "alpha", process: 1, tag: 2), boot: "b", mirror: 1, url: "https://a",
        source: DataSource(Resource(place: "https://a", query: "b")), afterFreeze: true, dropped: now, isAlone: true),
      .started(
        now, attempt: 1, worker: WorkerID(host: "alpha", process: 1, tag: 2), boot: "b", mirror: 1, url: "https://a",
        source: DataSource(resolve: "b")),
      .response(version, at: 0, part: 1),
      .checkpoint(mark),
      .cleared(now),
      .interrupted(now, attempt: 1, mark: mark, fetched: 1, broken: 1, lostWrites: true, reason: "stopped"),
      .failed(records[0]),
      .failed(records[1]),
      .verified(now, .init(mark, part: 1, unproven: "length", signed: "yes", isOthers: true)),
      .published(now, output: "a", directory: "/srv"),
      .done(
        now, attempts: 1, output: "a", fetched: 1, milliseconds: 1000, existing: true, unproven: "length",
        directory: "/srv", delivered: now),
      .checked(now, .init(entries: 2, new: 1, version: .init(url: "a", format: nil, etag: "\"a\"", modified: "b"))),
      .checked(now, .init(entries: 2, new: 0, version: nil, problems: problems, signed: "yes")),
      .seen(["0123456789abcdef"]),
    ]
    return Dictionary(grouping: lines, by: \.key).map { key, lines in
      JournalSample(key: key, fields: Set(lines.flatMap { $0.fields.named.map(\.key) }))
    }
  }()
}
