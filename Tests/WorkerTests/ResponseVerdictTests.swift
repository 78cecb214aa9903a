import Testing

@testable import Spool
@testable import SpoolWorker
@testable import Transfer

/// What a response's status and header fields allow, case by case (protocol, invariant 5; RFC 9110).
@Suite struct ResponseVerdictTests {
  @Test(arguments: VerdictCase.all)
  func judge(_ row: VerdictCase) {
    var version: RemoteVersion? =
      switch row.version {
      case "strong": RemoteVersion(mirror: 1, size: row.total, etag: "\"v1\"", modified: nil)
      case "weak": RemoteVersion(mirror: 1, size: row.total, etag: "W/\"v1\"", modified: nil)
      case "dated": RemoteVersion(mirror: 1, size: row.total, etag: nil, modified: VerdictCase.earlier)
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
    plan.last = row.last
    let verdict = ResponseVerdict.judge(
      head(row.status, row.fields), plan: plan, version: version, mirror: row.mirror, request: request, host: "host",
      now: Timestamp(seconds: 1_795_262_400))
    #expect(label(verdict) == row.verdict)
    if case .append(let next) = verdict, row.offset > 0 || row.status == 206 {
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
      head(200, etag.map { ["etag: \($0)"] } ?? []), plan: plan, version: version, mirror: 1, request: JobRequest(),
      host: "h",
      now: Timestamp(seconds: 0))
    guard case .replace(let next) = verdict else {
      Issue.record("\(verdict)")
      return
    }
    #expect(next.ignoresIfRange == expected)
  }

  /// A date is a strong validator only if it is older than the response (RFC 9110 8.8.2.2).
  @Test(
    arguments: [
      ([VerdictCase.earlier, VerdictCase.date], true), ([VerdictCase.date, VerdictCase.date], false),
      ([VerdictCase.date, VerdictCase.earlier], false), ([VerdictCase.earlier, nil], false),
      ([nil, VerdictCase.date], false),
      (["yesterday", VerdictCase.date], false), ([VerdictCase.earlier, "now"], false),
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
  @Test(arguments: [
    ["etag: \"a\"", "etag: \"a\""], ["etag: \"\u{fffd}\""], ["etag: \"\u{fffd}\u{301}\""], ["etag: \"\u{e9}\""],
  ])
  func noValidator(fields: [String]) {
    let dates = ["last-modified: \(VerdictCase.earlier)", "date: \(VerdictCase.date)"]
    let verdict = ResponseVerdict.judge(
      head(200, fields + dates), plan: .fresh, version: nil, mirror: 1, request: JobRequest(), host: "h",
      now: Timestamp(seconds: 1_795_262_400))
    guard case .append(let version) = verdict else {
      Issue.record("\(verdict)")
      return
    }
    #expect(version.ifRange == nil && version.etag == nil && version.modified == nil)
  }

  @Test(arguments: [("120", 120), ("0", 0), (VerdictCase.date, 60), ("soon", nil), ("-1", nil)] as [(String, Int?)])
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
    case .askUnbounded: "askUnbounded"
    case .fail(let failure): failure.label
    }
  }
}
