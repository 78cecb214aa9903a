internal import Spool
internal import SpoolWorker
internal import Transfer

/// A job with its journal, an empty line, the head of a response: whether the body may be written, and where
/// (INTERNALS.md, invariant 5). The last mark is where the data ends, the last of the URLs is asked; with
/// `connections:` the request has an end.
func checkAnswer(_ bytes: [UInt8]) throws(Violation) {
  guard let (job, head) = read(bytes) else { return }
  let mirror = max(1, job.request.urls.count)
  let hasDigest = job.request.expected.provesContent
  var plan = ResumePlan.decide(
    length: job.journal.data.softMark?.offset ?? 0, version: job.journal.data.version, mirror: mirror,
    hasDigest: hasDigest)
  if job.request.connections != nil { plan.last = plan.offset.addingReportingOverflow(65_535).partialValue }
  let version = plan.offset > 0 ? job.journal.data.version : nil
  let url: URLParts
  do throws(URLProblem) { url = try URLParts("http://h/f") } catch { throw Violation(description: error.reason) }
  let verdict = ResponseVerdict.judge(
    Response(head, from: url, now: 1_795_248_000),
    .init(url, mirror: mirror, plan: plan, version: version, request: job.request))
  let answer = Answer(
    head: head, plan: plan, version: version, request: job.request, isSameMirror: mirror == version?.mirror)
  switch verdict {
  case .append(let joined):
    try answer.checkCoding(joined)
    try answer.checkSize(joined)
    try answer.checkPlace()
    if plan.offset > 0 { try answer.checkVersion(joined) }
  case .replace(let whole, let old):
    try require(head.status == 200 && plan.offset > 0, "a part takes the place of the whole")
    try answer.checkSize(whole)
    try require(
      old != .dropped || version?.ifRange == nil && !hasDigest || whole.etag != nil || whole.modified != nil
        || version?.etag == nil && version?.modified == nil, "data is thrown away for an answer without a validator")
  case .complete: try answer.checkComplete()
  // Either would be asked again as before, without end.
  case .again(.startOver, _), .again(.useless, _): try require(plan.offset > 0, "from 0 again, after from 0")
  case .again(.askDecoded, _):
    try require(job.request.encoded == .decode && answer.isCoded, "what is in no coding, or is not to be decoded")
  case .again(.askUnconditional, _):
    try require(plan.ifRange != nil && hasDigest, "without a validator again, after without one")
  case .again(.differs, _): try require(false, "no byte has come that could differ")
  case .again(.askUnbounded, _): try require(plan.last != nil, "without an end again, after without an end")
  case .fail(let failure): try require(!hasControls(failure.reason), "a reason that steers a terminal")
  }
}

private func read(_ bytes: [UInt8]) -> (JobText, ResponseHead)? {
  let lines = lines(bytes)
  guard let blank = lines.firstIndex(of: [0x0A]) else { return nil }
  let job = Array(lines[..<blank].joined()).withUnsafeBytes { JobText($0) }
  var reader = HeadReader()
  for line in lines[(blank + 1)...] {
    switch line.withUnsafeBytes({ reader.take($0) }) {
    case .nothing: continue
    case .head(let head): return (job, head)
    case .malformed: return nil
    }
  }
  return nil
}

/// What came for which request.
private struct Answer {
  let head: ResponseHead
  let plan: ResumePlan
  /// What the data is a prefix of.
  let version: RemoteVersion?
  let request: JobRequest
  let isSameMirror: Bool

  private var range: ContentRange? { head.first("content-range").flatMap { ContentRange($0) } }

  func checkSize(_ joined: RemoteVersion) throws(Violation) {
    if let size = joined.size {
      try require(request.expected.size ?? size == size, "another size than the job declares")
      try require(size <= request.maxSize ?? size, "larger than the job allows")
      try require(plan.offset == 0 || head.status == 200 || size > plan.offset, "bytes behind the end")
    }
    try require(joined.etag.map { !hasControls($0) } ?? true, "a validator that ends a line of the next request")
  }

  var isCoded: Bool { head.first("content-encoding") != nil }

  /// What is in a coding is written only if somebody says so, and never behind what is in another one.
  func checkCoding(_ joined: RemoteVersion) throws(Violation) {
    let isMeant = request.encoded == .keep || request.expected.provesContent || request.expected.size != nil
    try require(joined.coding == nil || isMeant && request.encoded != .decode, "a coding is written as data")
    try require(isCoded || joined.coding == nil, "a coding that nobody named")
    try require(plan.offset == 0 || joined.coding == version?.coding, "two codings are joined")
  }

  /// The first byte of the body is the next of the data.
  func checkPlace() throws(Violation) {
    try require([200, 206].contains(head.status), "status \(head.status) is written as data")
    // A 200 is a part if its range and its length say so.
    if head.status == 200, plan.offset == 0 { return }
    let isOfAll = range?.first == 0 && range?.last.map { $0 + 1 } == range?.total
    try require(plan.offset > 0 || plan.last != nil || isOfAll, "a part for a request without a range")
    try require(head.values("content-range").count == 1, "one of several ranges")
    try require(range?.first == plan.offset, "a range that was not asked for")
  }

  /// The body is of the version that the data is of, as far as anybody can tell.
  func checkVersion(_ joined: RemoteVersion) throws(Violation) {
    guard let version, let range else { throw Violation(description: "data of nobody knows what goes on") }
    try require(range.total == nil || version.size == nil || range.total == version.size, "two sizes are joined")
    try require(
      range.total != nil || version.size != nil || request.expected.size != nil || request.expected.provesContent,
      "an end that may be that of a part")
    for algorithm in DigestAlgorithm.allCases where version.isComparable(with: joined) {
      guard let before = version.stated[algorithm] else { continue }
      try require(joined.stated[algorithm] == before, "two digests are joined")
    }
    if !request.expected.provesContent {
      try require(isSameMirror || !plan.comparesSizeOnly, "two servers are joined, and nothing would show it")
      try require(version.ifRange != nil, "no strong validator, and nothing would show a splice")
    }
    if plan.comparesSizeOnly || request.expected.provesContent && !version.isComparable(with: joined) { return }
    // What the next request will carry for all of the data.
    try require(same(joined.ifRange, version.ifRange), "data under another validator than it was fetched with")
    if version.etag != nil {
      try require(same(head.first("etag"), version.etag), "two ETags are joined")
    } else {
      let found = head.first("last-modified")
      let isLeftOut = found == nil && isSameMirror && plan.ifRange != nil
      try require(isLeftOut || same(found, version.modified), "two dates are joined")
    }
  }

  /// What is there is the whole.
  func checkComplete() throws(Violation) {
    try require(head.status == 416 && plan.offset > 0, "status \(head.status) ends a job")
    try require(
      head.values("content-range").count == 1 && range?.first == nil && range?.total == plan.offset,
      "whole at another length")
    try require(version?.size ?? plan.offset == plan.offset, "whole at another length than was known")
    let isSameETag = version?.strongETag != nil && same(head.first("etag"), version?.etag)
    let isSameDate =
      version?.etag == nil && version?.modified != nil && same(head.first("last-modified"), version?.modified)
    try require(isSameETag || isSameDate || request.expected.provesContent, "whole, and nobody knows of which version")
  }
}
