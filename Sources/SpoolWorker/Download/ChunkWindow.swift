internal import Spool

/// Puts the bytes of several connections in order: appends those that belong at the end of the data, and keeps early
/// ones. Used on the loop's thread only.
final class ChunkWindow {
  private let data: PartData
  var plan: ChunkPlan
  private var kept: [UInt64: EarlyBytes] = [:]
  /// Why bytes could not be appended. The other connections, which still run, must not append after the gap.
  private var broken: (any Error)?
  /// Called within a libcurl callback when the window has room for new requests.
  var onAdvance: () -> Void = {}
  /// Called within a libcurl callback for each connection whose bytes are no longer needed.
  var onSuperfluous: (Int) -> Void = { _ in }

  init(_ data: PartData, plan: ChunkPlan) {
    self.data = data
    self.plan = plan
  }

  /// - Throws: an error that ends the whole transfer, or ``Failure`` `bad-response` if more came than was requested.
  func take(_ bytes: UnsafeRawBufferPointer, on connection: Int, host: String) throws {
    if let broken { throw broken }
    guard let delivery = plan.receive(bytes.count, on: connection, now: LoopExecutor.milliseconds()) else {
      throw Failure(.badResponse, "\(host) sent more than the range that it was asked for")
    }
    let known = UnsafeRawBufferPointer(rebasing: bytes[..<delivery.skipped])
    if !known.isEmpty, try !agrees(known, at: delivery.start) { throw Difference() }
    let fresh = UnsafeRawBufferPointer(rebasing: bytes[delivery.skipped...])
    switch delivery.place {
    case .nowhere: return
    case .early(let chunk):
      let bytes = kept[chunk.lowerBound] ?? EarlyBytes(capacity: chunk.count)
      kept[chunk.lowerBound] = bytes
      bytes.append(fresh)
    case .atEnd:
      try append(fresh, at: delivery.offset, host)
      if delivery.completes { try advance(host) }
    }
    guard delivery.completes else { return }
    for other in plan.superfluous { onSuperfluous(other) }
  }

  /// Two responses differ.
  struct Difference: Error {}

  /// Whether bytes from the file offset `start` on are those that another response has brought.
  private func agrees(_ bytes: UnsafeRawBufferPointer, at start: UInt64) throws -> Bool {
    guard start >= data.length, let chunk = plan.start(ofChunkAt: start) else {
      return try data.agreement(of: bytes, at: start) == bytes.count
    }
    return kept[chunk]?.agree(with: bytes, at: Int(start - chunk)) ?? false
  }

  private func advance(_ host: String) throws {
    while plan.advance() {
      guard let head = plan.head, let early = kept.removeValue(forKey: head) else { continue }
      try append(early.bytes, at: head, host)
    }
    onAdvance()
  }

  private func append(_ bytes: UnsafeRawBufferPointer, at offset: UInt64, _ host: String) throws {
    // A crash loses no data; joining bytes in the wrong order would corrupt it.
    precondition(data.length == offset, "a chunk out of order")
    do {
      try data.append(bytes, host: host)
    } catch {
      broken = error
      throw error
    }
  }
}

/// The early bytes of one chunk.
private final class EarlyBytes {
  private let memory: UnsafeMutableRawBufferPointer
  private var count = 0

  /// The kernel allocates the pages when they are written to.
  init(capacity: Int) { memory = .allocate(byteCount: capacity, alignment: 16) }

  deinit { memory.deallocate() }

  func append(_ more: UnsafeRawBufferPointer) {
    UnsafeMutableRawBufferPointer(rebasing: memory[count...]).copyMemory(from: more)
    count += more.count
  }

  func agree(with bytes: UnsafeRawBufferPointer, at offset: Int) -> Bool {
    self.bytes[offset..<min(count, offset + bytes.count)].elementsEqual(bytes)
  }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<count]) }
}
