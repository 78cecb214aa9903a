internal import Spool
internal import Transfer

/// Fetches from one mirror until the data is complete, or the mirror fails. ``FetchPolicy`` decides on the requests;
/// this sends them.
@WorkerLoop final class MirrorFetch: RunningTransfer {
  private let data: PartData
  private let mirror: MirrorURL
  /// Mirrors that may be used too if there are several connections.
  private let others: [MirrorURL]
  private let context: any FetchContext
  private let engine: any Fetcher
  private let template: FetchRequest
  private let options: WorkerOptions
  private var policy: FetchPolicy
  private var chunked: ChunkedFetch?
  private var isStopped = false
  /// The connections that the rest gets if one is slow; nil if it is to have no more, or has had them.
  private var connectionsIfSlow: Int?
  private var single: PartSink?
  private(set) var fetched: UInt64 = 0
  private(set) var isOfOtherServer = false
  /// Data that is complete already needs no request.
  private(set) var hasAsked = false

  init(
    _ mirror: MirrorURL, with others: [MirrorURL], _ data: PartData, _ context: any FetchContext
  ) throws(TransferError) {
    let options = context.options
    (self.data, self.mirror, self.context, self.options) = (data, mirror, context, options)
    // Bytes of two servers may be joined only if a digest proves the whole in the end.
    self.others = data.request.expected.provesContent ? others : []
    engine = try context.engine()
    let request = data.request
    var template = FetchRequest(mirror, request, id: context.requests)
    // A cache on the way may have what is wrong.
    if data.isAlone { template.conditions = [FetchRequest.pastCaches] }
    self.template = template
    let mayUseSeveral = mirror.parts.scheme.hasBoundedRanges && context.bearsMore(mirror)
    let connections = request.connections ?? options.connections
    policy = FetchPolicy(host: mirror.parts.host, connections: mayUseSeveral ? connections : 1, from: data.progress)
    let isLimited = (request.limitRate ?? options.defaults.limitRate ?? options.limitRate) != nil
    // A link that was made for one person may be good for one request.
    let mayAskAgain = mirror.parts.query == nil && !mirror.parts.isPathSecret
    if mayUseSeveral, mayAskAgain, request.connections == nil, connections == 1, !isLimited {
      let rules = options.defaults.servers.perHost
      let most = rules.most(from: mirror.parts.server, limit: options.perHost) ?? options.perHost
      connectionsIfSlow = min(options.connectionsIfSlow, most, options.maxConnections)
    }
  }

  func stop() {
    isStopped = true
    engine.cancel(template.id)
    chunked?.stop()
  }

  /// Lets the chunks under way end. Everything else can be continued where it stops.
  func windDown() {
    guard let chunked else { return stop() }
    isStopped = true
    chunked.windDown()
  }

  func tick() {
    if let chunked { return chunked.tick() }
    // What is asked for from its start would begin anew.
    guard let connectionsIfSlow, connectionsIfSlow > 1, !policy.manner.isWhole, !policy.manner.isDecoding, let single,
      single.isSlow(at: LoopExecutor.milliseconds())
    else { return }
    policy.use(connections: connectionsIfSlow)
    self.connectionsIfSlow = nil
    context.log(
      "more-connections", Fields().with("connections", connectionsIfSlow).with("reason", "a single one would take long")
    )
    engine.cancel(template.id)
  }

  /// Returns when the data is complete, as far as the server tells.
  func run() async throws {
    do {
      while data.needsAnswer || !data.isComplete, try await askOnce() {}
      try data.takePlace()
    } catch {
      // What is wrong with new data is not wrong with the data.
      guard try data.abandonBeside(), var failure = error as? Failure else { throw error }
      failure.keepsData = true
      throw failure
    }
  }

  private func askOnce() async throws -> Bool {
    if isStopped { throw JobStop.cancelled }
    let manner = policy.manner
    let isOfOther = data.isAlone && data.version.map { $0.mirror != mirror.number } ?? false
    let isWhole = manner.isWhole || isOfOther
    var plan = isWhole || manner.isDecoding ? .fresh : data.plan(for: mirror.number)
    if !manner.isConditional { plan.ifRange = nil }
    // The response to a first small piece shows whether several connections can be used. They cannot if the data is not
    // continued.
    let isPiece = manner.connections > 1 && plan.offset == data.position && (data.length == 0 || !isWhole)
    if isPiece { plan.last = data.length + options.firstPiece - 1 }
    try data.checkSpace()
    let sink = PartSink(data, plan: plan, mirror: mirror)
    if manner.connections == 1 { single = sink }
    defer { single = nil }
    hasAsked = true
    let result = await engine.fetch(template.asking(for: plan, manner), into: sink)
    fetched += result.bytesReceived
    isOfOtherServer = result.isOfOtherServer
    // Also where it is stopped: an error page may have come just before. Before a call can fail: what is written is in
    // doubt all the same.
    if case .complete = result.end {} else { sink.noteEnd(isBroken: true) }
    try data.finishPending()
    logReplaced(sink)
    if isStopped { throw JobStop.cancelled }
    switch result.end {
    case .cancelled:
      if policy.manner == manner { throw JobStop.cancelled }
      return true  // over several connections now
    case .failed(let failure): return try next(failed(mirror.failure(failure, manner), plan, result))
    case .refused: return try await refused(sink, plan, result)
    case .complete:
      guard let outcome = ended(result, sink) else { return try await endHere() }
      guard try next(outcome), case .ended = outcome, isPiece, data.doubt == nil, let size = data.version?.size else {
        return true
      }
      return try await fetchChunks(of: size, manner, plan, first: result)
    }
  }

  private func failed(_ failure: Failure, _ plan: ResumePlan, _ result: FetchResult) -> FetchPolicy.Outcome {
    .failed(
      failure, wasConditional: plan.ifRange != nil,
      family: mirror.isAddress || options.network.addressFamily != .any ? nil : result.addressFamily)
  }

  private func refused(_ sink: PartSink, _ plan: ResumePlan, _ result: FetchResult) async throws -> Bool {
    if let error = sink.error { throw error }
    switch sink.refusal {
    case .again(.differs, _): return try await cutBack()
    case .again(let change, let reason): return try next(.again(change, reason))
    case .complete: return try await endHere()
    case .fail(let failure): return try next(failed(failure, plan, result))
    case .append, .replace, nil:
      throw Failure(.badResponse, "\(mirror.parts.host): the response was refused without a reason")
    }
  }

  /// Cuts off what a broken answer left and another one did not confirm, or goes further back to find where it begins.
  private func cutBack() async throws -> Bool {
    guard let count = try await data.cutAfterDifference() else {
      return try next(.again(.differs, "the end of the data differs from the answer at \(data.position)"))
    }
    return try next(.again(.differs, "the last \(count) bytes of an answer that broke off were wrong"))
  }

  /// The file ends where the answer did. What the data has behind that came in an answer that broke off, and counts as
  /// different.
  /// - Returns: whether to ask again.
  private func endHere() async throws -> Bool {
    guard data.position < data.length else { return false }
    return try await cutBack()
  }

  /// The outcome of a body that ended without an error; nil if the file is complete.
  private func ended(_ result: FetchResult, _ sink: PartSink) -> FetchPolicy.Outcome? {
    let ending = result.response?.ending
    data.isLengthUnproven = false
    // Nothing shows whether the decoder had all that the encoder had.
    let endsUnannounced = ending.map { $0 != .announced } ?? false || result.response?.isDecoded == true
    // A body that ends with the connection may have been cut, and a part of an unknown total need not be the last one:
    // the job's `size:` decides.
    let declared = endsUnannounced || sink.statedEnd != nil ? data.request.expected.size : nil
    guard let size = data.version?.size ?? declared ?? sink.statedEnd else {
      data.isLengthUnproven =
        endsUnannounced && ending != .reply && !data.request.expected.provesContent
        && data.request.expected.checkedDigests(of: data.version).isEmpty
      sink.noteEnd(isBroken: false)
      return nil
    }
    let isWhole = data.position >= size
    let isShort = !isWhole && (endsUnannounced || sink.statedEnd.map { data.position < $0 } ?? false)
    sink.noteEnd(isBroken: isShort)
    if isWhole { return nil }
    if isShort {
      let end = sink.statedEnd ?? size
      return .failed(Failure(.shortBody, "\(mirror.parts.host) closed at \(data.length) of \(end) bytes"))
    }
    // A 206 may carry less than was requested (RFC 9110 section 15.3.7): request the rest.
    return .ended
  }

  private func next(_ outcome: FetchPolicy.Outcome) throws -> Bool {
    if let (event, facts) = try policy.after(outcome, data.progress) { context.log(event, facts) }
    return true
  }

  private func logReplaced(_ sink: PartSink) {
    guard let (old, length) = sink.replaced else { return }
    switch old {
    case .dropped:
      context.log("restart", Fields().with("at", length).with("reason", "the server sent the file from its start"))
    case .setAside:
      let place = "failed/\(data.claim.job.part.display)"
      context.log("set-aside", Fields().with("data", place).with("reason", "the same answer came again"))
    // It is still the job's data until the new data is longer.
    case .kept: break
    }
  }

  /// - Returns: true, to send a single request for the rest, or to find out what happened to the file.
  private func fetchChunks(
    of size: UInt64, _ manner: FetchPolicy.Manner, _ plan: ResumePlan, first: FetchResult
  ) async throws -> Bool {
    let estimate = ChunkPlan.Estimate(of: first)
    let largest = estimate.largest(options.chunkSize)
    let memory = context.memory
    guard let share = memory.take(connections: manner.connections, largest: largest) else {
      return try next(.again(.askUnbounded, "other transfers have the memory: see --max-memory"))
    }
    defer { memory.giveBack(share) }
    var template = template.asking(for: plan, manner)
    template.needsFreshConnection = false
    let fetch = ChunkedFetch(
      data, to: size, share, first: estimate, mirrors: [mirror] + others.filter { context.takesPart($0) },
      engine: engine, template: template, isConditional: manner.isConditional, context)
    chunked = fetch
    let end = await fetch.run()
    chunked = nil
    fetched += fetch.fetched
    // Before a call can fail, and where the fetch is stopped: what is not cut off is in doubt. A lie may be about bytes
    // that are not in the data yet.
    if let lied = fetch.liedFrom.flatMap({ TailDoubt(from: $0, to: data.length) }) {
      data.doubt = lied
    } else if let start = fetch.brokenFrom {
      data.noteEnd(ofAnswerFrom: start, isBroken: true)
    }
    try data.finishPending()
    if case .failed(let error) = end, !(error is Failure), !isStopped { throw error }
    // Also where it is stopped: of what is in doubt, only the end is compared.
    if let offset = fetch.liedFrom { try await data.cutBack(to: offset) }
    if isStopped { throw JobStop.cancelled }
    switch end {
    case .whole: break
    case .stopped: throw JobStop.cancelled
    case .failed(let failure as Failure):
      return try next(.failed(failure, wasConditional: manner.isConditional && data.version?.ifRange != nil))
    case .failed(let error): throw error
    case .again(let change, let reason): return try next(.again(change, reason))
    }
    // A single one finds out what happened to the file.
    policy.use(connections: 1)
    return true
  }
}

extension PartData {
  func plan(for mirror: Int) -> ResumePlan {
    var plan = ResumePlan.decide(
      length: position, version: version, mirror: mirror, hasDigest: request.expected.provesContent)
    plan.comparesWhole = position == 0 && doubt != nil
    return plan
  }
}

/// Receives one response: judges the head, then takes the body. Called on libcurl's thread, which is the loop's.
private final class PartSink: FetchSink {
  private let data: PartData
  private let plan: ResumePlan
  private let mirror: MirrorURL
  /// The mark at which the response's bytes begin.
  private var began: Mark?
  /// The file offset at which its bytes begin, which may be before the end of the data.
  private var start: UInt64 = 0
  /// The file offset at which the response ends, as it states; nil if it does not.
  private(set) var statedEnd: UInt64?
  /// What was done with the data that the response replaces, and its length in bytes; nil if it replaces none.
  private(set) var replaced: (old: ResponseVerdict.OldData, length: UInt64)?

  /// Why the response, or the rest of its body, was refused.
  private(set) var refusal: ResponseVerdict?
  private(set) var error: (any Error)?
  /// When its body began, in the loop's milliseconds, where the server says that it sends parts.
  private var beganInParts: Int64?

  init(_ data: PartData, plan: ResumePlan, mirror: MirrorURL) {
    (self.data, self.plan, self.mirror) = (data, plan, mirror)
  }

  func accept(_ response: Response) -> Bool {
    let asked = ResponseVerdict.Asked(
      mirror.parts, mirror: mirror.number, plan: plan, version: data.version, request: data.request,
      dataLength: data.dataLength, answers: data.answers, isAlone: data.isAlone)
    let verdict = ResponseVerdict.judge(response, asked)
    return isDone {
      switch verdict {
      case .append(let version): try begin(version, response)
      case .replace(let version, let old):
        if data.dataLength > 0 { replaced = (old, data.dataLength) }
        try data.prepareForWhole(keeping: old)
        try begin(version, response)
      case .complete, .again, .fail: refusal = verdict
      }
    }
  }

  private func isDone(_ body: () throws -> Void) -> Bool {
    do {
      try body()
    } catch let failure as Failure {
      refusal = .fail(failure)
    } catch {
      self.error = error
    }
    return refusal == nil && error == nil
  }

  private func begin(_ version: RemoteVersion, _ response: Response) throws {
    try data.begin(version)
    (began, start, statedEnd) = (data.mark, data.position, response.statedEnd)
    if response.takesRanges { beganInParts = LoopExecutor.milliseconds() }
    // After the size is journaled. A job that waits for space is then not requested again until there is enough.
    try data.checkSpace()
  }

  /// Milliseconds after which the speed of one connection is known, and for which nobody has to wait for the rest.
  private static let (trial, patience): (Int64, Int64) = (600, 5000)
  /// A stretch that brings so many times what the one before it did shows that the speed still grows (RFC 5681, slow
  /// start).
  private static let growth = 1.25
  /// The last look: when, how far the data was, and the speed since the one before it, in bytes per millisecond.
  private var looked: (at: Int64, position: UInt64, speed: Double)?

  /// Whether the rest will take long at this speed, and can come in parts instead. To be asked a few times a second.
  func isSlow(at now: Int64) -> Bool {
    guard let beganInParts, let version = data.version, version.ifRange != nil, !version.ignoresIfRange,
      let size = version.size, size > data.position
    else { return false }
    let before = looked ?? (beganInParts, start, 0)
    func speed(since time: Int64, _ position: UInt64) -> Double {
      Double(data.position &- position) / Double(max(1, now - time))
    }
    let (latest, average) = (speed(since: before.at, before.position), speed(since: beganInParts, start))
    looked = (now, data.position, latest)
    if now - beganInParts < Self.trial || latest > before.speed * Self.growth { return false }
    return Double(size - data.position) > max(latest, average) * Double(Self.patience)
  }

  var isFull: Bool { data.isFull }

  var hasAll: Bool { statedEnd.map { data.position >= $0 } ?? false }

  func noteEnd(isBroken: Bool) { if began != nil { data.noteEnd(ofAnswerFrom: start, isBroken: isBroken && !hasAll) } }

  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    isDone {
      if let statedEnd, data.position + UInt64(bytes.count) > statedEnd {
        // A response that is wrong about its end may be wrong about all of its bytes.
        if let began { try data.cutBack(to: began) }
        refusal = .again(.useless, "\(mirror.parts.host) sent more than the range that it stated")
      } else if let compared = try data.compare(bytes) {
        guard compared < bytes.count else { return }
        let rest = UnsafeRawBufferPointer(rebasing: bytes[compared...])
        try data.append(rest, host: mirror.parts.host, mirror: mirror.number)
      } else {
        refusal = .again(.differs, "")
      }
    }
  }
}
