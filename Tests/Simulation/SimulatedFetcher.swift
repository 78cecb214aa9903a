import TestSupport

@testable import Spool
@testable import SpoolWorker
@testable import Transfer

/// The network of one simulated process: what an engine of libcurl would be.
final class SimulatedFetcher: Fetcher {
  private final class Exchange {
    let request: FetchRequest
    let url: URLParts
    let id: Int
    let sink: any FetchSink
    let continuation: CheckedContinuation<FetchResult, Never>
    var answer: SimulatedServers.Answer
    let begun: Int64
    /// Milliseconds of the process's time.
    var next: Int64
    var answered: Int64?
    var response: Response?
    var sent = 0
    var isCancelled = false

    init(
      _ request: FetchRequest, _ url: URLParts, _ id: Int, _ sink: any FetchSink, _ answer: SimulatedServers.Answer,
      at now: Int64, _ continuation: CheckedContinuation<FetchResult, Never>
    ) {
      (self.request, self.url, self.id, self.sink, self.continuation) = (request, url, id, sink, continuation)
      (self.answer, begun, next) = (answer, now, now + Int64(answer.wait))
    }
  }

  private let world: World
  private let process: Process
  private let servers: SimulatedServers
  private var exchanges: [Exchange] = []
  let lastWait = 0.05

  init(_ world: World, _ process: Process, _ servers: SimulatedServers) {
    (self.world, self.process, self.servers) = (world, process, servers)
  }

  private var now: Int64 { Host.current.milliseconds() }

  func fetch(_ request: FetchRequest, into sink: any FetchSink) async -> FetchResult {
    let url = request.url
    do throws(TransferFailure) { try request.check(allowing: [.http]) } catch {
      return FetchResult(end: .failed(error))
    }
    if process.isDead { return FetchResult(end: failure(.cut, url)) }
    let id = (Int(url.lastPathSegment ?? "") ?? 0) - 1_000_000
    var answer = servers.answer(request, host: url.host, id: id)
    if let status = world.programs?.judge(url, id, process) {
      answer.failure = nil
      (answer.status, answer.fields, answer.body) = (status, [("content-length", "0")], [])
    }
    let range = request.rangeStart.map { " from \($0)\(request.rangeEnd.map { " to \($0)" } ?? "")" } ?? ""
    let what = answer.failure.map { "\($0)" } ?? "\(answer.status), \(answer.body.count) bytes, \(answer.end)"
    world.tell("\(url.host) is asked for \(id)\(range): \(what)")
    servers.began(request.group, of: id, at: url.host, process)
    return await withCheckedContinuation {
      exchanges.append(Exchange(request, url, id, sink, answer, at: now, $0))
    }
  }

  private func failure(_ code: TransferFailure.Code, _ url: URLParts) -> FetchResult.End {
    .failed(
      TransferFailure(code: code, message: "\(url.host): \(code)", proxy: code == .proxy ? "proxy:3128" : nil))
  }

  func cancel(_ id: FetchRequest.ID) {
    guard let exchange = exchanges.first(where: { $0.request.id == id }) else { return }
    exchange.isCancelled = true
    end(exchange, .cancelled)
  }

  func use(_ network: NetworkOptions) {}
  func forget(_ group: FetchRequest.ID) {}
  func share(_ rates: [SharedRate]) {}
  func limit(group: FetchRequest.ID, to rate: UInt64?, of rateClass: Int?) {}

  // MARK: the loop

  /// Milliseconds until something happens.
  var untilNext: Int64 {
    process.isDead && !exchanges.isEmpty ? 0 : max(0, (exchanges.map(\.next).min() ?? .max / 2) - now)
  }

  func advance() {
    for exchange in exchanges {
      if process.isDead {
        fail(exchange, .cut)
      } else if exchange.next <= now, !exchange.isCancelled {
        goOn(exchange)
      }
    }
  }

  private func end(_ exchange: Exchange, _ end: FetchResult.End) {
    guard exchanges.contains(where: { $0 === exchange }) else { return }
    exchanges.removeAll { $0 === exchange }
    servers.ended(exchange.request.group, at: exchange.url.host, process)
    var result = FetchResult(end: end, response: exchange.response)
    result.bytesReceived = UInt64(exchange.sent)
    result.isOfOtherServer = exchange.answer.place != nil
    result.addressFamily = .ipv4
    result.seconds = Double(now - exchange.begun) / 1000
    if let answered = exchange.answered {
      result.times = (Double(answered - exchange.begun) / 1000, Double(now - answered) / 1000)
    }
    exchange.continuation.resume(returning: result)
  }

  private func fail(_ exchange: Exchange, _ code: TransferFailure.Code) {
    end(exchange, failure(code, exchange.url))
  }

  private func goOn(_ exchange: Exchange) {
    if let code = exchange.answer.failure { return fail(exchange, code) }
    guard exchange.response != nil else { return offer(exchange) }
    if servers.breaksOff(exchange.id) { return fail(exchange, .cut) }
    let rest = exchange.answer.body.count - exchange.sent
    if rest == 0 {
      switch exchange.answer.end {
      case .complete: return end(exchange, .complete)
      case .cut: return fail(exchange, .cut)
      case .shortBody: return fail(exchange, .shortBody)
      case .stall:
        exchange.answer.failure = .stalled
        exchange.next = now + Int64(exchange.request.idleTimeoutSeconds) * 1000
        return
      }
    }
    exchange.next = now + Int64(exchange.answer.interval)
    if exchange.sink.isFull {
      exchange.next = now + 1
      return
    }
    let piece = exchange.answer.body[exchange.sent..<exchange.sent + min(rest, exchange.answer.pieceSize)]
    let isTaken = piece.withUnsafeBytes { exchange.sink.append($0) }
    if exchange.isCancelled { return }
    guard isTaken else { return end(exchange, .refused) }
    exchange.sent += piece.count
    if exchange.answer.isNew, world.isChance(1, in: 4) { world.note(.otherVersion) }
  }

  private func offer(_ exchange: Exchange) {
    exchange.answered = now
    let place = exchange.answer.place.flatMap { try? URLParts("http://\($0)/\(exchange.id)") }
    let response = Response(
      ResponseHead(status: exchange.answer.status, fields: exchange.answer.fields), from: place ?? exchange.url,
      now: world.disk.clock / 1_000_000_000)
    exchange.response = response
    exchange.next = now + Int64(exchange.answer.interval)
    let isAccepted = exchange.sink.accept(response)
    if exchange.isCancelled { return }
    if !isAccepted { end(exchange, .refused) }
  }
}

/// What a simulated worker's loop waits in.
final class SimulatedSurroundings: LoopSurroundings {
  private let world: World
  private let process: Process
  private let servers: SimulatedServers
  private let loop: SimulatedThread?
  private var fetcher: SimulatedFetcher?
  private var isRung = false
  /// The number of the descriptor that tells of a signal.
  static let stopSignals: Int32 = 9999
  private var wasToldOf = false

  /// To be made on the loop's thread.
  init(_ world: World, _ process: Process, _ servers: SimulatedServers) {
    (self.world, self.process, self.servers, loop) = (world, process, servers, world.thread)
  }

  func wait(milliseconds: Int32, descriptors: [Int32]) -> [Int32] {
    if !isRung, !process.isTold || wasToldOf, readable(descriptors).isEmpty {
      let wait = min(Int64(milliseconds), fetcher?.untilNext ?? .max)
      world.wait(process, milliseconds: Int(wait))
    }
    isRung = false
    if process.isTold, !wasToldOf {
      wasToldOf = true
      return [Self.stopSignals]
    }
    return readable(descriptors)
  }

  private func readable(_ descriptors: [Int32]) -> [Int32] { descriptors.filter { world.inotify.hasEvents($0) } }

  func advance() { fetcher?.advance() }

  func ring() {
    isRung = true
    world.wake(loop)
  }

  func makeFetcher(_ options: TransferOptions) throws(TransferError) -> any Fetcher {
    let fetcher = SimulatedFetcher(world, process, servers)
    self.fetcher = fetcher
    return fetcher
  }

  func hasAddress() -> Bool { true }
  func hasRoute() -> Bool { true }
  @WorkerLoop func watchNetwork() -> NetworkWatch? { nil }
}
