package import Spool
package import Transfer

/// What a response's status and headers allow, decided before one byte of its body is written (protocol, invariant 5).
package enum ResponseVerdict {
  /// What becomes of the data that is there when a body from 0 is taken.
  package enum OldData: Sendable {
    /// Its version is gone, or nothing could tell what it is of.
    case dropped
    /// It may be worth more than what comes: it stays until the new data is longer.
    case kept
    /// Nothing says that what comes is the same file at all: for a person to look at.
    case setAside
  }

  /// The body goes on where the data ends; at offset 0 for a first request.
  case append(RemoteVersion)
  /// The body is the whole, and there is data.
  case replace(RemoteVersion, OldData)
  /// The data cannot be gone on with: ask again without a Range.
  case startOver(String)
  /// No answer to what was asked, and yet nothing against the data.
  case useless(String)
  /// There is nothing after the data: it is whole (416 with our length).
  case complete
  /// Of no use for going on in pieces: ask again without an end.
  case askUnbounded(String)
  /// Nothing would tell this body from one that was cut: ask again over HTTP/1.1, whose framing does.
  case askHTTP1(String)
  case fail(Failure)

  /// - Parameters:
  ///   - version: what the data is a prefix of.
  ///   - mirror: which of the job's URLs was asked; `asked`: that URL, where a redirect is to be told.
  ///   - held: bytes of the data, also where a request for the whole is answered; nil for as many as the request goes on from.
  ///   - answers: what the job's journal says of earlier answers.
  package static func judge(
    _ head: ResponseHead, plan: ResumePlan, version: RemoteVersion?, mirror: Int, request: JobRequest, host: String,
    now: Timestamp, asked: URLParts? = nil, held: UInt64? = nil, answers: Journal.Answers = Journal.Answers()
  )
    -> ResponseVerdict
  {
    let answer = RemoteVersion(head, mirror: mirror, now: now)
    let held = held ?? plan.offset
    switch head.status {
    case 200: return judgeWhole(head, answer, plan, version, request, host, asked, held: held, answers)
    case 206:
      if plan.offset == 0, plan.last == nil {
        return .fail(Failure(.badResponse, "\(host) answered 206 to a request for the whole"))
      }
      return judgePartial(head, answer, plan: plan, version: version, request: request, host: host)
    case 416 where plan.offset == 0 && plan.last != nil:
      return .askUnbounded("416 for a range from 0")
    case 416 where plan.offset > 0:
      return judgeUnsatisfiable(head, answer, plan: plan, version: version, request: request)
    default:
      let isElsewhere = head.url.map { asked != nil && $0.redacted != asked?.redacted } ?? false
      let mayPass =
        Failure.isRefusal(status: head.status) && (held > 0 || isElsewhere) && answers.refusals < Failure.mostRefusals
      return .fail(httpFailure(head, host: host, now: now, mayPass: mayPass))
    }
  }

  private static func judgeWhole(
    _ head: ResponseHead, _ answer: RemoteVersion, _ plan: ResumePlan, _ version: RemoteVersion?, _ request: JobRequest,
    _ host: String, _ asked: URLParts?, held: UInt64, _ answers: Journal.Answers
  ) -> ResponseVerdict {
    if let coding = foreignCoding(head) {
      return .fail(
        Failure(
          .badResponse,
          "\(host) sent Content-Encoding \(escaped(coding.prefix(40))), which nobody asked for: another mirror may send the file as it is"
        ))
    }
    var whole = answer
    whole.size = head.contentLength
    let data = held > 0 ? version : nil
    let oddity =
      data.map { AnswerKind.oddity(of: whole, beside: $0, held: held) } ?? AnswerKind.oddity(of: whole, head, asked)
    // Believed when it comes a second time, in another attempt.
    if let oddity, answers.otherKind != AnswerKind.text(whole) {
      return .fail(
        Failure(
          .otherKind, "\(host) answered with something else than before: \(oddity)", found: AnswerKind.text(whole)))
    }
    if let failure = sizeFailure(whole.size, request, host) { return .fail(failure) }
    if head.framing == .stream, request.size == nil, request.crc32 == nil {
      return .askHTTP1("over HTTP/2 without a length, a body that was cut looks whole")
    }
    guard held > 0 else { return .append(whole) }
    guard let version = data else { return .replace(whole, .dropped) }
    if oddity != nil { return .replace(whole, .setAside) }
    // It could never be gone on with.
    if version.ifRange == nil, request.crc32 == nil { return .replace(whole, .dropped) }
    guard version.mayBeContinued(by: whole) else { return .replace(whole, .kept) }
    guard let validator = version.ifRange, validator == whole.ifRange else { return .replace(whole, .dropped) }
    if plan.offset == 0 { return .replace(whole, .kept) }
    // The same version, and yet not the range: this server takes no If-Range. From 0 now, and without it the next time.
    whole.ignoresIfRange = plan.ifRange != nil
    return .replace(whole, .dropped)
  }

  /// A content coding other than `identity`. Empty members of a list say nothing (RFC 9110 section 5.6.1.2); some stores send the field without a value.
  private static func foreignCoding(_ head: ResponseHead) -> String? {
    head.members("content-encoding").first { !["", "identity"].contains($0.lowercased()) }
  }

  private static func judgePartial(
    _ head: ResponseHead, _ answer: RemoteVersion, plan: ResumePlan, version: RemoteVersion?, request: JobRequest,
    host: String
  )
    -> ResponseVerdict
  {
    let fields = head.values("content-range")
    // RFC 9110 section 14.4: a single field; section 15.3.7: without a valid one, or with another range than asked, the response is no use.
    func useless(_ reason: String) -> ResponseVerdict { plan.offset == 0 ? .askUnbounded(reason) : .useless(reason) }
    let isMultipart = head.values("content-type").contains { $0.lowercased().hasPrefix("multipart/byteranges") }
    if isMultipart { return useless("multipart/byteranges for one range") }
    if let coding = foreignCoding(head) { return useless("Content-Encoding \(escaped(coding.prefix(40)))") }
    guard fields.count == 1, let range = ContentRange(fields[0]), let first = range.first, let last = range.last else {
      return useless("no valid Content-Range")
    }
    guard first == plan.offset else { return useless("the range starts at \(first), not \(plan.offset)") }
    if let length = head.contentLength, length != last - first + 1 {
      return useless("Content-Length and Content-Range disagree")
    }
    var joined = answer
    joined.size = range.total ?? (plan.offset > 0 ? version?.size : nil)
    if let failure = sizeFailure(joined.size, request, host) { return .fail(failure) }
    // Where the end isn't known, the end of a piece could be taken for it.
    guard let size = joined.size ?? (plan.last == nil ? .max : nil) else {
      return .askUnbounded("the total is not known")
    }
    if plan.offset == 0 {
      let isGoingOn = ResumePlan.decide(
        length: last + 1, version: joined, mirror: joined.mirror, hasChecksum: request.crc32 != nil)
      // What this piece was of, nobody could tell of the next one.
      return last + 1 == size || isGoingOn.offset > 0 ? .append(joined) : .askUnbounded("no strong validator")
    }
    if let total = range.total, let size = version?.size, total != size { return .startOver("the size has changed") }
    guard let version else { return .startOver("nothing to compare with") }
    // A range may be shorter than asked for (RFC 9110 section 15.3.7): without a total its end could be taken for the end of all.
    if joined.size == nil, request.size == nil, request.crc32 == nil { return .startOver("the total is not known") }
    let isSame = version.mayBeContinued(by: answer)
    switch plan.comparison {
    case .validator:
      // An ETag says nothing of another resource; a declared digest proves the whole in the end.
      guard isSame || request.crc32 != nil else { return .startOver("another resource answered: \(answer.placeText)") }
      if let etag = version.etag {
        // Required in a 206 wherever a 200 would have it (RFC 9110 section 15.3.7).
        guard answer.etag == etag else { return .startOver("the ETag has changed") }
      } else if let modified = version.modified {
        let found = head.first("last-modified")
        // May be left out of the answer to an If-Range, by the server that is known to compare it: it gave the date.
        guard found == modified || (found == nil && plan.ifRange != nil && isSame) else {
          return .startOver("Last-Modified has changed")
        }
        joined.modified = modified
      }
    case .size:
      if isSame, let old = version.etag, let new = answer.etag, old != new {
        return .startOver("the ETag has changed")
      }
    }
    joined.ignoresIfRange = version.ignoresIfRange
    return .append(joined)
  }

  /// RFC 9110 section 15.5.17: `Content-Range: bytes */N` gives the current length.
  private static func judgeUnsatisfiable(
    _ head: ResponseHead, _ answer: RemoteVersion, plan: ResumePlan, version: RemoteVersion?, request: JobRequest
  ) -> ResponseVerdict {
    let fields = head.values("content-range")
    guard fields.count == 1, let range = ContentRange(fields[0]), range.first == nil, range.total == plan.offset else {
      return .startOver("416 for another length")
    }
    if let size = version?.size, size != range.total { return .startOver("the size has changed") }
    if request.crc32 != nil { return .complete }
    // Where no answer before told the size, a server that agrees with whatever is here would end a body that was cut.
    guard version?.size ?? request.size != nil else { return .startOver("416, and the size was never told") }
    guard version?.mayBeContinued(by: answer) ?? false else { return .startOver("another resource answered") }
    if let strong = version?.strongETag, head.first("etag") == strong { return .complete }
    if let modified = version?.modified, version?.etag == nil, head.first("last-modified") == modified {
      return .complete
    }
    return .startOver("416 without a validator")
  }

  private static func sizeFailure(_ size: UInt64?, _ request: JobRequest, _ host: String) -> Failure? {
    guard let size else { return nil }
    guard let declared = request.size, size != declared else { return request.tooLarge(size) }
    return Failure(
      .mismatchSize, "\(host) offers another size than the job declares", expected: "\(declared)", found: "\(size)")
  }

  private static func httpFailure(_ head: ResponseHead, host: String, now: Timestamp, mayPass: Bool) -> Failure {
    let status = head.status
    guard status >= 400 else {
      let hint = (300...399).contains(status) ? ", a redirect without a usable Location" : ""
      return Failure(.badResponse, "\(host) answered \(status)\(hint)")
    }
    guard head.isHTTP else {
      let reason =
        switch status {
        case 401: "refused the login: write \(head.scheme)://USER:PASSWORD@HOST/… in the job"
        case 403: "denied access"
        case 404: "has no such file"
        default: "could not send the file"
        }
      return Failure(.http, "\(host) \(reason)", status: status, mayPass: mayPass)
    }
    let advice =
      switch status {
      case 401, 407: ": it wants credentials (header: Authorization: …)"
      case 403: ": forbidden"
      case 404, 410: ": there is no such file"
      default: ""
      }
    return Failure(
      .http, "\(host) answered \(status)\(advice)", status: status,
      retryAfter: head.first("retry-after").flatMap {
        RetryAfter.seconds($0, sent: head.first("date"), now: now.seconds)
      }, mayPass: mayPass)
  }
}

extension RemoteVersion {
  /// The validators of a response; the size is the caller's to set.
  init(_ head: ResponseHead, mirror: Int, now: Timestamp) {
    let etags = head.values("etag")
    // Two of them, or other than ASCII: no validator, and no date in its stead either. Bytes that were no UTF-8 look alike, and Swift takes
    // different spellings of a letter with its accent for equal. A control byte, such as a lone CR, would end a line of the next request for
    // some servers.
    let isUsable = etags.count <= 1 && etags.allSatisfy { $0.utf8.allSatisfy { (0x20...0x7E).contains($0) } }
    self.init(
      mirror: mirror, size: nil, etag: isUsable ? etags.first : nil,
      modified: isUsable ? Self.strongDate(head, now: now.seconds) : nil,
      resource: head.url.map { Resource(place: $0.redacted, query: $0.query) }, type: head.mediaType)
  }

  /// Last-Modified, where it is at least one second before Date: then no second change can hide behind it (RFC 9110 section 8.8.2.2).
  private static func strongDate(_ head: ResponseHead, now: Int64) -> String? {
    guard let modified = head.first("last-modified"), let then = HTTPDate.parse(modified, now: now),
      let date = head.first("date").flatMap({ HTTPDate.parse($0, now: now) }), then < date
    else { return nil }
    return modified
  }
}

extension ResponseHead {
  /// Where the answer says that its body ends, in the file; nil where it doesn't say.
  var statedEnd: UInt64? {
    guard status == 206 else { return contentLength }
    return first("content-range").flatMap { ContentRange($0)?.last }.map { $0 + 1 }
  }

  /// Content-Length, where the framing goes by it (RFC 9112 section 6.3).
  var contentLength: UInt64? {
    if case .length(let length) = framing { length } else { nil }
  }
}
