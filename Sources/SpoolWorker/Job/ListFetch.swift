internal import Spool
internal import SystemPackage
internal import Transfer

/// Fetches the list of a standing order, if it has changed since the last check, or a signature. It is small, so it is
/// not resumed.
@WorkerLoop final class ListFetch: RunningTransfer {
  enum Kind: String {
    /// Of an order for one file, no more than the version: a job fetches that.
    case file
    case list
    /// One whose signature is checked, which is of the bytes that are stored, and of all of them.
    case signedList = "signed list"
    case signature
  }

  struct Answer {
    let version: Journal.ListVersion
    /// What the URL that was asked ends in, if it is a name.
    let name: String?
    /// The mirrors' URLs; in place of the one that was asked, the one that answered (RFC 3986 section 5.1.3).
    let bases: [URLParts]
  }

  private let kind: Kind
  private let request: JobRequest
  private let mirrors: [MirrorURL]
  /// The version of the list at the last check; nil to fetch it anyway.
  private let known: Journal.ListVersion?
  private let context: AttemptContext
  private var engine: (any Fetcher)?
  private var isStopped = false
  private var isOfOtherServer = false
  /// The mirror that was asked, until it answers, and what receives the answer.
  private var asked: MirrorURL?
  private var sink: ListSink?
  private(set) var fetched: UInt64 = 0

  init(
    _ kind: Kind, _ request: JobRequest, _ mirrors: [MirrorURL], _ context: AttemptContext,
    ifChangedSince known: Journal.ListVersion? = nil
  ) {
    (self.kind, self.request, self.mirrors, self.context, self.known) = (kind, request, mirrors, context, known)
  }

  func stop() {
    isStopped = true
    engine?.cancel(context.requests)
  }

  func tick() { if sink?.hasBytes == true { noteAnswer() } }

  /// Once for each mirror that is asked. Whoever probes a server keeps all others from it until then.
  private func noteAnswer() {
    if let asked { context.answered(asked) }
    asked = nil
  }

  /// Tries the order's URLs in turn.
  /// - Returns: nil if the list has not changed.
  func run(into file: ScratchFile) async throws -> Answer? {
    var failures: [Failure] = []
    try context.wait(for: mirrors)
    for mirror in mirrors {
      if let rest = context.obstacle(mirror) {
        failures.append(rest)
        continue
      }
      do {
        asked = mirror
        defer { (asked, sink) = (nil, nil) }
        let outcome = try await fetch(mirror, into: file)
        noteAnswer()
        return outcome
      } catch let failure as Failure {
        let failure = context.judged(failure, isOfOther: isOfOtherServer, mirror)
        if failure.code.isOfAllServers { throw failure }
        failures.append(failure)
      }
    }
    throw JobFetch.decisive(failures) ?? Failure(.malformed, "a subscription needs a URL")
  }

  private func fetch(_ mirror: MirrorURL, into file: ScratchFile) async throws -> Answer? {
    let engine = try context.engine()
    self.engine = engine
    let template = FetchRequest(mirror, request, id: context.requests)
    let known = known.flatMap { $0.isOf(url: mirror.url, format: request.standing.entries) ? $0 : nil }
    var policy = FetchPolicy(host: mirror.parts.host, connections: 1, from: .init(length: 0, generation: 0))
    while true {
      if isStopped { throw JobStop.cancelled }
      try file.clear()
      var request = template.asking(for: .fresh, policy.manner)
      request.conditions = known?.conditions ?? []
      let sink = ListSink(kind, file, mirror, isConditional: known != nil)
      self.sink = sink
      let result = await engine.fetch(request, into: sink)
      fetched += result.bytesReceived
      isOfOtherServer = result.isOfOtherServer
      if isStopped { throw JobStop.cancelled }
      guard let problem = try Self.problem(result, sink, mirror, policy.manner) else {
        if sink.isUnchanged { return nil }
        let (response, asked) = (result.response, mirror.parts)
        return Answer(
          version: Journal.ListVersion(
            url: mirror.url, format: self.request.standing.entries, etag: response?.etag,
            modified: response?.lastModified),
          name: asked.lastPathSegment,
          bases: mirrors.map { $0.number == mirror.number ? response?.url ?? asked : $0.parts })
      }
      let isCoded = problem.code == .encoded && !policy.manner.isDecoding
      let hasFamily = !mirror.isAddress && context.options.network.addressFamily == .any
      // What came is not continued, so it counts as nothing.
      _ = try policy.after(
        isCoded
          ? .again(.askDecoded, problem.reason) : .failed(problem, family: hasFamily ? result.addressFamily : nil),
        .init(length: 0, generation: 0))
    }
  }

  /// Why a fetch did not bring the list; nil if it did, or if it is unchanged.
  private static func problem(
    _ result: FetchResult, _ sink: ListSink, _ mirror: MirrorURL, _ manner: FetchPolicy.Manner
  ) throws -> Failure? {
    switch result.end {
    case .cancelled: throw JobStop.cancelled
    case .failed(let failure): return mirror.failure(failure, manner)
    case .refused:
      if let error = sink.error { throw error }
      if sink.hasVersion { return nil }
      return sink.refusal ?? Failure(.badResponse, "\(mirror.parts.host): the response was refused without a reason")
    case .complete:
      if let error = sink.error { throw error }
      if let refusal = sink.refusal { return refusal }
      return sink.isUnchanged ? nil : try sink.finish(result.response)
    }
  }
}

private final class ListSink: FetchSink {
  private let kind: ListFetch.Kind
  private let file: ScratchFile
  private let mirror: MirrorURL
  private let isConditional: Bool
  private var length: UInt64 = 0
  private var expected: UInt64?
  private var buffer: [UInt8] = []
  private var lastByte: UInt8?
  private var firstByte: UInt8?
  /// Why it is refused if it turns out to be gzipped.
  private var packed: Failure?
  private(set) var isUnchanged = false
  private(set) var hasVersion = false
  private(set) var refusal: Failure?
  private(set) var error: SpoolError?

  private static let bufferSize = 256 << 10

  init(_ kind: ListFetch.Kind, _ file: ScratchFile, _ mirror: MirrorURL, isConditional: Bool) {
    (self.kind, self.file, self.mirror, self.isConditional) = (kind, file, mirror, isConditional)
  }

  /// Bytes that it may have; what is longer is refused.
  private var longest: UInt64 { kind == .signature ? UInt64(SignatureCheck.longest) : 64 << 20 }

  var hasBytes: Bool { firstByte != nil }
  var hasAll: Bool { expected.map { length + UInt64(buffer.count) >= $0 } ?? false }

  func accept(_ response: Response) -> Bool {
    switch response.content {
    case _ where response.isWhole && kind == .file:
      hasVersion = true
      return false
    case _ where response.isWhole:
      expected = response.statedEnd
      if let coding = response.coding, !response.isDecoded {
        let sent = "\(mirror.parts.host) sent the \(kind.rawValue) with Content-Encoding: \(escaped(coding.prefix(40)))"
        let failure = Failure(.encoded, sent)
        if !["gzip", "x-gzip"].contains(coding.lowercasedASCII) { return refuse(failure, response) }
        // A list's reader inflates it. A signature is of what is stored.
        if kind != .list, !response.isStoredCoding(asked: mirror.parts) { packed = failure }
      }
      if let expected, expected > longest { return refuse(tooLong) }
      return true
    case .refused(.http(status: 304, logins: _)) where isConditional:
      isUnchanged = true
      return true
    case .refused(let reason): return refuse(Failure(reason, from: mirror.parts, mayPass: false), response)
    case .whole, .range, .unknownRange, .nothingThere:
      return refuse(
        Failure(.badResponse, "\(mirror.parts.host) sent a part of the \(kind.rawValue), which was not requested"),
        response)
    }
  }

  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    if isUnchanged { return true }
    if length + UInt64(buffer.count + bytes.count) > longest { return refuse(tooLong) }
    firstByte = firstByte ?? bytes.first
    // Apache says so also of `a.gz.asc`.
    if let packed, firstByte == 0x1F { return refuse(packed) }
    // Neither blanks nor the NULs of UTF-16 count.
    lastByte = bytes.last { $0 > 0x20 || $0 == UInt8(ascii: "\n") } ?? lastByte
    buffer += bytes
    return buffer.count < Self.bufferSize || flush()
  }

  private var tooLong: Failure {
    Failure(
      kind == .signature ? .badResponse : .badEntries,
      "\(mirror.parts.host): the \(kind.rawValue) is longer than \(longest >> 20) MiB")
  }

  private func refuse(_ failure: Failure, _ response: Response? = nil) -> Bool {
    refusal = failure
    refusal?.retryAfter = response?.retryAfter
    return false
  }

  private func flush() -> Bool {
    do throws(SpoolError) {
      try file.write(buffer, at: Int64(length))
    } catch {
      self.error = error
      return false
    }
    length += UInt64(buffer.count)
    buffer.removeAll(keepingCapacity: true)
    return true
  }

  /// - Returns: why the list may have been cut; nil if it is whole, as far as the transfer shows.
  func finish(_ response: Response?) throws(SpoolError) -> Failure? {
    guard flush() else { throw error ?? SpoolError(call: .write, path: "tmp", errno: .ioError) }
    guard let response, response.ending != .announced || response.isDecoded, expected == nil else { return nil }
    let isWhole =
      switch kind {
      // XML, whatever is before it, and gzip show their own end. A line that was cut looks like another one.
      case .list, .file:
        [UInt8(ascii: "<"), 0x1F].contains(firstByte) || lastByte.map("\n>".utf8.contains) ?? false
      // It does not fit its signature otherwise.
      case .signedList: firstByte != nil
      // One of OpenPGP may be binary. Texts end with a line, with that of a frame, or in base64.
      case .signature: firstByte.map { $0 >= 0x80 } ?? false || lastByte.map("\n-=".utf8.contains) ?? false
      }
    if isWhole { return nil }
    return Failure(.shortBody, "\(mirror.parts.host) closed the connection within the \(kind.rawValue)")
  }
}

/// Runs `spoolrun-entries`, which reads a list in a process of its own and prints its entries.
struct EntriesProgram {
  /// Seconds until it is killed. It limits its own CPU time to less.
  private static let timeLimit = 120
  /// Bytes that it may print, as it limits them itself.
  private static let outputLimit = 64 << 20

  let path: String?
  let stop: ChildStop

  /// What can be read of the list in `file`.
  /// - Parameter name: the list's own; nil if its URL ends in none.
  /// - Throws: `bad-entries` with what is wrong with the list; ``SpoolError``.
  func read(_ file: ScratchFile, _ format: EntryFormat?, name: String?, in spool: Spool) async throws -> ReadList {
    let output = try ScratchFile(spool)
    // The program opens them by their names.
    defer { withExtendedLifetime((file, output)) {} }
    guard let path else { throw Failure(.badEntries, "spoolrun-entries cannot be found: /proc is not mounted") }
    let outcome: ChildProcess.Outcome
    do throws(Errno) {
      let options = format.map { ["--entries", $0.rawValue] } ?? []
      let title = name.map { ["--name", $0] } ?? []
      outcome = try await ChildProcess(
        arguments: [path] + options + title + [file.path, output.path],
        // A list that is too much for it is no crash to be looked into.
        environment: [.init("SWIFT_BACKTRACE", "enable=no")], seconds: Self.timeLimit, stop: stop,
        kept: spool.descriptor(for: output.path)
      ).run()
    } catch {
      // A list is not to blame for what this machine lacks for the moment.
      let isLacking = error.isShortage || error == .resourceTemporarilyUnavailable
      throw Failure(isLacking ? .io : .badEntries, "\(escaped(path)) cannot be run: \(error)")
    }
    switch outcome.end {
    case .exited(0): break
    case .stopped: throw JobStop.cancelled
    // EX_DATAERR: the program's message is about the list.
    case .exited(65):
      let hint = format == nil ? "; if the file itself is to be kept current: `--entries file`" : ""
      let reason = trimmed(ListProblems.safe(String(decoding: outcome.output, as: UTF8.self))[...])
      throw Failure(.badEntries, reason + hint)
    // EX_NOINPUT, EX_IOERR: one of the two files, which are the worker's.
    case .exited(66), .exited(74): throw Failure(.io, "spoolrun-entries: \(outcome.reason)")
    case .signalled:
      throw Failure(
        .badEntries,
        "spoolrun-entries was \(outcome.description): the list takes more than 256 MiB of memory or 30 s of CPU")
    default: throw Failure(.badEntries, "spoolrun-entries: \(outcome.reason)")
    }
    let text = try output.contents(limit: Self.outputLimit)
    do throws(Defect) {
      return try await runBlocking { () throws(Defect) in try ReadList(text) }
    } catch {
      throw Failure(.badEntries, "spoolrun-entries printed something else than entries: \(error)")
    }
  }
}
