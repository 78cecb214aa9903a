internal import Glibc
internal import Spool

/// Decides which connection fetches which chunk of a file, so that the file can be written in order. Pure: it gets the
/// bytes received and the requests ended as events, and returns which ranges to request and where bytes belong.
///
/// The chunks follow each other without gaps. The first incomplete chunk is the head: its bytes are appended to the
/// data at once. The bytes of the other chunks are early and are kept in memory, which the ``window`` limits. Times are
/// in milliseconds of any monotonic clock.
struct ChunkPlan {
  struct Request: Equatable {
    let connection: Int
    let range: Range<UInt64>
    let chunk: UInt64
  }

  struct Delivery: Equatable {
    enum Place: Equatable {
      case atEnd
      /// Keep them with the other bytes of this chunk.
      case early(Range<UInt64>)
      case nowhere
    }
    let place: Place
    /// The file offset of the first new byte.
    let offset: UInt64
    /// How many bytes at the front had been received already: another connection was faster, or its response broke off.
    let skipped: Int
    var start: UInt64 { offset - UInt64(skipped) }
    let completes: Bool
  }

  /// What is expected of a connection that has not brought anything yet.
  struct Estimate: Equatable {
    /// Bytes per second while they come.
    let flow: Double
    /// Milliseconds that a response takes to come.
    let wait: Int64
  }

  private struct Chunk {
    let range: Range<UInt64>
    /// All bytes before this offset have been received.
    var reached: UInt64
    var fetchers = 0
    /// Where the response began that brought the last bytes before ``reached``, if it broke off.
    var brokenFrom: UInt64?
    var isWhole: Bool { reached == range.upperBound }
  }

  private struct Connection {
    var request: Range<UInt64>?
    var position: UInt64 = 0
    /// Whether it has brought bytes that had not been received before.
    var hasFresh = false
    var begun: Int64 = 0
    /// When the first byte of the response came; nil before.
    var answered: Int64?
    /// Bytes per second of its last requests, including the wait for the response.
    var rate: Double?
    /// The same without that wait.
    var flow: Double?
    /// Milliseconds that the last response took to come.
    var wait: Int64 = 0
    var ended = 0
    var isRetired = false

    var isIdle: Bool { request == nil && !isRetired }
    var received: UInt64 { request.map { position - $0.lowerBound } ?? 0 }

    var missing: UInt64 { request.map { $0.upperBound - position } ?? 0 }

    func currentRate(_ now: Int64) -> Double { Double(received) * 1000 / Double(max(1, now - begun)) }
  }

  /// The smallest request, in bytes. For smaller ones, latency would dominate.
  static let smallest: UInt64 = 64 << 10
  /// Seconds that a request should take: short, so that a slow connection does not delay the others for long.
  static let aim: Double = 1
  /// How much longer than the wait for its response a request should take: a connection is idle while it waits.
  static let longerThanWait: Double = 32
  /// Milliseconds before which no connection counts as slow, because polls and servers serve connections in turn.
  static let patience: Int64 = 200

  let total: UInt64
  /// Bytes of a request; twice as many where the wait for a response is long.
  let largest: UInt64
  /// Maximum number of requested bytes after the head, and so of bytes kept in memory.
  let window: UInt64
  private var smallest: UInt64 { min(Self.smallest, largest) }
  /// In order and without gaps, from the head on.
  private var chunks: [Chunk] = []
  /// The offset of the first byte not yet requested.
  private var next: UInt64
  private var connections: [Connection]
  private let first: Estimate
  /// The first request of each connection is longer than that of the one before, so that they end one after the other:
  /// chunks become whole in order, and the window is rarely full.
  private let isStaggered: Bool

  /// The share of one connection in the window. Two chunks: one being received, and a complete one that waits for the
  /// head.
  static func window(of largest: UInt64) -> UInt64 { largest * 2 }

  /// - Parameter first: what to expect of a connection until it has brought something.
  init(_ range: Range<UInt64>, connections: Int, largest: UInt64, _ first: Estimate) {
    next = range.lowerBound
    total = range.upperBound
    self.largest = max(1, largest)
    window = Self.window(of: self.largest) * UInt64(connections)
    self.connections = Array(repeating: Connection(), count: connections)
    self.first = first
    // What fits into the window needs no order, and no second request.
    isStaggered = UInt64(range.count) > window
  }

  var isFinished: Bool { chunks.isEmpty && next == total }
  /// The offset at which the head begins; nil if there is none.
  var head: UInt64? { chunks.first?.range.lowerBound }
  /// Requested bytes after the head, which may have to be kept.
  var early: UInt64 { chunks.first.map { next - $0.range.upperBound } ?? 0 }
  var brokenFrom: UInt64? { chunks.first?.brokenFrom }
  var live: Int { connections.count { !$0.isRetired } }

  // MARK: what to ask for

  /// The next requests of the idle connections, which count as busy from now on.
  mutating func assign(now: Int64) -> [Request] {
    var requests: [Request] = []
    for index in connections.indices where connections[index].isIdle {
      guard let chunk = chunkToGoOn() ?? newChunk(for: index) ?? chunkToRepeat(for: index, now) else { continue }
      let range = begin(of: chunks[chunk])..<chunks[chunk].range.upperBound
      chunks[chunk].fetchers += 1
      connections[index].request = range
      connections[index].position = range.lowerBound
      connections[index].begun = now
      (connections[index].answered, connections[index].hasFresh) = (nil, false)
      requests.append(Request(connection: index, range: range, chunk: chunks[chunk].range.lowerBound))
    }
    return requests
  }

  /// The last bytes of a response that broke off, or still may, are asked for again, to be compared (``TailDoubt``).
  private func begin(of chunk: Chunk) -> UInt64 {
    let running = connections.first { $0.request?.upperBound == chunk.range.upperBound }?.request?.lowerBound
    guard let first = running ?? chunk.brokenFrom else { return chunk.reached }
    return TailDoubt.begin(from: first, to: chunk.reached)
  }

  /// An incomplete chunk that no connection fetches any more.
  private func chunkToGoOn() -> Int? { chunks.firstIndex { !$0.isWhole && $0.fetchers == 0 } }

  private mutating func newChunk(for index: Int) -> Int? {
    let left = total - next
    guard left > 0 else { return nil }
    let wanted = min(left, max(smallest, shareOfRest(for: index)), length(for: index))
    let room = chunks.isEmpty ? wanted : min(wanted, window - early)
    guard room > 0, room >= min(wanted, smallest) else { return nil }
    chunks.append(Chunk(range: next..<next + room, reached: next))
    next += room
    return chunks.endIndex - 1
  }

  /// What the connection brings until the end, if all end at the same time. The waits need not be subtracted: each of
  /// the others has to wait once more as well.
  private func shareOfRest(for index: Int) -> UInt64 {
    let missing = connections.reduce(total - next) { $0 + $1.missing }
    let flows = connections.indices.filter { !connections[$0].isRetired }.map(flow).reduce(0, +)
    return UInt64(Double(missing) / max(1, flows) * flow(of: index))
  }

  private func length(for index: Int) -> UInt64 {
    let flow = flow(of: index)
    let near = min(Double(largest), flow * Self.aim)
    let isFirst = connections[index].ended == 0
    let wait = isFirst ? first.wait : connections[index].wait
    let far = min(2 * Double(largest), flow * Self.longerThanWait * Double(wait) / 1000)
    let part = isFirst && isStaggered ? Double(index + 1) / Double(connections.count) : 1
    return UInt64(max(Double(smallest), max(near, far) * part))
  }

  private func flow(of index: Int) -> Double {
    if let flow = connections[index].flow { return flow }
    let known = connections.compactMap(\.flow)
    return known.isEmpty ? first.flow : known.reduce(0, +) / Double(known.count)
  }

  /// The head, if the others wait for a slow connection: if this connection would already have fetched it, and is twice
  /// as fast.
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

  /// Notes `count` bytes received on a connection; nil if they exceed its request.
  mutating func receive(_ count: Int, on index: Int, now: Int64) -> Delivery? {
    let start = connections[index].position
    let end = start + UInt64(count)
    guard let request = connections[index].request, end <= request.upperBound else { return nil }
    connections[index].position = end
    if connections[index].answered == nil { connections[index].answered = now }
    guard let chunk = chunk(at: start), end > chunks[chunk].reached else {
      return Delivery(place: .nowhere, offset: end, skipped: count, completes: false)
    }
    let offset = chunks[chunk].reached
    chunks[chunk].reached = end
    connections[index].hasFresh = true
    return Delivery(
      place: chunk == 0 ? .atEnd : .early(chunks[chunk].range), offset: offset, skipped: Int(offset - start),
      completes: chunks[chunk].isWhole)
  }

  /// Drops the head if it is complete. The early bytes of the next chunk then belong at the end of the data.
  mutating func advance() -> Bool {
    guard let head = chunks.first, head.isWhole else { return false }
    chunks.removeFirst()
    return true
  }

  /// Connections that still fetch bytes that another one has delivered meanwhile.
  var superfluous: [Int] {
    connections.indices.filter { index in
      guard let request = connections[index].request, connections[index].position < request.upperBound else {
        return false
      }
      return chunk(at: request.lowerBound).map { chunks[$0].isWhole } ?? true
    }
  }

  /// Notes the end of the request on this connection, complete or not. Missing bytes will be requested again.
  /// - Returns: the number of bytes that it received, needed or not.
  @discardableResult mutating func ended(_ index: Int, now: Int64, isBroken: Bool = false) -> UInt64 {
    guard let request = connections[index].request else { return 0 }
    let received = connections[index].received
    let rate = connections[index].currentRate(now)
    connections[index].rate = connections[index].rate.map { ($0 + rate) / 2 } ?? rate
    if let answered = connections[index].answered {
      let flow = Double(received) * 1000 / Double(max(1, now - answered))
      connections[index].flow = connections[index].flow.map { ($0 + flow) / 2 } ?? flow
      connections[index].wait = answered - connections[index].begun
    }
    connections[index].request = nil
    connections[index].ended += 1
    if let chunk = chunk(at: request.lowerBound) {
      chunks[chunk].fetchers -= 1
      if received > 0, request.lowerBound + received == chunks[chunk].reached {
        chunks[chunk].brokenFrom = isBroken ? request.lowerBound : nil
      }
    }
    // One that breaks off at the same place as the one before shows nothing.
    if isBroken, !connections[index].hasFresh { return 0 }
    return received
  }

  mutating func retire(_ index: Int) { connections[index].isRetired = true }

  func start(ofChunkAt offset: UInt64) -> UInt64? { chunk(at: offset).map { chunks[$0].range.lowerBound } }

  /// The index of the chunk that contains `offset`; nil if that chunk is already appended or not yet requested.
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

extension ChunkPlan.Estimate {
  /// ``ChunkPlan/largest``: up to twice as much as `usual` where a request of twice that size would not even take 16
  /// times as long as the wait for its response.
  func largest(_ usual: UInt64) -> UInt64 {
    guard wait > 20 else { return usual }
    let wanted = flow * 16 * Double(wait) / 1000 / 2
    return UInt64(min(max(wanted, Double(usual)), 2 * Double(usual)))
  }
}

extension WorkerOptions {
  /// Bytes of the first request of a transfer over several connections. Its response shows whether others can follow.
  var firstPiece: UInt64 { min(ChunkPlan.smallest, chunkSize) }
}

/// Limits the additional memory of all transfers over several connections, whatever jobs ask for.
///
/// A transfer gets at most half of what is left, so that something remains for the next one. It keeps its share until
/// it ends. Used on the loop's thread only.
final class MemoryBudget {
  struct Share: Equatable {
    let connections: Int
    let largest: UInt64

    /// Bytes that may be in use in the worst case.
    var size: UInt64 { UInt64(connections) * (ChunkPlan.window(of: largest) + MemoryBudget.connection) }
  }

  /// Bytes that a connection takes in addition to the window: libcurl's buffer of 512 KiB, TLS, and the kernel's
  /// socket.
  static let connection: UInt64 = 640 << 10

  private let limit: UInt64
  private(set) var taken: UInt64 = 0

  init(limit: UInt64) { self.limit = limit }

  /// Reserves a share: as many connections as wanted, if necessary with smaller chunks, or fewer with the smallest
  /// chunks; nil if there is not enough for two.
  func take(connections wanted: Int, largest: UInt64) -> Share? {
    let room = (limit - min(taken, limit)) / 2
    let smallest = min(largest, ChunkPlan.smallest)
    let connections = min(UInt64(wanted), room / (ChunkPlan.window(of: smallest) + Self.connection))
    guard connections > 1 else { return nil }
    // The share of a connection, less what the connection itself takes, is its part of the window.
    let window = room / connections - Self.connection
    let share = Share(connections: Int(connections), largest: min(largest, window / ChunkPlan.window(of: 1)))
    taken += share.size
    return share
  }

  func giveBack(_ share: Share) { taken -= share.size }
}

extension MemoryBudget {
  static let largestDefault: UInt64 = 512 << 20

  /// A quarter of the memory that this process's control groups and the machine have, at most ``largestDefault``.
  static func defaultLimit() -> UInt64 {
    let machine = UInt64(max(0, sysconf(Int32(_SC_PHYS_PAGES)))) * UInt64(max(0, sysconf(Int32(_SC_PAGESIZE))))
    let groups = contents("/proc/self/cgroup").flatMap { limit(ofGroups: $0, contents: contents) }
    return min(min(groups ?? .max, machine) / 4, largestDefault)
  }

  /// The lowest limit of a process's control groups and their parents (cgroups(7); version 2: memory.max and
  /// memory.high, version 1: memory.limit_in_bytes).
  ///
  /// In a container, the paths may be those of the host while only the container's own groups are mounted. Missing
  /// files are skipped.
  /// - Parameter groups: the text of `/proc/self/cgroup`, lines of `ID:CONTROLLERS:PATH`.
  static func limit(ofGroups groups: String, contents: (String) -> String?) -> UInt64? {
    var limits: [UInt64] = []
    for line in groups.split(at: "\n") {
      let fields = line.split(at: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard fields.count == 3 else { continue }
      let isUnified = fields[0] == "0" && fields[1].isEmpty
      guard isUnified || fields[1].split(at: ",").contains("memory") else { continue }
      let mounts = isUnified ? ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] : ["/sys/fs/cgroup/memory"]
      let files = isUnified ? ["memory.max", "memory.high"] : ["memory.limit_in_bytes"]
      var parts = fields[2].split(at: "/")
      while true {
        let path = parts.map { "/\($0)" }.joined()
        for mount in mounts {
          // The value `max` means no limit.
          limits += files.compactMap { contents("\(mount)\(path)/\($0)").flatMap { UInt64($0.prefix(before: "\n")) } }
        }
        if parts.popLast() == nil { break }
      }
    }
    return limits.min()
  }

  /// Reads at most the first 4 KiB of a file; the files of proc(5) and cgroups(7) are small.
  private static func contents(_ path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = read(descriptor, &bytes, bytes.count)
    return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
  }
}
