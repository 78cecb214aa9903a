internal import Spool
internal import Transfer

func checkJob(_ bytes: [UInt8]) throws(Violation) {
  let job = parsed(bytes)
  try require(job.completeLength <= bytes.count, "more was read than is there")
  try require(job.hasTornTail == (job.completeLength < bytes.count), "a tail that is none, or one that is not seen")
  try require(job.completeLength == 0 || bytes[job.completeLength - 1] == 0x0A, "what is complete ends in a newline")
  try require(!hasControls(job.defect?.description ?? ""), "a defect that steers a terminal")
  let lines = bytes[..<job.completeLength].count { $0 == 0x0A }
  try require(job.journal.attempts.failures + job.journal.attempts.mismatches <= 2 * lines, "more failures than lines")
  try require(lines > 0 || job.journal.isEmpty, "a journal without a line")
  if job.defect == nil {
    try checkRequest(job.request)
    try checkWriting(job.request)
  }
  try checkTail(bytes, job)
  try checkStates(job.journal)
  if job.defect == nil, !job.hasTornTail { try checkGoingOn(bytes, job) }
  let compacted = parsed(JobText.compacted(bytes))
  try require(compacted.journal == job.journal, "compacted, its journal says something else")
  try require(compacted.request.urls.map(\.text) == job.request.urls.map(\.text), "compacted, it is another job")

  try require(job.request.network == NetworkKeys(), "a job has what is the worker's own")
  let defaults = bytes.withUnsafeBytes { JobText($0, defaults: true) }
  try require(
    defaults.request.urls.isEmpty && defaults.request.output == nil && defaults.request.expected.size == nil
      && !defaults.request.expected.provesContent && defaults.journal.isEmpty,
    "defaults hold what belongs to one job")
  let text = defaults.request.text
  if defaults.defect == nil, text.utf8.count <= JobText.maximumRequest {
    let written = Array(text.utf8).withUnsafeBytes { JobText($0, defaults: true) }
    try require(written.defect == nil && written.request.text == text, "defaults are written as others")
  }
}

private func parsed(_ bytes: some Sequence<UInt8>) -> JobText { Array(bytes).withUnsafeBytes { JobText($0) } }

/// What is accepted can be fetched as it stands.
private func checkRequest(_ request: JobRequest) throws(Violation) {
  try require(!request.urls.isEmpty || request.resolve != nil && request.output != nil, "a job without a URL")
  try require(request.urls.allSatisfy { !$0.text.isEmpty }, "an empty URL")
  let output = request.outputText(named: "x")
  try require(output.map { OutputPath($0) != nil } ?? false, "an output that is none")
  try require(request.root?.text.utf8.contains(UInt8(ascii: "/")) != true, "a root that is a path")
  try require(request.mode.map { $0.bits & 0o600 == 0o600 && $0.bits & ~0o775 == 0 } ?? true, "a mode out of range")
  try require(request.expected.size ?? 0 <= UInt64(Int64.max), "a size that is no file offset")
  try require(request.maxSize ?? 0 <= UInt64(Int64.max), "max-size that is no file offset")
  for clause in request.limitRate?.clauses ?? [] {
    try require(
      clause.bytesPerSecond.map { (1024...UInt64(Int64.max)).contains($0) } ?? true, "limit-rate out of range")
  }
  try require(request.attempts.map { (1...1000).contains($0) } ?? true, "attempts out of range")
  try require(request.connections.map { (1...32).contains($0) } ?? true, "connections out of range")
  for time in [request.idleTimeout, request.totalTimeout] {
    try require((1...31_536_000).contains(time), "timeout out of range")
  }
  try require(request.minRate.map { (1...31_536_000).contains($0.seconds) } ?? true, "min-rate over no time")
  for header in request.headers {
    let problem = FetchRequest.problem(ofHeader: header.text)
    try require(problem == nil, "a header that the engine refuses: \(problem ?? "")")
    try require(header.host.map { !$0.isEmpty && $0 == $0.lowercased() } ?? true, "a header for a host that is none")
  }
}

/// What is written for a request asks for the same.
private func checkWriting(_ request: JobRequest) throws(Violation) {
  let text = request.text
  let written = parsed(text.utf8)
  // The longest spelling of a value may not fit.
  if text.utf8.count > JobText.maximumRequest { return }
  try require(written.defect == nil, "a request is written as none: \(written.defect?.reason ?? "")")
  try require(written.request.text == text, "a request is written as another")
  let (left, right) = (withoutLines(request), withoutLines(written.request))
  try require(left == right, "a request is read back as another")
}

private func withoutLines(_ request: JobRequest) -> JobRequest {
  var result = request
  result.urls = request.urls.map { .init(text: $0.text, number: 0) }
  result.output = request.output.map { .init(text: $0.text, number: 0) }
  result.root = request.root.map { .init(text: $0.text, number: 0) }
  result.resolve = request.resolve.map { .init(text: $0.text, number: 0) }
  result.signature = request.signature.map { .init(text: $0.text, number: 0) }
  return result
}

/// A line without its newline did not happen, nor did zeros that a power cut left in its place.
private func checkTail(_ bytes: [UInt8], _ job: JobText) throws(Violation) {
  guard !job.isTooLong else { return }
  let whole = parsed(bytes[..<job.completeLength])
  try require(!whole.hasTornTail && whole.completeLength == job.completeLength, "a part of what was read is torn")
  try require(whole.journal == job.journal, "a torn line is in the journal")
  try require(whole.request == job.request, "a torn line is in the request")
  for tail in ["failed: 2026-01-01T00:00:00Z attempt=1 code=cut", "\0\0\0\0", "\0\0\n"] {
    // In the request zeros are a stranger's, and a defect.
    if tail.hasSuffix("\n"), whole.journal.isEmpty { continue }
    let torn = parsed(bytes[..<job.completeLength] + tail.utf8)
    try require(torn.journal == whole.journal, "what did not happen is in the journal")
    try require(torn.hasTornTail && torn.tornTailIsJournal, "a worker's torn line is taken for a stranger's")
    try require(torn.completeLength == whole.completeLength, "what did not happen is taken for complete")
  }
}

/// The end of some data, with the digests that a job wants.
private func mark(_ algorithms: Set<DigestAlgorithm>) -> Mark {
  var states = DigestStates(algorithms)
  Array("some data".utf8).withUnsafeBytes { states.update($0) }
  return Mark(offset: 9, states: states)
}

/// What a journal says of states, whoever wrote it, can be gone on with.
private func checkStates(_ journal: Journal) throws(Violation) {
  for mark in [journal.data.checkpoint, journal.data.softMark].compactMap({ $0 }) {
    var states = mark.states
    [UInt8](repeating: 1, count: 300).withUnsafeBytes { states.update($0) }
    try require(states.digests.algorithms == mark.states.algorithms, "a digest is lost")
    let line = parsed("https://h/a\n\(JournalLine.checkpoint(mark).text)".utf8)
    try require(line.journal.data.checkpoint == mark, "a mark is written as another")
  }
}

/// Whatever a job says, the lines that a worker writes after it are read back as they were meant.
private func checkGoingOn(_ bytes: [UInt8], _ job: JobText) throws(Violation) {
  let time = Timestamp(seconds: 1_795_248_000)
  let worker = WorkerID(host: "alpha", process: 4242, tag: 7)
  let version = RemoteVersion(mirror: 1, size: 1 << 40, etag: "\"a \\ \u{7F}\"", modified: nil)
  let mark = mark(job.request.computedDigests)
  let output = job.request.output?.text ?? "a=\"b\" ü"
  let failure = FailureRecord(
    time: time, attempt: 1, failure: Failure(.cut, "no \"data\"\n"),
    mark: Mark(offset: 5, checksum: Checksum(value: 1)),
    fetched: 1,
    retry: time + 60)
  let verified = Journal.Verified(mark, part: 17)
  let lines: [JournalLine] = [
    .requeued(time),
    .started(
      time, attempt: 1, worker: worker, boot: "b", mirror: 1,
      url: job.request.urls.first?.text ?? ""),
    .response(version, at: 0, part: 17), .checkpoint(mark), .failed(failure),
    .verified(time, verified),
    .done(
      time, attempts: 2, output: output, fetched: 9, milliseconds: 3000, existing: false, unproven: nil,
      directory: nil),
  ]
  let later = parsed(bytes + lines.map(\.text).joined().utf8)
  let journal = later.journal
  try require(later.defect == nil && !later.hasTornTail, "a job's own journal makes it invalid")
  try require(later.request == job.request, "a journal changes what was asked for")
  try require(
    journal.attempts.lastStart?.worker == worker.text && journal.attempts.lastStart?.host == "alpha"
      && journal.attempts.lastStart?.boot == "b"
      && journal.attempts.lastStarted == time, "started: is read back as another")
  try require(
    journal.data.version == version && same(journal.data.version?.etag, version.etag) && journal.data.part == 17,
    "response: is read back as another")
  try require(journal.data.checkpoint == mark, "checkpoint: is read back as another")
  try require(
    journal.attempts.failures == 1 && same(journal.attempts.lastFailure?["reason"], "no \"data\"\n")
      && journal.data.softMark == Mark(offset: 5, checksum: Checksum(value: 1)), "failed: is read back as another")
  try require(journal.publication.verified == verified, "verified: is read back as another")
  try require(same(journal.publication.receipt?.output, output), "done: is read back as another")
}
