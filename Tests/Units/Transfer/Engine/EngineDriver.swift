import Testing

@testable import Transfer

/// Runs one engine as the worker does: one place that polls and fetches.
actor Driver {
  let engine: TransferEngine
  private var nextID: FetchRequest.ID = 0

  init(_ options: TransferOptions = .init()) throws {
    engine = try TransferEngine(options)
  }

  struct Outcome: Sendable {
    var result: FetchResult
    var body: [UInt8]
    var accepts: [Int]

    var failure: TransferFailure? {
      if case .failed(let failure) = result.end { failure } else { nil }
    }
    var isComplete: Bool { if case .complete = result.end { true } else { false } }
    var isRefused: Bool { if case .refused = result.end { true } else { false } }
    var isCancelled: Bool { if case .cancelled = result.end { true } else { false } }
  }

  /// Reusable by concurrent calls: each of them moves all fetches on.
  func fetch(
    _ url: String, change: @Sendable (inout FetchRequest) -> Void = { _ in },
    isFull: @escaping @Sendable (Int) -> Bool = { _ in false },
    accepting: @escaping @Sendable (Response) -> Bool = { _ in true },
    stopAfter limit: Int = .max, cancelAfter cancelLimit: Int = .max,
    whileTrue isWanted: @escaping @Sendable (Int) -> Bool = { _ in true }
  ) async -> Outcome {
    let parts: URLParts
    do throws(URLProblem) { parts = try URLParts(url) } catch {
      // The engine was asked nothing, so no test may take this for its answer.
      Issue.record(error)
      let failure = TransferFailure(code: .badURL, message: error.reason)
      return Outcome(result: FetchResult(end: .failed(failure)), body: [], accepts: [])
    }
    nextID += 1
    // All tests share a few threads: on a busy machine a server's answer may have to wait for them for a minute.
    var request = FetchRequest(id: nextID, url: parts, connectTimeoutSeconds: 3600, idleTimeoutSeconds: 3600)
    change(&request)
    let sink = Sink(accepting: accepting, limit: limit)
    let id = request.id
    sink.isFullAt = isFull
    sink.received = { [engine] count in
      if !isWanted(count) || count >= cancelLimit { engine.cancel(id) }
    }
    var result: FetchResult?
    Task { result = await engine.fetch(request, into: sink) }
    while true {
      await Task.yield()
      if let result { return Outcome(result: result, body: sink.body, accepts: sink.accepts) }
      // What the suite's time limit does.
      if Task.isCancelled { engine.cancel(id) }
      engine.wait(milliseconds: 10, descriptors: [])
      engine.advance()
    }
  }

  func limit(_ group: FetchRequest.ID, to rate: UInt64) { engine.limit(group: group, to: rate, of: 0) }
  func share(_ rate: UInt64) { engine.share([SharedRate(bytesPerSecond: rate)]) }

  var activeCount: Int { engine.running.count }
}

final class Sink: FetchSink {
  let hasAll = false
  let accepting: (Response) -> Bool
  let limit: Int
  var received: (Int) -> Void = { _ in }
  var isFullAt: (Int) -> Bool = { _ in false }
  var body: [UInt8] = []
  var accepts: [Int] = []

  init(accepting: @escaping (Response) -> Bool = { _ in true }, limit: Int = .max) {
    self.accepting = accepting
    self.limit = limit
  }

  func accept(_ response: Response) -> Bool {
    accepts.append(response.status)
    return accepting(response)
  }

  var isFull: Bool { isFullAt(body.count) }

  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard body.count + bytes.count <= limit else { return false }
    body += bytes
    received(body.count)
    return true
  }
}

extension Response {
  /// HTTP's status that says the same.
  var status: Int {
    switch content {
    case .whole: 200
    case .range, .unknownRange: 206
    case .nothingThere: 416
    case .refused(.http(let status, _)): status
    case .refused(.login): 401
    case .refused(.access): 403
    case .refused(.noSuchFile): 404
    case .refused(.unavailable): 503
    }
  }
}
