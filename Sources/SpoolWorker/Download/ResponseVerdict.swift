package import Spool
package import Transfer

/// What a response allows, decided before one byte of its body is written (protocol, invariant 5).
package enum ResponseVerdict {
  /// What becomes of the data that is there when a body from 0 is taken.
  package enum OldData: Sendable {
    /// Its version is gone, or nothing shows what it is part of.
    case dropped
    /// It may be worth more than what comes: it stays until the new data is longer.
    case kept
    /// What comes may be another file: the data is kept for a person to look at.
    case setAside
  }

  /// The body continues the data; from offset 0 for a first request.
  case append(RemoteVersion)
  /// The body is the whole, and there is data.
  case replace(RemoteVersion, OldData)
  /// The data cannot be continued: ask again without a Range.
  case startOver(String)
  /// The response does not answer the request, but says nothing against the data.
  case useless(String)
  /// There is nothing after the data: it is whole (HTTP's 416 with our length).
  case complete
  /// No use for a transfer in pieces: ask again without an end.
  case askUnbounded(String)
  /// A body that was cut would look whole: ask again over HTTP/1.1, whose framing shows the end.
  case askHTTP1(String)
  case fail(Failure)

  package static func judge(_ response: Response, _ asked: Asked) -> ResponseVerdict {
    Judge(response: response, asked: asked).verdict
  }

  /// What was asked, and what the job knows.
  package struct Asked {
    /// The job's URL that was asked; the one that answered may be another.
    let url: URLParts
    /// The number of that URL in the job, from 1.
    let mirror: Int
    let plan: ResumePlan
    /// What the data is a prefix of; nil if that is not known.
    let version: RemoteVersion?
    let request: JobRequest
    /// Bytes of the data.
    let held: UInt64
    /// What the job's journal says of earlier answers.
    let answers: Journal.Answers

    /// - Parameter held: nil for as many bytes as the request continues from.
    package init(
      _ url: URLParts, mirror: Int, plan: ResumePlan, version: RemoteVersion?, request: JobRequest, held: UInt64? = nil,
      answers: Journal.Answers = Journal.Answers()
    ) {
      self.url = url
      self.mirror = mirror
      self.plan = plan
      self.version = version
      self.request = request
      self.held = held ?? plan.offset
      self.answers = answers
    }

    /// The file has a digest, which shows in the end whether what was joined belongs together.
    var hasChecksum: Bool { request.expected.provesContent }
  }
}

/// Judges one response.
private struct Judge {
  let response: Response
  let asked: ResponseVerdict.Asked

  /// The version that answered, without its size.
  private var answer: RemoteVersion { RemoteVersion(response, mirror: asked.mirror) }
  private var host: String { asked.url.host }
  private var plan: ResumePlan { asked.plan }
  private var isForWhole: Bool { plan.offset == 0 && plan.last == nil }

  var verdict: ResponseVerdict {
    switch response.content {
    case .whole: whole
    case .range, .unknownRange: isForWhole ? unasked : part
    case .nothingThere where isForWhole: refusal(.http(status: 416, retryAfter: nil))
    case .nothingThere where plan.offset == 0: .askUnbounded("416 for a range from 0")
    case .nothingThere(let size): nothingThere(size)
    case .refused(let reason): refusal(reason)
    }
  }

  private var unasked: ResponseVerdict {
    .fail(Failure(.badResponse, "\(host) answered 206 to a request for the whole"))
  }

  // MARK: The whole

  private var whole: ResponseVerdict {
    if let coding = response.coding {
      let reason =
        "\(host) sent Content-Encoding \(escaped(coding.prefix(40))), which nobody asked for: another mirror may send the file as it is"
      return .fail(Failure(.badResponse, reason))
    }
    var whole = answer
    whole.size = response.bodyLength
    let data = asked.held > 0 ? asked.version : nil
    let oddity =
      data.map { AnswerKind.oddity(of: whole, beside: $0, held: asked.held) }
      ?? AnswerKind.oddity(of: whole, from: response.url, asked: asked.url)
    // Believed when it comes a second time, in another attempt.
    if let oddity, asked.answers.otherKind != AnswerKind.text(whole) {
      let reason = "\(host) answered with something else than before: \(oddity)"
      return .fail(Failure(.otherKind, reason, found: AnswerKind.text(whole)))
    }
    if let failure = sizeFailure(whole.size) { return .fail(failure) }
    if response.ending == .stream, asked.request.expected.size == nil, !asked.hasChecksum {
      return .askHTTP1("over HTTP/2 without a length, a body that was cut looks whole")
    }
    guard asked.held > 0 else { return .append(whole) }
    guard let data else { return .replace(whole, .dropped) }
    return oddity == nil ? replacing(data, with: whole) : .replace(whole, .setAside)
  }

  private func replacing(_ data: RemoteVersion, with whole: RemoteVersion) -> ResponseVerdict {
    // It can never be continued.
    if data.ifRange == nil, !asked.hasChecksum { return .replace(whole, .dropped) }
    guard data.mayBeContinued(by: whole) else { return .replace(whole, .kept) }
    guard let validator = data.ifRange, validator == whole.ifRange else { return .replace(whole, .dropped) }
    if plan.offset == 0 { return .replace(whole, .kept) }
    // The same version, but not the range: this server does not accept If-Range. From 0 now, and without it next time.
    var whole = whole
    whole.ignoresIfRange = plan.ifRange != nil
    return .replace(whole, .dropped)
  }

  // MARK: A part

  /// Without a range that was asked for, the response is of no use (RFC 9110 section 15.3.7).
  private var part: ResponseVerdict {
    func useless(_ reason: String) -> ResponseVerdict { plan.offset == 0 ? .askUnbounded(reason) : .useless(reason) }
    if let coding = response.coding { return useless("Content-Encoding \(escaped(coding.prefix(40)))") }
    guard case .range(let first, let last, let total) = response.content else {
      return if case .unknownRange(let reason) = response.content { useless(reason) } else { useless("no range") }
    }
    guard first == plan.offset else { return useless("the range starts at \(first), not \(plan.offset)") }

    var joined = answer
    joined.size = total ?? (plan.offset > 0 ? asked.version?.size : nil)
    if let failure = sizeFailure(joined.size) { return .fail(failure) }
    // Without a total, the end of a piece may be taken for the end of the file.
    if joined.size == nil, plan.last != nil { return .askUnbounded("the total is not known") }
    return plan.offset == 0 ? firstPiece(joined, end: last + 1) : continuation(joined, total: total)
  }

  /// The first of several pieces is taken if it is all, or if the next can be held to the same version.
  private func firstPiece(_ version: RemoteVersion, end: UInt64) -> ResponseVerdict {
    let next = ResumePlan.decide(
      length: end, version: version, mirror: version.mirror, hasChecksum: asked.hasChecksum)
    return end == version.size || next.offset > 0 ? .append(version) : .askUnbounded("no strong validator")
  }

  /// - Parameter total: the size of the file, as this response states it.
  private func continuation(_ joined: RemoteVersion, total: UInt64?) -> ResponseVerdict {
    if let total, let size = asked.version?.size, total != size { return .startOver("the size has changed") }
    guard let version = asked.version else { return .startOver("nothing to compare with") }
    // A range may be shorter than asked for (RFC 9110 section 15.3.7): without a total, its end may be taken for the
    // end of the file.
    if joined.size == nil, asked.request.expected.size == nil, !asked.hasChecksum {
      return .startOver("the total is not known")
    }
    if let difference = difference(from: version) { return .startOver(difference) }
    var joined = joined
    // Left out of the answer, or the same.
    if plan.comparison == .validator, version.etag == nil, let modified = version.modified {
      joined.modified = modified
    }
    joined.ignoresIfRange = version.ignoresIfRange
    return .append(joined)
  }

  /// Why the part is not of `version`; nil if it is, as far as the response shows.
  private func difference(from version: RemoteVersion) -> String? {
    let isSame = version.mayBeContinued(by: answer)
    switch plan.comparison {
    case .validator:
      // An ETag says nothing of another resource; a declared digest proves the whole in the end.
      guard isSame || asked.hasChecksum else { return "another resource answered: \(answer.placeText)" }
      if let etag = version.etag {
        // Required in a 206 wherever a 200 would have it (RFC 9110 section 15.3.7).
        return answer.etag == etag ? nil : "the ETag has changed"
      }
      guard let modified = version.modified, response.lastModified != modified else { return nil }
      // May be left out of the answer to an If-Range, by the server that is known to compare it: it gave the date.
      let isLeftOut = response.lastModified == nil && plan.ifRange != nil && isSame
      return isLeftOut ? nil : "Last-Modified has changed"
    case .size:
      guard isSame, let old = version.etag, let new = answer.etag, old != new else { return nil }
      return "the ETag has changed"
    }
  }

  // MARK: Nothing

  /// The file has no bytes from the offset on: the data is whole if it is of the file's size and version.
  /// - Parameter size: of the file (RFC 9110 section 15.5.17: `Content-Range: bytes */N`).
  private func nothingThere(_ size: UInt64?) -> ResponseVerdict {
    let version = asked.version
    guard size == plan.offset else { return .startOver("416 for another length") }
    if let known = version?.size, known != size { return .startOver("the size has changed") }
    if asked.hasChecksum { return .complete }
    // If no earlier answer gave the size, a server that agrees with any length would end a body that was cut.
    guard version?.size ?? asked.request.expected.size != nil else {
      return .startOver("416, and the size was never told")
    }
    guard let version, version.mayBeContinued(by: answer) else { return .startOver("another resource answered") }
    if let strong = version.strongETag, response.etag == strong { return .complete }
    if let modified = version.modified, version.etag == nil, response.lastModified == modified { return .complete }
    return .startOver("416 without a validator")
  }

  private func sizeFailure(_ size: UInt64?) -> Failure? {
    guard let size else { return nil }
    guard let declared = asked.request.expected.size, size != declared else { return asked.request.tooLarge(size) }
    return Failure(
      .mismatchSize, "\(host) offers another size than the job declares", expected: "\(declared)", found: "\(size)")
  }

  private func refusal(_ refusal: Response.Refusal) -> ResponseVerdict {
    let isElsewhere = response.url.redacted != asked.url.redacted
    let mayPass =
      Failure.isRefusal(status: refusal.status) && (asked.held > 0 || isElsewhere)
      && asked.answers.refusals < Failure.mostRefusals
    return .fail(Failure(refusal, from: asked.url, mayPass: mayPass))
  }
}
