internal import Spool
internal import Transfer

/// Fetches the rest of a file over several connections, in chunks that ``ChunkPlan`` assigns; the data grows in order.
/// A mirror or a connection that fails is dropped as long as there is another.
@WorkerLoop final class ChunkedFetch {
  enum End {
    case whole
    /// A single request has to find out what happened to the file.
    case again(ResponseVerdict.Change, String)
    /// Of the first mirror, or of this host.
    case failed(any Error)
    case stopped
  }

  private struct Source {
    let mirror: MirrorURL
    var connections = 0
    var hasDelivered = false
    var isDropped = false
    var ignoresIfRange = false
    /// Whether a redirect led to another server last.
    var isOfOther = false
    /// Why its last connection was given up.
    var failure: Failure?
  }

  private let data: PartData
  private let window: ChunkWindow
  private let engine: any Fetcher
  private let template: FetchRequest
  private let isConditional: Bool
  private let context: any FetchContext
  private var sources: [Source]
  private var leadsTo: [Int] = []
  /// For each connection: its requests that ended early.
  private var smallSteps: [SmallSteps]
  /// For each connection: its speed in earlier chunks; nil if it has delivered none.
  private var paces: [Pace?]
  private var running = 0
  private var end: End?
  /// No more requests are made, and the running ones end until then, in milliseconds.
  private var lastMoment: Int64?
  private var whenEnded: CheckedContinuation<Void, Never>?
  private(set) var fetched: UInt64 = 0
  /// Whatever ended the fetch: the data from this file offset on is not to be trusted, because a response lied about
  /// its end, or differs from another one. nil if none did.
  private(set) var liedFrom: UInt64?

  /// - Parameter mirrors: the first is the one that sent the latest data.
  /// - Parameter isConditional: whether requests name the validator of the data.
  init(
    _ data: PartData, to end: UInt64, _ share: MemoryBudget.Share, first: ChunkPlan.Estimate, mirrors: [MirrorURL],
    engine: any Fetcher, template: FetchRequest, isConditional: Bool, _ context: any FetchContext
  ) {
    (self.data, self.engine, self.context) = (data, engine, context)
    (self.template, self.isConditional) = (template, isConditional)
    let plan = ChunkPlan(data.length..<end, connections: share.connections, largest: share.largest, first)
    window = ChunkWindow(data, plan: plan)
    sources = mirrors.map { Source(mirror: $0) }
    sources[0].hasDelivered = true
    let none = SmallSteps(least: min(ChunkPlan.smallest, plan.largest), most: 11)
    smallSteps = Array(repeating: none, count: plan.live)
    paces = Array(repeating: nil, count: plan.live)
    for connection in 0..<plan.live {
      leadsTo.append(connection % sources.count)
      sources[connection % sources.count].connections += 1
    }
  }

  /// Returns when no request is running.
  func run() async -> End {
    window.onAdvance = { WorkerLoop.start { self.fill() } }
    window.onSuperfluous = { [engine, template] in engine.cancel(template.id + UInt64($0)) }
    fill()
    if running > 0 { await withCheckedContinuation { whenEnded = $0 } }
    (window.onAdvance, window.onSuperfluous) = ({}, { _ in })
    // From now on nothing may start.
    finish(.whole)
    return end ?? .whole
  }

  func stop() { finish(.stopped) }

  /// Stops when the chunks under way are here, because early bytes would be lost: about a second, at most five. The
  /// first chunk of a connection can take four, because ``ChunkPlan/Estimate`` may expect four times its speed.
  func windDown() {
    lastMoment = lastMoment ?? LoopExecutor.milliseconds() + 5000
    fill()
  }

  /// Where the answer began whose last bytes end the data, if it broke off.
  var brokenFrom: UInt64? { window.plan.brokenFrom }

  /// To be called a few times a second, because only time shows that a connection is too slow.
  func tick() {
    // No running request can contribute any more.
    if end != nil || window.plan.isFinished { finish(.whole) }
    fill()
  }

  /// Also later, because a request that its server's pace held may not have begun yet.
  private func finish(_ end: End) {
    self.end = self.end ?? end
    for connection in leadsTo.indices { engine.cancel(template.id + UInt64(connection)) }
  }

  // MARK: requests

  private func fill() {
    guard end == nil else { return }
    if let lastMoment {
      if running == 0 || LoopExecutor.milliseconds() >= lastMoment { finish(.stopped) }
      return
    }
    for request in window.plan.assign(now: LoopExecutor.milliseconds()) {
      running += 1
      WorkerLoop.start { await self.fetch(request) }
    }
  }

  private func fetch(_ request: ChunkPlan.Request) async {
    let connection = request.connection
    leaveDroppedSource(connection)
    let source = sources[leadsTo[connection]]
    var plan = ResumePlan.decide(
      length: request.range.lowerBound, version: data.version, mirror: source.mirror.number,
      hasDigest: data.request.expected.provesContent)
    // The data has no validator, so the request would start at 0, and its bytes would be taken for those of the chunk.
    if plan.offset != request.range.lowerBound {
      finish(.again(.askUnbounded, "the responses have no validator to compare"))
    }
    plan.last = request.range.upperBound - 1
    if source.ignoresIfRange || !isConditional { plan.ifRange = nil }
    let sink = ChunkSink(data, window, request, plan: plan, mirror: source.mirror)
    var fetch = template
    fetch.id += UInt64(connection)
    fetch.url = source.mirror.parts
    fetch.headers = data.request.headers(for: source.mirror.parts)
    fetch.pace = paces[connection]
    (fetch.rangeStart, fetch.rangeEnd, fetch.ifRange) = (plan.offset, plan.last, plan.ifRange)
    // A cancellation before this task ran had nothing to cancel yet.
    let isWanted = end == nil && !window.plan.superfluous.contains(connection)
    let result = isWanted ? await engine.fetch(fetch, into: sink) : nil
    // Also one that was stopped: an error page may have come just before.
    let received = window.plan.ended(connection, now: LoopExecutor.milliseconds(), isBroken: !sink.hasAll)
    if let result {
      if let (change, reason) = sink.lie { noteLie(request.chunk, change, reason) }
      ended(connection, of: source.mirror, result, sink, received, isAll: received == request.range.count)
    }
    running -= 1
    fill()
    if running == 0, let whenEnded {
      self.whenEnded = nil
      whenEnded.resume()
    }
  }

  private func ended(
    _ connection: Int, of mirror: MirrorURL, _ result: FetchResult, _ sink: ChunkSink, _ received: UInt64, isAll: Bool
  ) {
    fetched += result.bytesReceived
    // After a failure the next request uses a new connection.
    if case .complete = result.end { paces[connection] = result.pace } else { paces[connection] = nil }
    if received > 0 { sources[leadsTo[connection]].hasDelivered = true }
    sources[leadsTo[connection]].isOfOther = result.isOfOtherServer
    guard end == nil else { return }
    switch result.end {
    case .cancelled: break
    case .complete where isAll: smallSteps[connection].reset()
    case .complete:
      smallSteps[connection].note(received)
      // A 206 may carry less than was requested (RFC 9110 section 15.3.7), but not nothing. If it repeatedly carries
      // next to nothing, a single connection continues.
      if smallSteps[connection].areTooMany {
        drop(leadsTo[connection], "it sends next to nothing each time")
      } else {
        endedEarly(connection, received, Failure(.shortBody, "\(mirror.parts.host) sent an empty range"))
      }
    case .failed(let failure):
      let failure = Failure(failure, isLoopback: mirror.parts.isLoopback)
      if failure.code.isOfAllServers { return finish(.failed(failure)) }
      smallSteps[connection].note(received, isStall: failure.code == .stalled)
      endedEarly(connection, received, failure)
    case .refused:
      if let error = sink.error { return finish(.failed(error)) }
      refused(connection, of: mirror, sink.refusal)
    }
  }

  private func refused(_ connection: Int, of mirror: MirrorURL, _ refusal: ResponseVerdict?) {
    let source = leadsTo[connection]
    switch refusal {
    case .again(.askUnconditional, _): sources[source].ignoresIfRange = true
    case .again(_, let reason): drop(source, reason)
    // The server does not support If-Range.
    case .replace(let whole, _) where whole.ignoresIfRange: noteIfRangeIgnored(source)
    case .replace: drop(source, "the file has changed, or there are no ranges")
    case .fail(let failure) where failure.code.isMismatch || failure.code == .otherKind: drop(source, failure.reason)
    case .fail(let failure): leave(connection, failure)
    case .append, .complete, nil:
      leave(connection, Failure(.badResponse, "\(mirror.parts.host): refused without a reason"))
    }
  }

  private func noteLie(_ offset: UInt64, _ change: ResponseVerdict.Change, _ reason: String) {
    liedFrom = min(liedFrom ?? offset, offset)
    finish(.again(change, reason))
  }

  // MARK: what does not do its part

  /// The connection continues where it ended, by the rules for a single connection, unless it makes no progress.
  private func endedEarly(_ connection: Int, _ received: UInt64, _ failure: Failure) {
    let mayGoOn = failure.code.isCut && received > 0 && !smallSteps[connection].areTooMany
    if !mayGoOn { leave(connection, failure) }
  }

  /// Removes a connection from its source: the server may accept fewer connections, or none.
  private func leave(_ connection: Int, _ failure: Failure) {
    let source = leadsTo[connection]
    // If the source is dropped, the connection changes to another one with its next request.
    guard !sources[source].isDropped else { return }
    sources[source].connections -= 1
    let isLast = sources[source].connections == 0
    let others = sources.indices.filter {
      $0 != source && !sources[$0].isDropped && (isLast || sources[$0].hasDelivered)
    }
    if isLast {
      if others.isEmpty, source == 0 { return finish(.failed(failure)) }
      sources[source].failure = context.judged(failure, isOfOther: sources[source].isOfOther, sources[source].mirror)
      // It may be long ago that the first one failed, and another one's failure says nothing of it.
      guard !others.isEmpty else {
        return finish(sources[0].failure.map { .failed($0) } ?? .again(.askUnbounded, failure.reason))
      }
      sources[source].isDropped = true
      logDropped(source, failure.reason)
    }
    if let other = leastUsed(of: others), isLast || !sources[source].hasDelivered {
      lead(connection, to: other)
    } else {
      window.plan.retire(connection)
      if !sources[source].isOfOther { context.hasRefusedConnection(sources[source].mirror, failure) }
      context.log(
        "fewer-connections",
        Fields().with("connections", window.plan.live).with("code", failure.label).with("reason", failure.reason))
    }
  }

  private func drop(_ source: Int, _ reason: String) {
    guard !sources[source].isDropped else { return }
    sources[source].isDropped = true
    if sources.allSatisfy(\.isDropped) { return finish(.again(.askUnbounded, reason)) }
    logDropped(source, reason)
  }

  private func leaveDroppedSource(_ connection: Int) {
    let source = leadsTo[connection]
    guard sources[source].isDropped, let other = leastUsed(of: sources.indices.filter { !sources[$0].isDropped }) else {
      return
    }
    sources[source].connections -= 1
    lead(connection, to: other)
  }

  private func leastUsed(of candidates: [Int]) -> Int? {
    candidates.min { sources[$0].connections < sources[$1].connections }
  }

  private func lead(_ connection: Int, to source: Int) {
    leadsTo[connection] = source
    sources[source].connections += 1
    smallSteps[connection].reset()
    paces[connection] = nil
  }

  /// From now on requests omit If-Range, and the validators are compared. This is journaled, so that a later attempt
  /// does not have to start over to find out.
  private func noteIfRangeIgnored(_ source: Int) {
    sources[source].ignoresIfRange = true
    guard var version = data.version, version.mirror == sources[source].mirror.number, !version.ignoresIfRange else {
      return
    }
    version.ignoresIfRange = true
    do { try data.begin(version) } catch { finish(.failed(error)) }
  }

  private func logDropped(_ source: Int, _ reason: String) {
    context.log("mirror-dropped", Fields().with("url", sources[source].mirror.parts.redacted).with("reason", reason))
  }
}

extension ChunkPlan.Estimate {
  /// By the first piece. Its bytes may still come slowly (RFC 5681, slow start), so what they took with the set-up of
  /// the connection and the wait, most of the time, counts as a lower bound.
  init(of piece: FetchResult) {
    let bytes = Double(piece.bytesReceived)
    flow = max(4 * bytes / max(0.001, piece.seconds), bytes / max(0.001, piece.times?.body ?? piece.seconds))
    wait = Int64(1000 * (piece.times?.wait ?? 0))
  }
}

/// Receives the response for one chunk: judges the head by the same rules as for a resumed transfer, then takes the
/// body.
private final class ChunkSink: FetchSink {
  private let data: PartData
  private let window: ChunkWindow
  private let request: ChunkPlan.Request
  private let plan: ResumePlan
  private let mirror: MirrorURL
  /// The file offset at which the response ends, as it states, and the offset of the next byte.
  private var statedEnd: UInt64 = 0
  private var position: UInt64

  /// Why the response was refused: this connection gets no data from this mirror.
  private(set) var refusal: ResponseVerdict?
  /// More bytes came than the response had stated, or others than another response had, so none of them is trusted.
  private(set) var lie: (ResponseVerdict.Change, String)?
  private(set) var error: (any Error)?

  init(_ data: PartData, _ window: ChunkWindow, _ request: ChunkPlan.Request, plan: ResumePlan, mirror: MirrorURL) {
    (self.data, self.window, self.request, self.plan, self.mirror) = (data, window, request, plan, mirror)
    position = request.range.lowerBound
  }

  func accept(_ response: Response) -> Bool {
    let asked = ResponseVerdict.Asked(
      mirror.parts, mirror: mirror.number, plan: plan, version: data.version, request: data.request,
      isAlone: data.isAlone)
    let verdict = ResponseVerdict.judge(response, asked)
    guard case .append = verdict else {
      refusal = verdict
      if case .complete = verdict { refusal = .again(.useless, "the file ends at \(plan.offset)") }
      return false
    }
    // The verdict guarantees a valid range from the plan's offset on. It may end early, but not late (RFC 9110
    // section 15.3.7).
    guard plan.offset == request.range.lowerBound, case .range(_, let last, _) = response.content,
      last < request.range.upperBound
    else {
      refusal = .again(.useless, "the range ends behind \(request.range.upperBound - 1)")
      return false
    }
    statedEnd = last + 1
    return true
  }

  var isFull: Bool { data.isFull }

  var hasAll: Bool { statedEnd > 0 && position >= statedEnd }

  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    position += UInt64(bytes.count)
    if position > statedEnd {
      lie = (.useless, "\(mirror.parts.host) sent more than the range that it stated")
      return false
    }
    do {
      let host = mirror.parts.host
      if try window.take(bytes, on: request.connection, host: host, mirror: mirror.number) { return true }
      lie = (.differs, "two answers differ before \(position)")
    } catch let failure as Failure where failure.code == .badResponse {
      refusal = .fail(failure)
    } catch {
      self.error = error
    }
    return false
  }
}

/// Puts the bytes of several connections in order: appends those that belong at the end of the data, and keeps early
/// ones. Used on the loop's thread only.
final class ChunkWindow {
  private let data: PartData
  var plan: ChunkPlan
  /// The early bytes of each chunk, by where it begins.
  private var kept: [UInt64: [UInt8]] = [:]
  /// The mirrors that sent the last of them.
  private var senders: [UInt64: Int] = [:]
  /// Why bytes could not be appended. The other connections, which still run, must not append after the gap.
  private var broken: (any Error)?
  /// Called within a libcurl callback when the window has room for new requests.
  var onAdvance: () -> Void = {}
  /// Called within a libcurl callback for each connection whose bytes are no longer needed.
  var onSuperfluous: (Int) -> Void = { _ in }

  init(_ data: PartData, plan: ChunkPlan) { (self.data, self.plan) = (data, plan) }

  /// - Returns: false if the bytes are others than another response had.
  /// - Throws: an error that ends the whole transfer, or ``Failure`` `bad-response` if more came than was requested.
  func take(_ bytes: UnsafeRawBufferPointer, on connection: Int, host: String, mirror: Int = 0) throws -> Bool {
    if let broken { throw broken }
    guard let delivery = plan.receive(bytes.count, on: connection, now: LoopExecutor.milliseconds()) else {
      throw Failure(.badResponse, "\(host) sent more than the range that it was asked for")
    }
    let known = UnsafeRawBufferPointer(rebasing: bytes[..<delivery.skipped])
    if !known.isEmpty, try !agrees(known, at: delivery.start) { return false }
    let fresh = UnsafeRawBufferPointer(rebasing: bytes[delivery.skipped...])
    switch delivery.place {
    case .nowhere: return true
    case .early(let chunk):
      // The kernel allocates the pages when they are written to.
      if kept[chunk.lowerBound] == nil { kept[chunk.lowerBound, default: []].reserveCapacity(chunk.count) }
      kept[chunk.lowerBound, default: []].append(contentsOf: fresh)
      senders[chunk.lowerBound] = mirror
    case .atEnd:
      try append(fresh, at: delivery.offset, host, mirror)
      if delivery.completes { try advance(host) }
    }
    if delivery.completes { for other in plan.superfluous { onSuperfluous(other) } }
    return true
  }

  /// Whether bytes from the file offset `start` on are those that another response has brought.
  private func agrees(_ bytes: UnsafeRawBufferPointer, at start: UInt64) throws -> Bool {
    guard start >= data.length, let chunk = plan.start(ofChunkAt: start) else {
      return try data.agreement(of: bytes, at: start) == bytes.count
    }
    return kept[chunk]?.dropFirst(Int(start - chunk)).prefix(bytes.count).elementsEqual(bytes) ?? false
  }

  private func advance(_ host: String) throws {
    while plan.advance() {
      guard let head = plan.head, let early = kept.removeValue(forKey: head) else { continue }
      let mirror = senders.removeValue(forKey: head) ?? 0
      try early.withUnsafeBytes { try append($0, at: head, host, mirror) }
    }
    onAdvance()
  }

  private func append(_ bytes: UnsafeRawBufferPointer, at offset: UInt64, _ host: String, _ mirror: Int) throws {
    // A crash loses no data; joining bytes in the wrong order would corrupt it.
    precondition(data.length == offset, "a chunk out of order")
    do {
      try data.append(bytes, host: host, mirror: mirror)
    } catch {
      broken = error
      throw error
    }
  }
}
