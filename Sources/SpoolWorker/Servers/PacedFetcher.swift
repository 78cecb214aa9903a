internal import Transfer

/// Holds requests back until it is their turn, where `defaults` say how often a server may be asked (`pace`), and
/// passes all else on.
final class PacedFetcher: Fetcher {
  private let engine: any Fetcher
  private let turn: (String) -> Int64?
  private var held: [FetchRequest.ID: (due: Int64, continuation: CheckedContinuation<Bool, Never>)] = [:]

  init(_ engine: any Fetcher, turn: @escaping (String) -> Int64?) { (self.engine, self.turn) = (engine, turn) }

  var lastWait: Double { engine.lastWait }

  func fetch(_ request: FetchRequest, into sink: any FetchSink) async -> FetchResult {
    while let due = turn(request.url.server) {
      // The loop may pause beyond that time.
      WorkerLoop.executor.wakeUp()
      let isWanted = await withCheckedContinuation { held[request.id] = (due, $0) }
      guard isWanted else { return .unbegun }
    }
    return await engine.fetch(request, into: sink)
  }

  /// Milliseconds until the first of those that are held may ask again.
  func untilTurn(at now: Int64) -> Int64 { held.values.map(\.due).min().map { max(0, $0 - now) } ?? .max }

  /// Lets those ask again whose time has come.
  func letGo(at now: Int64) {
    for (id, request) in held.filter({ $0.value.due <= now }).sorted(by: { $0.value.due < $1.value.due }) {
      held[id] = nil
      request.continuation.resume(returning: true)
    }
  }

  func cancel(_ id: FetchRequest.ID) {
    if let request = held.removeValue(forKey: id) { return request.continuation.resume(returning: false) }
    engine.cancel(id)
  }

  func use(_ network: NetworkOptions) { engine.use(network) }
  func forget(_ group: FetchRequest.ID) { engine.forget(group) }
  func share(_ rates: [SharedRate]) { engine.share(rates) }
  func limit(group: FetchRequest.ID, to rate: UInt64?, of rateClass: Int?) {
    engine.limit(group: group, to: rate, of: rateClass)
  }
}
