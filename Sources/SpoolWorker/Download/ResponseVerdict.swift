package import Spool
package import Transfer

package struct ResumePlan: Equatable {
  /// 0 without ``last`` requests the whole representation, without a Range.
  package var offset: UInt64
  /// The last byte to request (inclusive); nil for all from ``offset`` on.
  package var last: UInt64?
  package var ifRange: String?
  /// Only the response's size must agree; a declared checksum proves the content. Otherwise it must have the validator
  /// that the data was fetched with.
  package var comparesSizeOnly = false

  /// The whole of the same version is compared with the data, which it does not replace.
  package var comparesWhole = false

  package static let fresh = ResumePlan(offset: 0, ifRange: nil)

  /// - Parameter mirror: the number of the job's URL to request, counted from 1.
  /// - Parameter hasDigest: whether the job declares a digest, which would show a splice.
  package static func decide(length: UInt64, version: RemoteVersion?, mirror: Int, hasDigest: Bool) -> ResumePlan {
    guard length > 0, let version else { return .fresh }
    // Longer than the whole, so it is not a prefix.
    if let size = version.size, length > size { return .fresh }
    // Another server's validators mean nothing to this one.
    if let validator = version.ifRange, mirror == version.mirror || !hasDigest {
      return ResumePlan(offset: length, ifRange: version.ignoresIfRange ? nil : validator)
    }
    return hasDigest ? ResumePlan(offset: length, ifRange: nil, comparesSizeOnly: true) : .fresh
  }
}

/// What a response allows, decided before one byte of its body is written (INTERNALS.md, invariant 5).
package enum ResponseVerdict {
  package enum OldData: Sendable {
    /// Discard it: its version is gone, or unknown.
    case dropped
    /// Keep it until the new data is longer.
    case kept
    /// Keep it for a person to examine, because the new body may be another file.
    case setAside
  }

  /// The body continues the data; from offset 0 for a first request.
  case append(RemoteVersion)
  /// The body is the whole file, and there is data.
  case replace(RemoteVersion, OldData)
  /// The data is complete: the file has no more bytes (HTTP's 416 with our length).
  case complete
  /// No byte was taken; what to change in the next request, and why.
  case again(Change, String)
  case fail(Failure)

  /// What another request may get right. The raw value is the event of the log.
  package enum Change: String, CaseIterable, Sendable {
    /// The data cannot be continued: ask without a Range.
    case startOver = "restart"
    /// The response does not answer the request, but the data is still valid.
    case useless = "useless-answer"
    /// A transfer in pieces is not possible: ask for an open range.
    case askUnbounded = "fewer-connections"
    /// Another server does not know the validator, and may continue the data without it.
    case askUnconditional = "other-way"
    /// The body is in a coding, and the job wants it decoded.
    case askDecoded = "decode"
    /// The end of the data is not what this answer says.
    case differs = "cut-back"
  }

  package static func judge(_ response: Response, _ asked: Asked) -> ResponseVerdict {
    let verdict = Judge(response: response, asked: asked).verdict
    guard case .fail(var failure) = verdict else { return verdict }
    (failure.retryAfter, failure.keepsData) = (response.retryAfter, true)
    return .fail(failure)
  }

  package struct Asked {
    /// The job's URL that was requested. After redirects another URL may have answered.
    let url: URLParts
    let mirror: Int
    let plan: ResumePlan
    /// The version that the data is a prefix of; nil if it is not known.
    let version: RemoteVersion?
    let request: JobRequest
    let dataLength: UInt64
    let answers: Journal.Answers
    let isAlone: Bool

    /// - Parameter dataLength: nil for the offset of the request.
    /// - Parameter isAlone: see ``PartData/isAlone``.
    package init(
      _ url: URLParts, mirror: Int, plan: ResumePlan, version: RemoteVersion?, request: JobRequest,
      dataLength: UInt64? = nil, answers: Journal.Answers = Journal.Answers(), isAlone: Bool = false
    ) {
      (self.url, self.mirror, self.plan, self.version, self.request) = (url, mirror, plan, version, request)
      self.dataLength = dataLength ?? plan.offset
      (self.answers, self.isAlone) = (answers, isAlone)
    }

    /// Whether a declared digest proves in the end that the joined parts belong together.
    var hasDigest: Bool { request.expected.provesContent }
  }
}

private struct Judge {
  let response: Response
  let asked: ResponseVerdict.Asked

  /// The version that answered, without its size.
  private var answer: RemoteVersion {
    var version = RemoteVersion(response, mirror: asked.mirror)
    (version.coding, version.isDecoded) = (foreignCoding, response.isDecoded)
    return version
  }
  private var host: String { asked.url.host }
  private var plan: ResumePlan { asked.plan }
  private var isForWhole: Bool { plan.offset == 0 && plan.last == nil }
  /// Another resource than that of the data answered, and may continue it: a declared digest proves the whole.
  private var joinsOther: Bool {
    asked.hasDigest && !asked.isAlone && asked.version.map { !$0.isComparable(with: answer) } ?? false
  }

  var verdict: ResponseVerdict {
    switch response.content {
    case .whole: isOfType ? whole : otherType
    case .range where !isOfType: otherType
    case .range where isForWhole && response.isWhole: whole
    case .range(let first, let last, let total): isForWhole ? unasked : part(from: first, to: last, of: total)
    case .unknownRange(let reason): isForWhole ? unasked : useless(reason)
    case .nothingThere where isForWhole: unasked
    case .nothingThere where plan.offset == 0: .again(.askUnbounded, "416 for a range from 0")
    case .nothingThere(let size): nothingThere(size)
    case .refused(let reason): refusal(reason)
    }
  }

  private var unasked: ResponseVerdict {
    // Another attempt, or another mirror, may get an answer to what was asked.
    let what = if case .nothingThere = response.content { "answered 416" } else { "sent a part" }
    return .fail(Failure(.badResponse, "\(host) \(what) to a request without a range"))
  }

  private var isOfType: Bool {
    if asked.request.types != nil, response.isMediaTypeUnclear { return false }
    return asked.request.allows(type: response.mediaType)
  }

  /// Never accepted, however often it comes.
  private var otherType: ResponseVerdict {
    .fail(
      Failure(
        .otherKind, "\(host) sent another type than the job declares", expected: asked.request.types?.text,
        found: response.mediaType))
  }

  // MARK: The whole

  /// The coding of a body that is not the file itself; nil for one that is.
  private var foreignCoding: String? {
    response.isDecoded || response.isStoredCoding(asked: asked.url) ? nil : response.coding
  }

  /// Whether a 200 may be the part that was asked for, by its length: some servers and proxies say nothing else.
  private var mayBePart: Bool {
    let size = asked.version?.size ?? asked.request.expected.size
    guard let length = response.bodyLength, length != size else { return false }
    let end = plan.offset &+ length
    return end == size || plan.last.map { end == $0 &+ 1 } ?? false
  }

  private var whole: ResponseVerdict {
    if mayBePart { return useless("200, with the length of the part that was asked for") }
    var whole = answer
    whole.size = response.statedEnd
    let data = asked.dataLength > 0 ? asked.version : nil
    let oddity =
      data.map { Self.oddity(of: whole, beside: $0, dataLength: asked.dataLength) }
      ?? (asked.request.types == nil ? Self.oddity(of: whole, from: response.url, asked: asked.url) : nil)
    if let coding = foreignCoding, let verdict = asked.verdict(on: coding, size: whole.size, isOdd: oddity != nil) {
      return verdict
    }
    if let data, joinsOther, plan.offset > 0, plan.ifRange != nil, whole.size ?? data.size == data.size {
      return .again(.askUnconditional, "another resource answered: \(answer.placeText)")
    }
    if let oddity, !comesAgain(whole) {
      let reason = "\(host) sent something else than before: \(oddity)"
      return .fail(Failure(.otherKind, reason, found: Self.text(whole)))
    }
    if let failure = sizeFailure(whole.size) { return .fail(failure) }
    guard asked.dataLength > 0 else { return .append(whole) }
    guard let data else { return .replace(whole, .dropped) }
    return oddity == nil ? replacing(data, with: whole) : .replace(whole, .setAside)
  }

  /// Whether an odd response comes a second time, in another attempt, and is no page that a network sends for
  /// everything as long as it wants a login: such a page has no validator. What the job declares unmasks it, too.
  private func comesAgain(_ answer: RemoteVersion) -> Bool {
    guard asked.answers.otherKind == Self.text(answer) else { return false }
    return !Self.isPage(answer.type) || answer.type == asked.version?.type
      || answer.etag ?? answer.modified != nil || asked.request.expected.size != nil || asked.hasDigest
  }

  private func replacing(_ data: RemoteVersion, with whole: RemoteVersion) -> ResponseVerdict {
    // The data can never be continued.
    if data.ifRange == nil, !asked.hasDigest { return .replace(whole, .dropped) }
    guard data.isComparable(with: whole) else { return .replace(whole, .kept) }
    guard let validator = data.ifRange, validator == whole.ifRange else { return .replace(whole, .dropped) }
    if plan.offset == 0 { return plan.comparesWhole ? .append(whole) : .replace(whole, .kept) }
    // The same version, but not the range: this server does not support If-Range. Take it from 0 now, and omit If-Range
    // next time.
    var whole = whole
    whole.ignoresIfRange = plan.ifRange != nil
    return .replace(whole, .dropped)
  }

  // MARK: A part

  /// A response without the requested range is useless (RFC 9110 section 15.3.7).
  private func useless(_ reason: String) -> ResponseVerdict {
    plan.offset == 0 ? .again(.askUnbounded, reason) : .again(.useless, reason)
  }

  private func part(from first: UInt64, to last: UInt64, of total: UInt64?) -> ResponseVerdict {
    guard first == plan.offset else { return useless("the range starts at \(first), not \(plan.offset)") }

    var joined = answer
    joined.size = total ?? (plan.offset > 0 ? asked.version?.size : nil)
    if let coding = foreignCoding, let verdict = asked.verdict(on: coding, size: joined.size) {
      if case .again(.askDecoded, _) = verdict { return verdict }
      return useless("Content-Encoding \(escaped(coding.prefix(40)))")
    }
    if let failure = sizeFailure(joined.size) { return .fail(failure) }
    // Without a total, the end of a piece could be taken for the end of the file.
    if joined.size == nil, plan.last != nil { return .again(.askUnbounded, "the total is not known") }
    if plan.offset == 0, !plan.comparesWhole { return firstPiece(joined, end: last + 1) }
    // A response that does not state the size may still show that the known one is wrong.
    if let size = asked.version?.size, last >= size {
      return .again(.startOver, "the range ends beyond the file's \(size) bytes")
    }
    return continuation(joined, total: total)
  }

  /// The first of several pieces is taken if it is the whole file, or if later pieces can be checked for the same
  /// version.
  private func firstPiece(_ version: RemoteVersion, end: UInt64) -> ResponseVerdict {
    let next = ResumePlan.decide(length: end, version: version, mirror: version.mirror, hasDigest: asked.hasDigest)
    return end == version.size || next.offset > 0 ? .append(version) : .again(.askUnbounded, "no strong validator")
  }

  private func continuation(_ joined: RemoteVersion, total: UInt64?) -> ResponseVerdict {
    if let total, let size = asked.version?.size, total != size { return .again(.startOver, "the size has changed") }
    guard let version = asked.version else { return .again(.startOver, "nothing to compare with") }
    // A range may be shorter than requested (RFC 9110 section 15.3.7). Without a total, its end could be taken for the
    // end of the file.
    if joined.size == nil, asked.request.expected.size == nil, !asked.hasDigest {
      return .again(.startOver, "the total is not known")
    }
    if version.dependsOnWord(with: answer), !asked.hasDigest, total == nil || version.size == nil {
      return .again(.startOver, "the size is not known, and another resource answered")
    }
    if let difference = difference(from: version) { return .again(.startOver, difference) }
    var joined = joined
    // The response omits Last-Modified, or has the same one.
    if !plan.comparesSizeOnly, !joinsOther, version.etag == nil, let modified = version.modified {
      joined.modified = modified
    }
    joined.ignoresIfRange = version.ignoresIfRange
    if version.isComparable(with: answer) { joined.stated = joined.stated.joined(with: version.stated) }
    return .append(joined)
  }

  /// Why the part does not belong to `version`; nil if it does, as far as the response shows.
  private func difference(from version: RemoteVersion) -> String? {
    let isSame = version.isComparable(with: answer)
    if answer.coding != version.coding { return "the Content-Encoding has changed" }
    if isSame, answer.stated.contradict(version.stated) { return "the digest that the server states has changed" }
    if plan.comparesSizeOnly {
      guard isSame, let old = version.etag, let new = answer.etag, old != new else { return nil }
      return "the ETag has changed"
    }
    // The ETag of another resource proves nothing; a declared digest proves the whole in the end.
    guard isSame || asked.hasDigest else { return "another resource answered: \(answer.placeText)" }
    if joinsOther { return nil }
    if let etag = version.etag {
      // Required in a 206 if a 200 would have it (RFC 9110 section 15.3.7).
      return answer.etag == etag ? nil : "the ETag has changed"
    }
    guard let modified = version.modified, response.lastModified != modified else { return nil }
    // The response to an If-Range may omit it, if it is from the server that sent the date and so compares it.
    let isLeftOut = response.lastModified == nil && plan.ifRange != nil && isSame
    return isLeftOut ? nil : "Last-Modified has changed"
  }

  // MARK: Nothing

  /// The file has no bytes from the offset on: the data is complete if it has the file's size and version.
  /// - Parameter size: of the file (RFC 9110 section 15.5.17: `Content-Range: bytes */N`).
  private func nothingThere(_ size: UInt64?) -> ResponseVerdict {
    let version = asked.version
    guard size == plan.offset else { return .again(.startOver, "416 for another length") }
    if let known = version?.size, known != size { return .again(.startOver, "the size has changed") }
    if asked.hasDigest { return .complete }
    // If no earlier response stated the size, a server that confirms any length would make cut data look complete.
    guard version?.size ?? asked.request.expected.size != nil else {
      return .again(.startOver, "416, and the size is not known")
    }
    guard let version, version.isComparable(with: answer) else {
      return .again(.startOver, "another resource answered")
    }
    if let strong = version.strongETag, response.etag == strong { return .complete }
    if let modified = version.modified, version.etag == nil, response.lastModified == modified { return .complete }
    return .again(.startOver, "416 without a validator")
  }

  private func sizeFailure(_ size: UInt64?) -> Failure? {
    guard let size, let declared = asked.request.expected.size, size != declared else {
      return .tooLarge(size, most: asked.request.maxSize)
    }
    return Failure(.mismatchSize, "\(host) does not offer the declared size", expected: "\(declared)", found: "\(size)")
  }

  private func refusal(_ refusal: Response.Refusal) -> ResponseVerdict {
    // A link that the hook made, or that a redirect named, may have expired.
    let isElsewhere = asked.url.isPathSecret || response.url.place != asked.url.place
    let mayPass =
      Failure.isRefusal(status: refusal.status) && (asked.dataLength > 0 || isElsewhere)
      && asked.answers.refusals < Failure.mostRefusals
    return .fail(Failure(refusal, from: asked.url, mayPass: mayPass))
  }
}

/// Recognizes responses that are probably not the file: the page of a captive portal (RFC 8910), a proxy's notice, a
/// "not found" page with status 200. These are not new versions of the file, even if they are well-formed.
extension Judge {
  /// A text that is the same for the same response. It shows whether a response that was not accepted comes again.
  private static func text(_ answer: RemoteVersion) -> String {
    let validator = answer.etag.map { "ETag \($0)" } ?? answer.modified.map { "of \($0)" } ?? "no validator"
    let size = answer.size.map { "\($0) bytes" } ?? "no size"
    return "\(answer.type ?? "no type"), \(size), \(validator), \(answer.placeText)"
  }

  /// Why a complete response is probably not a new version of the file that the data is part of; nil if it may be one.
  private static func oddity(of answer: RemoteVersion, beside version: RemoteVersion, dataLength: UInt64) -> String? {
    if version.etag ?? version.modified != nil, answer.etag == nil, answer.modified == nil {
      return "no validator, but the data has one"
    }
    if let type = answer.type, let before = version.type, type != before { return "\(type) instead of \(before)" }
    if let size = answer.size, size < dataLength / 2 {
      return "\(size) bytes in total, but \(dataLength) are here already"
    }
    return nil
  }

  /// Why the first response to a job is probably not the file: a redirect led to a page on another host or of another
  /// name, such as one for a login, but the URL's file name is not that of a page.
  private static func oddity(of answer: RemoteVersion, from url: URLParts, asked: URLParts) -> String? {
    func end(_ url: URLParts) -> [UInt8]? { url.place.utf8.split(separator: UInt8(ascii: "/")).last.map { Array($0) } }
    guard isPage(answer.type), url.host != asked.host || end(url) != end(asked), let name = asked.lastPathSegment,
      let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")), dot != name.startIndex
    else { return nil }
    let suffix = name[dot...].dropFirstBytes().lowercasedASCII
    let isOfPage =
      suffix.begins(with: "htm") || ["xhtml", "php", "asp", "aspx", "jsp", "cgi", "pl", "cfm"].contains(suffix)
    return isOfPage || suffix.isEmpty ? nil : "a page of \(url.host), to which it redirects"
  }

  private static func isPage(_ type: String?) -> Bool { type == "text/html" || type == "application/xhtml+xml" }
}

extension RemoteVersion {
  /// The version that a response belongs to. The caller sets the size.
  package init(_ response: Response, mirror: Int) {
    self.init(
      mirror: mirror, size: nil, etag: response.etag,
      modified: response.isLastModifiedStrong ? response.lastModified : nil, resource: Resource(response.url),
      type: response.mediaType, stated: Digests(response.digests))
  }

  /// For a person. Of a secret path it has a digest.
  var placeText: String { resource?.place ?? "mirror \(mirror)" }
}

extension Resource {
  init(_ url: URLParts) { self.init(place: url.isPathSecret ? Self.hidden(url.place) : url.place, query: url.query) }
}

/// Responses whose Content-Encoding only repeats the file's suffix. Apache's `AddEncoding x-gzip .gz` and
/// some object stores send it with the bytes of the stored file: the file is what is wanted, and nothing is unpacked.
extension Response {
  /// The suffixes of files that are stored in a coding (RFC 9110 section 8.4.1, and what servers send).
  private static let codingSuffixes: [String: [String]] = [
    "gzip": ["gz", "tgz", "svgz", "gzip"], "compress": ["z", "taz"], "br": ["br"], "zstd": ["zst", "tzst"],
    "bzip2": ["bz2", "tbz", "tbz2"], "xz": ["xz", "txz"],
  ]

  /// Whether the body is the stored file in spite of its coding: its name has the coding's suffix, and the response
  /// states the file's length. What a server packs while it sends has no length in advance.
  /// - Parameter asked: the job's URL. The response's own counts as well.
  func isStoredCoding(asked: URLParts) -> Bool {
    guard let coding = coding?.lowercasedASCII, isLengthStated else { return false }
    let known = Self.codingSuffixes[coding.begins(with: "x-") ? String(coding.dropFirstBytes(2)) : coding] ?? []
    return [asked, url].contains { url in
      let parts = url.lastPathSegment?.lowercasedASCII.split(at: ".", omittingEmptySubsequences: false) ?? []
      return parts.count > 1 && known.contains(String(parts[parts.count - 1]))
    }
  }

  private var isLengthStated: Bool {
    switch content {
    case .whole: bodyLength != nil
    case .range(_, _, let total): total != nil
    case .unknownRange, .nothingThere, .refused: false
    }
  }
}

extension ResponseVerdict.Asked {
  /// What becomes of a body in a coding that was not asked for; nil if it is taken as it is.
  /// - Parameter size: of the whole body; nil if it is not known.
  /// - Parameter isOdd: it may not be the file.
  func verdict(on coding: String, size: UInt64?, isOdd: Bool = false) -> ResponseVerdict? {
    let reason = "\(url.host) sent Content-Encoding \(escaped(coding.prefix(40))), which was not requested"
    switch request.encoded {
    case .keep: return nil
    case .decode: return .again(.askDecoded, reason)
    case nil: break
    }
    // A digest shows in the end what it is. A size does so only if it is stated: what a server packs while it sends it
    // has none.
    let declared = request.expected.size
    if let declared, size == declared { return nil }
    if hasDigest, size == nil || declared == nil { return nil }
    let advice = "add `encoded: keep` to the job to save it as it comes, or `encoded: decode`"
    // Another answer may follow if this one is odd, or if the file came without a coding before.
    return .fail(Failure(isOdd || dataLength > 0 ? .badResponse : .encoded, "\(reason): \(advice)"))
  }
}
