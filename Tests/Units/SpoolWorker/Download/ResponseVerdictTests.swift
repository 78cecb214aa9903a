import Testing

@testable import Spool
@testable import SpoolWorker
@testable import Transfer

extension ResponseVerdict {
  /// Of the data that goes on.
  func appended() throws -> RemoteVersion {
    guard case .append(let version) = self else { throw Unexpected("\(self)") }
    return version
  }

  func failure() throws -> Failure {
    guard case .fail(let failure) = self else { throw Unexpected("\(self)") }
    return failure
  }
}

/// What a response's status and header fields allow, case by case (INTERNALS.md, invariant 5; RFC 9110).
@Suite struct ResponseVerdictTests {
  @Test(arguments: VerdictCase.all)
  func judge(_ row: VerdictCase) throws {
    var version: RemoteVersion? =
      switch row.version {
      case "strong": RemoteVersion(mirror: 1, size: row.total, etag: "\"v1\"", modified: nil)
      case "weak": RemoteVersion(mirror: 1, size: row.total, etag: "W/\"v1\"", modified: nil)
      case "dated": RemoteVersion(mirror: 1, size: row.total, etag: nil, modified: VerdictCase.earlier)
      case "bare": RemoteVersion(mirror: 1, size: row.total, etag: nil, modified: nil)
      default: nil
      }
    version?.ignoresIfRange = row.ifRangeIgnored
    version?.type = "application/zip"
    var request = JobRequest()
    if row.checksum { request.expected.digests = Digests(Digest(Checksum())) }
    (request.expected.size, request.encoded) = (row.size, row.encoded)
    version?.coding = row.coding
    let length = row.offset
    var plan = ResumePlan.decide(length: length, version: version, mirror: row.mirror, hasDigest: row.checksum)
    if plan.offset != row.offset { plan = ResumePlan(offset: row.offset, ifRange: nil) }
    plan.last = row.last
    let verdict = try judge(
      response(row.status, row.fields), plan: plan, version: version, mirror: row.mirror, request: request,
      asked: row.target.map { "https://host\($0)" } ?? Self.file)
    #expect(label(verdict) == row.verdict)
    if case .append(let next) = verdict, row.offset > 0 || row.status == 206 {
      #expect(next.size == 100, "the total is known from now on, or still")
      #expect(next.mirror == row.mirror && next.ignoresIfRange == row.ifRangeIgnored)
    }
  }

  /// The validator in the answer to an If-Range is the very one, and yet the whole comes: it takes no If-Range. Once
  /// only.
  @Test(arguments: [("\"v1\"", true), ("\"v2\"", false), ("W/\"v1\"", false)])
  func serversThatIgnoreIfRange(etag: String, expected: Bool) throws {
    let version = RemoteVersion(mirror: 1, size: 100, etag: "\"v1\"", modified: nil)
    let plan = ResumePlan.decide(length: 50, version: version, mirror: 1, hasDigest: false)
    let verdict = try judge(
      response(200, ["etag: \(etag)"]), plan: plan, version: version, mirror: 1, request: JobRequest())
    guard case .replace(let next, .dropped) = verdict else { throw Unexpected("\(verdict)") }
    #expect(next.ignoresIfRange == expected)
  }

  /// A date is a strong validator only if it is older than the response (RFC 9110 8.8.2.2).
  @Test(
    arguments: [
      ([VerdictCase.earlier, VerdictCase.date], true), ([VerdictCase.date, VerdictCase.date], false),
      ([VerdictCase.date, VerdictCase.earlier], false), ([VerdictCase.earlier, nil], false),
      ([nil, VerdictCase.date], false), (["Thu, 01 Jan 1970 00:00:01 GMT", VerdictCase.date], false),
      (["yesterday", VerdictCase.date], false), ([VerdictCase.earlier, "now"], false),
    ] as [([String?], Bool)])
  func strongDates(dates: [String?], isStrong: Bool) throws {
    var fields = ["content-length: 100"]
    if let modified = dates[0] { fields.append("last-modified: \(modified)") }
    if let date = dates[1] { fields.append("date: \(date)") }
    let verdict = try judge(
      response(200, fields), plan: .fresh, version: nil, mirror: 1, request: JobRequest())
    let version = try verdict.appended()
    #expect(version.modified == (isStrong ? dates[0] : nil) && version.size == 100)
  }

  /// Two ETags, or bytes that are no text and might look alike: no validator at all, not even the date.
  @Test(arguments: [
    ["etag: \"a\"", "etag: \"a\""], ["etag: \"\u{fffd}\""], ["etag: \"\u{fffd}\u{301}\""], ["etag: \"\u{e9}\""],
  ])
  func noValidator(fields: [String]) throws {
    let dates = ["last-modified: \(VerdictCase.earlier)", "date: \(VerdictCase.date)"]
    let verdict = try judge(
      response(200, fields + dates), plan: .fresh, version: nil, mirror: 1, request: JobRequest())
    let version = try verdict.appended()
    #expect(version.ifRange == nil && version.etag == nil && version.modified == nil)
  }

  private static let file = "http://a.example/f"

  /// Which resource a version is of, and which one answers, with `FILE` for ``file`` (RFC 9110 section 8.8.1).
  ///
  /// A link that was signed anew has the same strong ETag on the same path. Another path, host, port or scheme is
  /// another resource, whatever its ETag. A digest proves what is joined, whatever the other server calls it, but a new
  /// version of the same file it does not. After a mismatch (`alone`) nothing is joined that may not be of one version.
  /// The data stays until what the other resource sends is longer. A journal of version 0.1 names no resource.
  private static let places = tableRows(
    """
    FILE | FILE | | append
    FILE?id=1 | FILE?id=1 | | append
    FILE | HTTP://A.example:80/f | | append
    FILE?sig=1 | FILE?sig=2 | | append
    FILE | FILE?sig=2 | | append
    FILE?id=1 | FILE?id=2 | dated | startOver
    FILE | http://a.example/g | | startOver
    FILE | http://b.example/f | | startOver
    FILE | http://a.example:81/f | | startOver
    FILE | https://a.example/f | | startOver
    FILE | http://b.example/f | digest | append
    FILE | http://b.example/f | digest etag="v2" | append
    FILE | http://b.example/f | whole digest | askUnconditional
    FILE | http://b.example/f | whole digest size=90 | replace, kept
    FILE | FILE | whole digest etag="v2" | replace, dropped
    FILE | FILE | digest etag="v2" | startOver
    FILE | http://b.example/f | whole digest alone | replace, kept
    FILE | http://b.example/f | digest etag="v2" alone | startOver
    FILE | http://b.example/f | whole | replace, kept
    FILE | FILE?sig=2 | whole | replace, dropped
    none | http://b.example/f | | append
    """, columns: 4)

  @Test(arguments: places)
  func resources(row: [String]) throws {
    let places = row[..<2].map { $0.replacing("FILE", with: Self.file) }
    let facts = settings(row[2])
    let (isDated, hasDigest) = (facts["dated"] != nil, facts["digest"] != nil)
    let before: URLParts? = try places[0] == "none" ? nil : URLParts(places[0])
    let version = RemoteVersion(
      mirror: 1, size: 100, etag: isDated ? nil : "\"v1\"", modified: isDated ? VerdictCase.earlier : nil,
      resource: before.map { Resource(place: $0.redacted, query: $0.query) })
    var request = JobRequest()
    if hasDigest { request.expected.digests = Digests(Digest(Checksum())) }
    let plan = ResumePlan.decide(length: 50, version: version, mirror: 1, hasDigest: hasDigest)
    let validator = isDated ? "last-modified: \(VerdictCase.earlier)" : "etag: \(facts["etag"] ?? "\"v1\"")"
    let answer =
      try facts["whole"] == nil
      ? response(206, ["content-range: bytes 50-99/100", validator], url: places[1])
      : response(200, ["content-length: \(facts["size"] ?? "100")", validator], url: places[1])
    let verdict = try judge(
      answer, plan: plan, version: version, mirror: 1, request: request, isAlone: facts["alone"] != nil)
    #expect(label(verdict) == row[3])
  }

  /// A page of another kind is believed when it comes again in a later attempt, but never against what the job
  /// declares.
  @Test func anOddAnswerIsBelievedTheSecondTime() throws {
    let version = RemoteVersion(mirror: 1, size: 100, etag: "\"v1\"", modified: nil, type: "application/zip")
    let page = ["content-length: 20", "content-type: text/html"]
    let odd = page + ["etag: \"v2\""]
    func judge(_ fields: [String], _ answers: Journal.Answers, size: UInt64? = nil) throws -> ResponseVerdict {
      var request = JobRequest()
      request.expected.size = size
      let plan = ResumePlan.decide(length: 50, version: version, mirror: 1, hasDigest: false)
      return try self.judge(
        response(200, fields), plan: plan, version: version, mirror: 1, request: request, answers: answers)
    }
    func seen(_ fields: [String]) throws -> Journal.Answers {
      let failure = try judge(fields, Journal.Answers()).failure()
      #expect(failure.code == .otherKind && failure.failureClass == .temporary)
      return Journal.Answers(otherKind: failure.found)
    }
    let again = try seen(odd)
    #expect(label(try judge(odd, again)) == "replace, setAside")
    #expect(label(try judge(odd, again, size: 100)) == "mismatch-size")
    #expect(label(try judge(["content-length: 21", "content-type: text/html", "etag: \"v2\""], again)) == "other-kind")
    // A login page comes as long as nobody logs in.
    #expect(label(try judge(page, seen(page))) == "other-kind")
    #expect(label(try judge(page, seen(page), size: 20)) == "replace, setAside")
    let small = ["content-length: 20", "content-type: application/zip"]
    #expect(label(try judge(small, seen(small))) == "replace, setAside")
  }

  /// A page that a redirect leads to instead of a file whose name says that it is none.
  @Test(arguments: [
    ("http://a.example/f.zip", "http://portal.example/", "text/html", "other-kind"),
    ("http://a.example/f.zip", "http://portal.example/f.zip", "application/zip", "append"),
    ("http://a.example/f.html", "http://b.example/f.html", "text/html", "append"),
    ("http://a.example/f", "http://b.example/f", "text/html", "append"),
    ("http://a.example/f.zip", "http://a.example/login", "text/html", "other-kind"),
    ("http://a.example/f", "http://a.example/login", "text/html", "append"),
    ("http://a.example/v1.2", "http://a.example/v1.2/", "text/html", "append"),
    ("http://a.example/f.zip", "http://a.example/get/f.zip", "text/html", "append"),
  ])
  func pagesOfOtherHosts(asked: String, url: String, type: String, expected: String) throws {
    let verdict = try judge(
      response(200, ["content-length: 20", "content-type: \(type)"], url: url), plan: .fresh, version: nil, mirror: 1,
      request: JobRequest(), asked: asked)
    #expect(label(verdict) == expected)
  }

  /// A refusal of a file that the job has bytes of, or by a host that only a redirect named, is asked about twice more.
  @Test(arguments: [
    (404, 0, "http://a.example/f", 0, FailureCode.Class.permanent), (404, 50, "http://a.example/f", 0, .temporary),
    (404, 50, "http://a.example/f", 1, .temporary), (404, 50, "http://a.example/f", 2, .permanent),
    (403, 0, "http://cdn.example/f", 0, .temporary), (403, 0, "http://cdn.example/f", 2, .permanent),
    (451, 50, "http://a.example/f", 0, .permanent), (503, 0, "http://a.example/f", 0, .temporary),
  ])
  func refusalsThatMayPass(
    status: Int, dataLength: Int, url: String, refusals: Int, expected: FailureCode.Class
  ) throws {
    let verdict = try judge(
      response(status, [], url: url), plan: .fresh, version: nil, mirror: 1, request: JobRequest(), asked: Self.file,
      dataLength: UInt64(dataLength), answers: Journal.Answers(refusals: refusals))
    let failure = try verdict.failure()
    #expect(failure.failureClass == expected && failure.label == "http-\(status)")
  }

  private func response(_ status: Int, _ fields: [String], url: String = file) throws -> Response {
    let head = ResponseHead(
      status: status,
      fields: fields.map { field in
        let colon = field.firstIndex(of: ":") ?? field.endIndex
        return (String(field[..<colon]), String(field[colon...].dropFirst(2)))
      })
    return Response(head, from: try URLParts(url), now: 1_795_262_400)
  }

  private func judge(
    _ response: Response, plan: ResumePlan, version: RemoteVersion?, mirror: Int, request: JobRequest,
    asked: String = file, dataLength: UInt64? = nil, answers: Journal.Answers = Journal.Answers(), isAlone: Bool = false
  ) throws -> ResponseVerdict {
    ResponseVerdict.judge(
      response,
      .init(
        try URLParts(asked), mirror: mirror, plan: plan, version: version, request: request, dataLength: dataLength,
        answers: answers, isAlone: isAlone))
  }

  private func label(_ verdict: ResponseVerdict) -> String {
    switch verdict {
    case .append: "append"
    case .replace(_, let old): "replace, \(old)"
    case .again(let change, _): "\(change)"
    case .complete: "complete"
    case .fail(let failure): failure.label
    }
  }
}
