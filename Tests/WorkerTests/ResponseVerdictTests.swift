import Testing

@testable import Spool
@testable import SpoolWorker
@testable import Transfer

/// What a response's status and header fields allow, case by case (protocol, invariant 5; RFC 9110).
@Suite struct ResponseVerdictTests {
  struct Row: Sendable, CustomTestStringConvertible {
    let name: String
    let status: Int
    let fields: [String]
    var offset: UInt64 = 50
    /// What the data is a prefix of: strong, weak, dated, bare or unknown.
    var version = "strong"
    /// The size that is known of it.
    var total: UInt64? = 100
    var checksum = false
    var size: UInt64?
    var mirror = 1
    var ifRangeIgnored = false
    /// `append`, `replace`, `complete`, `startOver`, or the code of a failure.
    let verdict: String
    var testDescription: String { name }
  }

  private static let date = "Sat, 21 Nov 2026 12:00:00 GMT"
  private static let earlier = "Sat, 21 Nov 2026 10:00:00 GMT"
  private static let good = ["content-range: bytes 50-99/100", "etag: \"v1\"", "content-length: 50"]

  private static let fresh = [
    Row(name: "whole", status: 200, fields: ["content-length: 100"], offset: 0, version: "unknown", verdict: "append"),
    Row(name: "whole without length", status: 200, fields: [], offset: 0, version: "unknown", verdict: "append"),
    Row(name: "empty", status: 200, fields: ["content-length: 0"], offset: 0, version: "unknown", verdict: "append"),
    Row(name: "another size than declared", status: 200, fields: ["content-length: 99"], offset: 0, size: 100, verdict: "mismatch-size"),
    Row(name: "the declared size", status: 200, fields: ["content-length: 100"], offset: 0, size: 100, verdict: "append"),
    Row(name: "gzip", status: 200, fields: ["content-encoding: gzip"], offset: 0, verdict: "bad-response"),
    Row(name: "identity", status: 200, fields: ["content-encoding: identity"], offset: 0, verdict: "append"),
    Row(name: "identity, gzip", status: 200, fields: ["content-encoding: identity", "content-encoding: gzip"], offset: 0, verdict: "bad-response"),
    Row(name: "206 unasked", status: 206, fields: ["content-range: bytes 0-99/100"], offset: 0, version: "unknown", verdict: "bad-response"),
    Row(name: "416 unasked", status: 416, fields: ["content-range: bytes */100"], offset: 0, version: "unknown", verdict: "http-416"),
  ]

  private static let whole = [
    Row(name: "changed", status: 200, fields: ["content-length: 90", "etag: \"v2\""], verdict: "replace"),
    Row(name: "range ignored", status: 200, fields: ["content-length: 100", "etag: \"v1\""], verdict: "replace"),
    Row(name: "resume, another size than declared", status: 200, fields: ["content-length: 99"], size: 100, verdict: "mismatch-size"),
    Row(name: "resume, gzip", status: 200, fields: ["content-encoding: br"], verdict: "bad-response"),
  ]

  private static let partial = [
    Row(name: "right", status: 206, fields: good, verdict: "append"),
    Row(name: "right, less than asked for", status: 206, fields: ["content-range: bytes 50-59/100", "etag: \"v1\""], verdict: "append"),
    Row(name: "right, total *", status: 206, fields: ["content-range: bytes 50-99/*", "etag: \"v1\""], verdict: "append"),
    Row(name: "right, unit in capitals", status: 206, fields: ["content-range: BYTES 50-99/100", "etag: \"v1\""], verdict: "append"),
    Row(name: "no Content-Range", status: 206, fields: ["etag: \"v1\""], verdict: "startOver"),
    Row(name: "two", status: 206, fields: good + ["content-range: bytes 50-99/100"], verdict: "startOver"),
    Row(name: "another unit", status: 206, fields: ["content-range: items 50-99/100", "etag: \"v1\""], verdict: "startOver"),
    Row(name: "starts before", status: 206, fields: ["content-range: bytes 49-99/100", "etag: \"v1\""], verdict: "startOver"),
    Row(name: "starts behind", status: 206, fields: ["content-range: bytes 51-99/100", "etag: \"v1\""], verdict: "startOver"),
    Row(name: "starts at 0", status: 206, fields: ["content-range: bytes 0-99/100", "etag: \"v1\""], verdict: "startOver"),
    Row(name: "last before first", status: 206, fields: ["content-range: bytes 50-49/100", "etag: \"v1\""], verdict: "startOver"),
    Row(name: "beyond total", status: 206, fields: ["content-range: bytes 50-100/100", "etag: \"v1\""], verdict: "startOver"),
    Row(name: "overflow", status: 206, fields: ["content-range: bytes 50-99/18446744073709551716", "etag: \"v1\""], verdict: "startOver"),
    Row(name: "unsatisfied form", status: 206, fields: ["content-range: bytes */100", "etag: \"v1\""], verdict: "startOver"),
    Row(name: "total changed", status: 206, fields: ["content-range: bytes 50-109/110", "etag: \"v1\""], verdict: "startOver"),
    Row(
      name: "length and range disagree", status: 206, fields: ["content-range: bytes 50-99/100", "etag: \"v1\"", "content-length: 49"],
      verdict: "startOver"),
    Row(
      name: "chunked: length means nothing", status: 206,
      fields: ["content-range: bytes 50-99/100", "etag: \"v1\"", "content-length: 49", "transfer-encoding: chunked"], verdict: "append"),
    Row(name: "etag changed", status: 206, fields: ["content-range: bytes 50-99/100", "etag: \"v2\""], verdict: "startOver"),
    Row(name: "etag turned weak", status: 206, fields: ["content-range: bytes 50-99/100", "etag: W/\"v1\""], verdict: "startOver"),
    Row(name: "etag gone", status: 206, fields: ["content-range: bytes 50-99/100"], verdict: "startOver"),
    Row(name: "two etags", status: 206, fields: good + ["etag: \"v1\""], verdict: "startOver"),
    Row(name: "multipart", status: 206, fields: good + ["content-type: Multipart/ByteRanges; boundary=x"], verdict: "bad-response"),
    Row(name: "gzip range", status: 206, fields: good + ["content-encoding: gzip"], verdict: "bad-response"),
    Row(name: "another total than declared", status: 206, fields: good, size: 99, verdict: "mismatch-size"),
    Row(
      name: "date, same", status: 206, fields: ["content-range: bytes 50-99/100", "last-modified: \(earlier)"], version: "dated",
      verdict: "append"),
    Row(name: "date, left out", status: 206, fields: ["content-range: bytes 50-99/100"], version: "dated", verdict: "append"),
    Row(
      name: "date, left out though nobody compared", status: 206, fields: ["content-range: bytes 50-99/100"], version: "dated",
      ifRangeIgnored: true, verdict: "startOver"),
    Row(
      name: "date changed", status: 206, fields: ["content-range: bytes 50-99/100", "last-modified: \(date)"], version: "dated",
      verdict: "startOver"),
    Row(name: "weak, no checksum", status: 206, fields: good, version: "unknown", verdict: "startOver"),
    Row(name: "bare with checksum", status: 206, fields: ["content-range: bytes 50-99/100"], version: "bare", checksum: true, verdict: "append"),
    Row(
      name: "bare with checksum, total changed", status: 206, fields: ["content-range: bytes 50-98/99"], version: "bare", checksum: true,
      verdict: "startOver"),
    Row(
      name: "weak with checksum, changed", status: 206, fields: ["content-range: bytes 50-99/100", "etag: W/\"v2\""], version: "weak",
      checksum: true, verdict: "startOver"),
    Row(
      name: "weak with checksum, same", status: 206, fields: ["content-range: bytes 50-99/100", "etag: W/\"v1\""], version: "weak",
      checksum: true, verdict: "append"),
    Row(
      name: "another mirror's etag with checksum", status: 206, fields: ["content-range: bytes 50-99/100", "etag: \"other\""],
      checksum: true, mirror: 2, verdict: "append"),
    Row(
      name: "another mirror's etag without", status: 206, fields: ["content-range: bytes 50-99/100", "etag: \"other\""], mirror: 2,
      verdict: "startOver"),
    Row(name: "another mirror, same etag", status: 206, fields: good, mirror: 2, verdict: "append"),
  ]

  private static let unsatisfiable = [
    Row(name: "our length, validator", status: 416, fields: ["content-range: bytes */50", "etag: \"v1\""], total: 50, verdict: "complete"),
    Row(name: "our length, checksum", status: 416, fields: ["content-range: bytes */50"], version: "bare", total: nil, checksum: true, verdict: "complete"),
    Row(name: "our length, date", status: 416, fields: ["content-range: bytes */50", "last-modified: \(earlier)"], version: "dated", total: 50,
      verdict: "complete"),
    Row(name: "our length, total not known", status: 416, fields: ["content-range: bytes */50", "etag: \"v1\""], total: nil, verdict: "complete"),
    Row(name: "our length, but it was to be longer", status: 416, fields: ["content-range: bytes */50", "etag: \"v1\""], verdict: "startOver"),
    Row(name: "the same with checksum", status: 416, fields: ["content-range: bytes */50"], checksum: true, verdict: "startOver"),
    Row(name: "our length, nothing else", status: 416, fields: ["content-range: bytes */50"], total: 50, verdict: "startOver"),
    Row(name: "our length, another etag", status: 416, fields: ["content-range: bytes */50", "etag: \"v2\""], total: 50, verdict: "startOver"),
    Row(name: "our length, weak etag", status: 416, fields: ["content-range: bytes */50", "etag: W/\"v1\""], version: "weak", total: 50,
      verdict: "startOver"),
    Row(name: "another length", status: 416, fields: ["content-range: bytes */100", "etag: \"v1\""], verdict: "startOver"),
    Row(name: "another length, checksum", status: 416, fields: ["content-range: bytes */49"], checksum: true, verdict: "startOver"),
    Row(name: "no range", status: 416, fields: ["etag: \"v1\""], checksum: true, verdict: "startOver"),
    Row(name: "a range", status: 416, fields: ["content-range: bytes 0-49/50", "etag: \"v1\""], checksum: true, verdict: "startOver"),
    Row(name: "garbage", status: 416, fields: ["content-range: bytes */5O", "etag: \"v1\""], checksum: true, verdict: "startOver"),
    Row(
      name: "two ranges", status: 416, fields: ["content-range: bytes */50", "content-range: bytes */50", "etag: \"v1\""], total: 50,
      verdict: "startOver"),
  ]

  private static let others =
    [201, 202, 203, 204, 205, 207, 226, 300, 301, 303, 304, 307, 399].map { status in
      Row(name: "status \(status)", status: status, fields: good, verdict: "bad-response")
    } + [400, 401, 403, 404, 408, 410, 412, 425, 429, 451, 500, 503, 599, 999].map { status in
      Row(name: "status \(status)", status: status, fields: good, verdict: "http-\(status)")
    }

  @Test(arguments: fresh + whole + partial + unsatisfiable + others)
  func judge(_ row: Row) {
    var version: RemoteVersion? =
      switch row.version {
      case "strong": RemoteVersion(mirror: 1, size: row.total, etag: "\"v1\"", modified: nil)
      case "weak": RemoteVersion(mirror: 1, size: row.total, etag: "W/\"v1\"", modified: nil)
      case "dated": RemoteVersion(mirror: 1, size: row.total, etag: nil, modified: Self.earlier)
      case "bare": RemoteVersion(mirror: 1, size: row.total, etag: nil, modified: nil)
      default: nil
      }
    version?.ignoresIfRange = row.ifRangeIgnored
    var request = JobRequest()
    if row.checksum { request.crc32 = Checksum() }
    request.size = row.size
    let length = row.offset
    var plan = ResumePlan.decide(length: length, version: version, mirror: row.mirror, hasChecksum: row.checksum)
    if plan.offset != row.offset { plan = ResumePlan(offset: row.offset, ifRange: nil, comparison: .validator) }
    let verdict = ResponseVerdict.judge(
      head(row.status, row.fields), plan: plan, version: version, mirror: row.mirror, request: request, host: "host",
      now: Timestamp(seconds: 1_795_262_400))
    #expect(label(verdict) == row.verdict)
    if case .append(let next) = verdict, row.offset > 0 {
      #expect(next.size == 100, "the total is known from now on, or still")
      #expect(next.mirror == row.mirror && next.ignoresIfRange == row.ifRangeIgnored)
    }
  }

  /// The validator in the answer to an If-Range is the very one, and yet the whole comes: it takes no If-Range. Once only.
  @Test(arguments: [("\"v1\"", true), ("\"v2\"", false), (nil, false)] as [(String?, Bool)])
  func serversThatIgnoreIfRange(etag: String?, expected: Bool) {
    let version = RemoteVersion(mirror: 1, size: 100, etag: "\"v1\"", modified: nil)
    let plan = ResumePlan.decide(length: 50, version: version, mirror: 1, hasChecksum: false)
    let verdict = ResponseVerdict.judge(
      head(200, etag.map { ["etag: \($0)"] } ?? []), plan: plan, version: version, mirror: 1, request: JobRequest(), host: "h",
      now: Timestamp(seconds: 0))
    guard case .replace(let next) = verdict else {
      Issue.record("\(verdict)")
      return
    }
    #expect(next.ignoresIfRange == expected)
  }

  /// A date is a strong validator only if it is older than the response (RFC 9110 8.8.2.2).
  @Test(arguments: [
    ([earlier, date], true), ([date, date], false), ([date, earlier], false), ([earlier, nil], false), ([nil, date], false),
    (["yesterday", date], false), ([earlier, "now"], false),
  ] as [([String?], Bool)])
  func strongDates(dates: [String?], isStrong: Bool) {
    var fields = ["content-length: 100"]
    if let modified = dates[0] { fields.append("last-modified: \(modified)") }
    if let date = dates[1] { fields.append("date: \(date)") }
    let verdict = ResponseVerdict.judge(
      head(200, fields), plan: .fresh, version: nil, mirror: 1, request: JobRequest(), host: "h",
      now: Timestamp(seconds: 1_795_262_400))
    guard case .append(let version) = verdict else {
      Issue.record("\(verdict)")
      return
    }
    #expect(version.modified == (isStrong ? dates[0] : nil) && version.size == 100)
  }

  /// Two ETags, or bytes that are no text and might look alike: no validator at all, not even the date.
  @Test(arguments: [["etag: \"a\"", "etag: \"a\""], ["etag: \"\u{fffd}\""]])
  func noValidator(fields: [String]) {
    let dates = ["last-modified: \(Self.earlier)", "date: \(Self.date)"]
    let verdict = ResponseVerdict.judge(
      head(200, fields + dates), plan: .fresh, version: nil, mirror: 1, request: JobRequest(), host: "h",
      now: Timestamp(seconds: 1_795_262_400))
    guard case .append(let version) = verdict else {
      Issue.record("\(verdict)")
      return
    }
    #expect(version.ifRange == nil && version.etag == nil && version.modified == nil)
  }

  @Test(arguments: [("120", 120), ("0", 0), (date, 60), ("soon", nil), ("-1", nil)] as [(String, Int?)])
  func retryAfter(field: String, seconds: Int?) {
    let now = Timestamp("2026-11-21T11:59:00Z")
    let verdict = ResponseVerdict.judge(
      head(503, ["retry-after: \(field)"]), plan: .fresh, version: nil, mirror: 1, request: JobRequest(), host: "h",
      now: now ?? Timestamp(seconds: 0))
    guard case .fail(let failure) = verdict else {
      Issue.record("\(verdict)")
      return
    }
    #expect(failure.retryAfter == seconds && failure.label == "http-503")
  }

  private func head(_ status: Int, _ fields: [String]) -> ResponseHead {
    ResponseHead(
      status: status,
      fields: fields.map { field in
        let colon = field.firstIndex(of: ":") ?? field.endIndex
        return (String(field[..<colon]), String(field[colon...].dropFirst(2)))
      }, scheme: "http")
  }

  private func label(_ verdict: ResponseVerdict) -> String {
    switch verdict {
    case .append: "append"
    case .replace: "replace"
    case .startOver: "startOver"
    case .complete: "complete"
    case .fail(let failure): failure.label
    }
  }
}
