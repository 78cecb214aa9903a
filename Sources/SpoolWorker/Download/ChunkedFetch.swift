internal import Spool
internal import Transfer

/// Fetches the rest of a file over several connections, in chunks that ``ChunkPlan`` deals out; the data grows in order. A mirror or a connection that does not
/// do its part is left, as long as there is another.
@WorkerLoop
final class ChunkedFetch {
  enum End {
    case whole
    /// Every mirror answered with something else than what the data is a prefix of: what became of the file is to be asked with a single request.
    case differs(String)
    /// An answer was longer than it had stated: what has come from this offset of the file on is to be cut off.
    case lied(from: UInt64, String)
    case failed(any Error)
    case stopped
  }

  /// Where connections lead to.
  private struct Source {
    let mirror: MirrorURL
    var connections = 0
    var hasDelivered = false
    var isDropped = false
    var ignoresIfRange = false
  }

  private let data: PartData
  private let window: ChunkWindow
  private let engine: TransferEngine
  private let template: FetchRequest
  private let log: (String, Fields) -> Void
  private var sources: [Source]
  /// Which source each connection leads to.
  private var leadsTo: [Int] = []
  /// Of each connection: requests that ended early.
  private var smallSteps: [SmallSteps]
  /// Of each connection: how fast it was in the chunks before; nil for one that has not delivered any.
  private var paces: [Pace?]
  private var running = 0
  private var end: End?
  private var whenEnded: CheckedContinuation<Void, Never>?
  /// Bytes that came over the network, needed or not.
  private(set) var fetched: UInt64 = 0

  /// - Parameters:
  ///   - end: the size of the file.
  ///   - rate: bytes per second that a connection is thought to bring.
  ///   - mirrors: the first is the one that the data came from last.
  ///   - template: a request of this job; its id and those that follow it, one for each connection, are its own.
  init(
    _ data: PartData, to end: UInt64, _ share: MemoryBudget.Share, rate: Double, mirrors: [MirrorURL],
    engine: TransferEngine, template: FetchRequest,
    log: @escaping (String, Fields) -> Void
  ) {
    self.data = data
    self.engine = engine
    self.template = template
    self.log = log
    let plan = ChunkPlan(data.length..<end, connections: share.connections, largest: share.largest, rate: rate)
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

  /// Returns when no request is under way any more.
  func run() async -> End {
    window.onAdvance = { WorkerLoop.start { self.fill() } }
    window.onSuperfluous = { [engine, template] in engine.cancel(template.id + UInt64($0)) }
    fill()
    if running > 0 { await withCheckedContinuation { whenEnded = $0 } }
    (window.onAdvance, window.onSuperfluous) = ({}, { _ in })
    // Nothing is to start any more.
    finish(.whole)
    return end ?? .whole
  }

  func stop() { finish(.stopped) }

  /// A few times a second: time alone may show that a connection is too slow.
  func tick() {
    // Whatever still runs has nothing to bring.
    if window.plan.isFinished { finish(.whole) }
    fill()
  }

  private func finish(_ end: End) {
    guard self.end == nil else { return }
    self.end = end
    for connection in leadsTo.indices { engine.cancel(template.id + UInt64(connection)) }
  }

  // MARK: requests

  private func fill() {
    guard end == nil else { return }
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
      hasChecksum: data.request.expected.provesContent)
    // Nothing says what these bytes are to belong to: then they would be asked for from 0, and be taken for those of the chunk.
    if plan.offset != request.range.lowerBound { finish(.differs("the answers have nothing to compare them by")) }
    plan.last = request.range.upperBound - 1
    if source.ignoresIfRange { plan.ifRange = nil }
    let sink = ChunkSink(data, window, request, plan: plan, mirror: source.mirror)
    var fetch = template
    fetch.id += UInt64(connection)
    fetch.url = source.mirror.url
    fetch.headers = data.request.headers(for: source.mirror.parts.host)
    fetch.pace = paces[connection]
    (fetch.rangeStart, fetch.rangeEnd, fetch.ifRange) = (plan.offset, plan.last, plan.ifRange)
    // Whoever wanted to cancel this before this task ran found nothing to cancel.
    let isWanted = end == nil && !window.plan.superfluous.contains(connection)
    let result = isWanted ? await engine.fetch(fetch, into: sink) : nil
    let received = window.plan.ended(connection, now: LoopExecutor.milliseconds())
    if let result {
      if case .lied(let reason) = sink.refusal { noteLie(request.range.lowerBound, reason) }
      ended(connection, of: source.mirror, result, sink.refusal, received, isAll: received == request.range.count)
    }
    running -= 1
    fill()
    if running == 0, let whenEnded {
      self.whenEnded = nil
      whenEnded.resume()
    }
  }

  private func ended(
    _ connection: Int, of mirror: MirrorURL, _ result: FetchResult, _ refusal: ChunkSink.Refusal?, _ received: UInt64,
    isAll: Bool
  ) {
    fetched += result.bytesReceived
    // What fails goes on over a new connection.
    if case .complete = result.end { paces[connection] = result.pace } else { paces[connection] = nil }
    if received > 0 { sources[leadsTo[connection]].hasDelivered = true }
    guard end == nil else { return }
    switch result.end {
    case .cancelled: break
    case .complete where isAll: smallSteps[connection].reset()
    case .complete:
      smallSteps[connection].note(received)
      // It may carry less than was asked for (RFC 9110 section 15.3.7), but not nothing. With next to nothing again and again, a single connection
      // tells how far that leads.
      if smallSteps[connection].areTooMany {
        drop(leadsTo[connection], "it answers each time with next to nothing")
      } else {
        endedEarly(connection, received, Failure(.shortBody, "\(mirror.parts.host) sent an empty range"))
      }
    case .failed(let failure):
      let failure = Failure(failure, isLoopback: mirror.parts.isLoopback)
      if failure.code.isOfAllServers { return finish(.failed(failure)) }
      smallSteps[connection].note(received, isStall: failure.code == .stalled)
      endedEarly(connection, received, failure)
    case .refused:
      switch refusal {
      case .differs(let reason): drop(leadsTo[connection], reason)
      case .ignoresIfRange: noteIfRangeIgnored(leadsTo[connection])
      case .failed(let failure): leave(connection, failure)
      case .broken(let error): finish(.failed(error))
      case .lied: break
      case nil: leave(connection, Failure(.badResponse, "\(mirror.parts.host): refused without a reason"))
      }
    }
  }

  /// Of two, the one that began first.
  private func noteLie(_ offset: UInt64, _ reason: String) {
    if case .lied(let earlier, _) = end {
      if offset < earlier { end = .lied(from: offset, reason) }
    } else if end == nil {
      finish(.lied(from: offset, reason))
    }
  }

  // MARK: what does not do its part

  /// It goes on where it ended, by the rules for a single connection, unless that leads nowhere.
  private func endedEarly(_ connection: Int, _ received: UInt64, _ failure: Failure) {
    let mayGoOn =
      [.cut, .shortBody, .stalled].contains(failure.code) && received > 0 && !smallSteps[connection].areTooMany
    if !mayGoOn { leave(connection, failure) }
  }

  /// One connection less to its source: the server may not want as many, or may want none.
  private func leave(_ connection: Int, _ failure: Failure) {
    let source = leadsTo[connection]
    // Then it is led elsewhere with its next request.
    guard !sources[source].isDropped else { return }
    sources[source].connections -= 1
    let isLast = sources[source].connections == 0
    let others = sources.indices.filter {
      $0 != source && !sources[$0].isDropped && (isLast || sources[$0].hasDelivered)
    }
    if isLast {
      guard !others.isEmpty else { return finish(.failed(failure)) }
      sources[source].isDropped = true
      logDropped(source, failure.reason)
    }
    if let other = leastUsed(of: others), isLast || !sources[source].hasDelivered {
      lead(connection, to: other)
    } else {
      window.plan.retire(connection)
      log(
        "fewer-connections",
        Fields().with("connections", window.plan.live).with("code", failure.label).with("reason", failure.reason))
    }
  }

  /// The source has another file.
  private func drop(_ source: Int, _ reason: String) {
    guard !sources[source].isDropped else { return }
    sources[source].isDropped = true
    if sources.allSatisfy(\.isDropped) { return finish(.differs(reason)) }
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

  /// Asked without it from now on, and the validators are compared. Journaled, so that a later attempt need not find out again by starting over.
  private func noteIfRangeIgnored(_ source: Int) {
    sources[source].ignoresIfRange = true
    guard var version = data.version, version.mirror == sources[source].mirror.number, !version.ignoresIfRange else {
      return
    }
    version.ignoresIfRange = true
    do { try data.begin(version) } catch { finish(.failed(error)) }
  }

  private func logDropped(_ source: Int, _ reason: String) {
    log("mirror-dropped", Fields().with("url", sources[source].mirror.parts.redacted).with("reason", reason))
  }
}
