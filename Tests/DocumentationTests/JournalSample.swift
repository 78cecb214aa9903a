import Spool
import Testing

/// A journal line with every field that it can have.
struct JournalSample: Sendable, CustomTestStringConvertible {
  let line: JournalLine

  var testDescription: String { line.key.rawValue }

  /// One for each key; `switch` in ``JournalLine/key`` makes sure that no case is left out of the program's own.
  static let all: [JournalSample] = {
    let now = Timestamp(seconds: 1_795_000_000)
    let mark = Mark(offset: 1, checksum: Checksum())
    let version = RemoteVersion(
      mirror: 1, size: 2, etag: "\"a\"", modified: "yes", ignoresIfRange: true,
      resource: Resource(place: "https://a", query: "b"), type: "text/plain")
    // A full disk burns no attempt, which is a field.
    var failure = Failure(.diskFull, "full", expected: "a", found: "b", line: 3)
    failure.lostWrites = true
    failure.isDoubtful = true
    failure.tried = "HTTP/1.1"
    let record = FailureRecord(
      time: now, attempt: 1, failure: failure, offset: 1, checksum: Checksum(), fetched: 1, retry: now)
    let lines: [JournalLine] = [
      .requeued(now),
      .started(
        now, attempt: 1, worker: WorkerID(host: "alpha", process: 1, tag: 2), boot: "b", mirror: 1, url: "https://a"),
      .response(version, at: 0, part: 1),
      .checkpoint(mark),
      .cleared(now),
      .interrupted(now, attempt: 1, mark: mark, fetched: 1, lostWrites: true, reason: "stopped"),
      .failed(record),
      .verified(now, .init(size: 1, checksum: Checksum(), part: 1, unproven: "length")),
      .done(
        now, attempts: 1, output: "a", fetched: 1, seconds: 1, existing: true, unproven: "length",
        directory: "/srv"),
    ]
    return lines.map { JournalSample(line: $0) }
  }()
}
