/// Which connection fetches which stretch of a file, so that the file can be written in order all the same. Pure: it is told what came and what ended, and
/// says what to ask for and where bytes belong.
///
/// The stretches, chunks, follow each other without a gap. The first one that is not whole is the head: its bytes go straight to the end of the data. Those of
/// the others come early and have to be kept, which is why there is a ``window``. Times are in milliseconds of any clock that does not jump.
struct ChunkPlan {
  /// What one connection asks for in one request.
  struct Request: Equatable {
    let connection: Int
    let range: Range<UInt64>
  }

  /// Where bytes belong that have just come.
  struct Delivery: Equatable {
    enum Place: Equatable {
      case atEnd
      /// To be kept with others of this chunk.
      case early(Range<UInt64>)
      /// All of them were there already.
      case nowhere
    }
    let place: Place
    /// Where the first byte belongs that wasn't there.
    let offset: UInt64
    /// How many at the front are there already: another connection was faster.
    let skipped: Int
    /// Whether the chunk is whole with them.
    let completes: Bool
  }

  private struct Chunk {
    let range: Range<UInt64>
    /// All before this is there.
    var reached: UInt64
    var fetchers = 0
    var isWhole: Bool { reached == range.upperBound }
  }

  private struct Connection {
    var request: Range<UInt64>?
    /// Where its next byte belongs.
    var position: UInt64 = 0
    var begun: Int64 = 0
    /// Bytes a second of its last requests, the wait for the answer included.
    var rate: Double?
    var isRetired = false

    var isIdle: Bool { request == nil && !isRetired }
    var received: UInt64 { request.map { position - $0.lowerBound } ?? 0 }

    func currentRate(_ now: Int64) -> Double { Double(received) * 1000 / Double(max(1, now - begun)) }
  }

  /// The smallest request: less would be all latency.
  static let smallest: UInt64 = 64 << 10
  /// How long a request should take. Short, so that no connection is waited for long; long beside the wait for an answer.
  static let aim: Double = 1
  /// For less than that, in milliseconds, nothing is slow: connections take turns in a poll, and servers among their clients.
  static let patience: Int64 = 200

  let total: UInt64
  let largest: UInt64
  /// The most bytes behind the head that may have been asked for, and so the most that may have to be kept.
  let window: UInt64
  private var smallest: UInt64 { min(Self.smallest, largest) }
  /// In order and without a gap, from the head on.
  private var chunks: [Chunk] = []
  /// The first byte that has not been asked for.
  private var next: UInt64
  private var connections: [Connection]
  private let firstRate: Double

  /// The part of the window that one connection brings along. Two chunks: one under way, and one whole that waits for
  /// the head.
  static func window(of largest: UInt64) -> UInt64 { largest * 2 }

  /// - Parameters:
  ///   - range: what is still to come.
  ///   - largest: the most bytes in one request.
  ///   - rate: a first guess, in bytes a second.
  init(_ range: Range<UInt64>, connections: Int, largest: UInt64, rate: Double) {
    next = range.lowerBound
    total = range.upperBound
    self.largest = max(1, largest)
    window = Self.window(of: self.largest) * UInt64(connections)
    self.connections = Array(repeating: Connection(), count: connections)
    firstRate = rate
  }

  /// Whether all bytes have come.
  var isFinished: Bool { chunks.isEmpty && next == total }
  /// Where the head begins, if there is one.
  var head: UInt64? { chunks.first?.range.lowerBound }
  /// Bytes that may have to be kept.
  var early: UInt64 { chunks.first.map { next - $0.range.upperBound } ?? 0 }
  /// Connections that are still of use.
  var live: Int { connections.count { !$0.isRetired } }

  // MARK: what to ask for

  /// What the idle connections should ask for now; each counts as busy from here on.
  mutating func assign(now: Int64) -> [Request] {
    var requests: [Request] = []
    for index in connections.indices where connections[index].isIdle {
      guard let chunk = chunkToGoOn() ?? newChunk(for: index) ?? chunkToRepeat(for: index, now) else { continue }
      let range = chunks[chunk].reached..<chunks[chunk].range.upperBound
      chunks[chunk].fetchers += 1
      connections[index].request = range
      connections[index].position = range.lowerBound
      connections[index].begun = now
      requests.append(Request(connection: index, range: range))
    }
    return requests
  }

  /// A chunk whose connection broke off.
  private func chunkToGoOn() -> Int? { chunks.firstIndex { !$0.isWhole && $0.fetchers == 0 } }

  private mutating func newChunk(for index: Int) -> Int? {
    let left = total - next
    guard left > 0 else { return nil }
    // Towards the end each gets its share, so that all end at about the same time.
    let share = max(smallest, (left + UInt64(live) - 1) / UInt64(live))
    let wanted = min(left, share, length(for: rate(of: index)))
    let room = chunks.isEmpty ? wanted : min(wanted, window - early)
    guard room > 0, room >= min(wanted, smallest) else { return nil }
    chunks.append(Chunk(range: next..<next + room, reached: next))
    next += room
    return chunks.endIndex - 1
  }

  private func length(for rate: Double) -> UInt64 {
    UInt64(min(Double(largest), max(Double(smallest), rate * Self.aim)))
  }

  private func rate(of index: Int) -> Double {
    if let rate = connections[index].rate { return rate }
    let known = connections.compactMap(\.rate)
    return known.isEmpty ? firstRate : known.reduce(0, +) / Double(known.count)
  }

  /// The head, where all wait for a connection that is slow: when this one would have been done with it by now, and is twice as fast.
  private func chunkToRepeat(for index: Int, _ now: Int64) -> Int? {
    guard let head = chunks.first, !head.isWhole, head.fetchers == 1, let rate = connections[index].rate,
      let other = connections.first(where: { $0.request?.upperBound == head.range.upperBound }),
      let request = other.request
    else { return nil }
    let elapsed = now - other.begun
    guard elapsed >= Self.patience, Double(elapsed) / 1000 * rate >= Double(request.count),
      other.currentRate(now) * 2 < rate
    else { return nil }
    return 0
  }

  // MARK: what came

  /// Takes `count` bytes in that came on a connection; nil if they are more than it had asked for.
  mutating func receive(_ count: Int, on index: Int) -> Delivery? {
    let start = connections[index].position
    let end = start + UInt64(count)
    guard let request = connections[index].request, end <= request.upperBound else { return nil }
    connections[index].position = end
    guard let chunk = chunk(at: start), end > chunks[chunk].reached else {
      return Delivery(place: .nowhere, offset: end, skipped: count, completes: false)
    }
    let offset = chunks[chunk].reached
    chunks[chunk].reached = end
    return Delivery(
      place: chunk == 0 ? .atEnd : .early(chunks[chunk].range), offset: offset, skipped: Int(offset - start),
      completes: chunks[chunk].isWhole)
  }

  /// Drops the head once it is whole; what came early of the chunk behind it then belongs at the end of the data.
  mutating func advance() -> Bool {
    guard let head = chunks.first, head.isWhole else { return false }
    chunks.removeFirst()
    return true
  }

  /// Connections that are under way with what another one has brought meanwhile.
  var superfluous: [Int] {
    connections.indices.filter { index in
      guard let request = connections[index].request, connections[index].position < request.upperBound else {
        return false
      }
      return chunk(at: request.lowerBound).map { chunks[$0].isWhole } ?? true
    }
  }

  /// The request on this connection has ended, for better or worse. What it did not bring will be asked for again.
  /// - Returns: how many bytes it brought, needed or not.
  @discardableResult
  mutating func ended(_ index: Int, now: Int64) -> UInt64 {
    guard let request = connections[index].request else { return 0 }
    let received = connections[index].received
    let rate = connections[index].currentRate(now)
    connections[index].rate = connections[index].rate.map { ($0 + rate) / 2 } ?? rate
    connections[index].request = nil
    if let chunk = chunk(at: request.lowerBound) { chunks[chunk].fetchers -= 1 }
    return received
  }

  /// This connection asks for nothing any more.
  mutating func retire(_ index: Int) { connections[index].isRetired = true }

  /// The chunk that `offset` lies in, if it isn't done with.
  private func chunk(at offset: UInt64) -> Int? {
    guard let head = chunks.first, head.range.lowerBound <= offset, offset < next else { return nil }
    var (low, high) = (0, chunks.count)
    while high - low > 1 {
      let middle = (low + high) / 2
      if chunks[middle].range.lowerBound <= offset { low = middle } else { high = middle }
    }
    return low
  }
}

extension WorkerOptions {
  /// Bytes of the first request of several: its answer tells whether there can be others beside it.
  var firstPiece: UInt64 { min(ChunkPlan.smallest, chunkSize) }
}
