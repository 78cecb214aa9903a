internal import Spool
internal import Transfer

/// Fetches the list of a standing order, if it has changed since the last check. It is small, so it is not resumed.
@WorkerLoop
final class ListFetch: RunningTransfer {
  enum Outcome {
    case unchanged
    /// With the name that its URL ends in.
    case fetched(Journal.ListVersion, name: String?)
  }

  private let request: JobRequest
  private let mirrors: [MirrorURL]
  private let known: Journal.ListVersion?
  private let environment: JobEnvironment
  private let id: UInt64
  private var engine: (any Fetcher)?
  private var isStopped = false
  /// Bytes received over the network.
  private(set) var fetched: UInt64 = 0

  /// - Parameters:
  ///   - mirrors: those of the request.
  ///   - known: the version of the list at the last check.
  init(
    _ request: JobRequest, _ mirrors: [MirrorURL], known: Journal.ListVersion?, _ environment: JobEnvironment,
    id: UInt64
  ) {
    self.request = request
    self.mirrors = mirrors
    self.known = known
    self.environment = environment
    self.id = id
  }

  func stop() {
    isStopped = true
    engine?.cancel(id)
  }

  func windDown() { stop() }

  func tick() {}

  /// Tries the order's URLs in turn.
  /// - Throws: the decisive ``Failure``, ``JobStop``, ``SpoolError``.
  func run(into file: ScratchFile) async throws -> Outcome {
    var failures: [Failure] = []
    for mirror in mirrors {
      do {
        return try await fetch(mirror, into: file)
      } catch let failure as Failure {
        if failure.code.isOfAllServers { throw failure }
        failures.append(failure)
      }
    }
    throw Download.decisive(failures) ?? Failure(.malformed, "a standing order needs a URL")
  }

  private func fetch(_ mirror: MirrorURL, into file: ScratchFile) async throws -> Outcome {
    let engine = try environment.engine()
    self.engine = engine
    let template = RequestTemplate(mirror, request, id: id)
    let known = known.flatMap { $0.isOf(url: mirror.url, format: request.standing.entries) ? $0 : nil }
    var policy = FetchPolicy(host: mirror.parts.host, connections: 1, from: .init(length: 0, generation: 0))
    while true {
      if isStopped { throw JobStop.cancelled }
      try file.clear()
      var request = template.request(policy.manner, .fresh, isPiece: false)
      request.conditions = known?.conditions ?? []
      let sink = ListSink(file, mirror, isConditional: known != nil)
      let result = await engine.fetch(request, into: sink)
      fetched += result.bytesReceived
      if isStopped { throw JobStop.cancelled }
      guard let problem = try Self.problem(result, sink, mirror, policy.manner) else {
        if sink.isUnchanged { return .unchanged }
        return .fetched(
          Journal.ListVersion(
            url: mirror.url, format: self.request.standing.entries, etag: result.response?.etag,
            modified: result.response?.lastModified), name: mirror.parts.lastPathSegment)
      }
      let circumstances = FetchPolicy.Circumstances(
        wasConditional: false, wasMultiplexed: result.isMultiplexed,
        family: mirror.isAddress ? nil : result.addressFamily)
      let isCoded = problem.code == .encoded && !policy.manner.isDecoding
      // What came is not continued, so it counts as nothing.
      switch policy.after(
        isCoded ? .askDecoded(problem.reason) : .failed(problem, circumstances), .init(length: 0, generation: 0))
      {
      case .again: continue
      case .fail(let failure): throw failure
      }
    }
  }

  /// Why a fetch did not bring the list; nil if it did, or if it is unchanged.
  /// - Throws: ``SpoolError``, ``JobStop``.
  private static func problem(
    _ result: FetchResult, _ sink: ListSink, _ mirror: MirrorURL, _ manner: FetchPolicy.Manner
  ) throws -> Failure? {
    switch result.end {
    case .cancelled: throw JobStop.cancelled
    case .failed(let failure): return mirror.failure(failure, manner)
    case .refused:
      if let error = sink.error { throw error }
      return sink.refusal ?? Failure(.badResponse, "\(mirror.parts.host): the response was refused without a reason")
    case .complete:
      if let error = sink.error { throw error }
      if let refusal = sink.refusal { return refusal }
      return sink.isUnchanged ? nil : try sink.finish(result.response)
    }
  }
}
