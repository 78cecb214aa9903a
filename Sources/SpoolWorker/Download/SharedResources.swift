internal import Glibc
internal import Spool
internal import Transfer

/// Collects the pieces of at most 16 KiB that libcurl delivers into blocks that start and end at multiples of their
/// size. Writing 1 GiB in blocks takes less than half the time of writing the pieces at their odd offsets, where each
/// write touches a page of the page cache that the previous one has touched.
final class BlockBuffer {
  static let size = Block.size

  /// Writes bytes. They are in the block, unless there is none.
  typealias Write<Failure: Error> = (UnsafeRawBufferPointer, Block?) throws(Failure) -> Void

  private let pool: BlockPool
  private var block: Block?
  private(set) var count = 0

  init(_ pool: BlockPool = BlockPool()) { self.pool = pool }

  deinit { giveBack() }

  /// Takes bytes and writes complete blocks.
  /// - Parameter offset: the file offset of the first byte not yet written.
  /// - Parameter isEnd: whether `bytes` are the last ones.
  /// - Throws: what `write` throws. The bytes not yet written are dropped then, because nothing may be written after a
  ///   gap.
  func take<Failure: Error>(
    _ bytes: UnsafeRawBufferPointer, at offset: UInt64, isEnd: Bool,
    write: Write<Failure>
  ) throws(Failure) {
    var rest = bytes
    var offset = offset + UInt64(count)
    while !rest.isEmpty {
      let room = Self.size - Int(offset % UInt64(Self.size))
      // Complete blocks, and a body smaller than a block, need no copy.
      let isDirect = count == 0 && (rest.count >= room || isEnd)
      let length =
        isDirect && isEnd
        ? rest.count : isDirect ? room + (rest.count - room) / Self.size * Self.size : min(rest.count, room)
      let piece = UnsafeRawBufferPointer(rebasing: rest[..<length])
      if isDirect {
        try write(piece, nil)
      } else {
        gather(piece)
        if length == room { try flush(write) }
      }
      offset += UInt64(length)
      rest = UnsafeRawBufferPointer(rebasing: rest[length...])
    }
  }

  private func gather(_ bytes: UnsafeRawBufferPointer) {
    // The digests may still need what was written.
    if count == 0, block != nil, !isKnownUniquelyReferenced(&block), let former = block {
      block = pool.take()
      pool.give(former)
    }
    let block = self.block ?? pool.take()
    self.block = block
    UnsafeMutableRawBufferPointer(rebasing: block.memory[count...]).copyMemory(from: bytes)
    count += bytes.count
  }

  /// Releases the memory: a job in its commit needs none.
  func giveBack() {
    if let block { pool.give(block) }
    block = nil
  }

  func drop() { count = 0 }

  func flush<Failure: Error>(_ write: Write<Failure>) throws(Failure) {
    guard count > 0, let block else { return }
    let bytes = UnsafeRawBufferPointer(rebasing: block.memory[..<count])
    count = 0
    try write(bytes, block)
  }
}

/// Reuses memory for blocks while anybody has one. Returning pages to the kernel and getting them back costs as much as
/// writing to them.
final class BlockPool {
  private static let most = 16
  private var free: [Block] = []
  /// How many are with those that use them.
  private var taken = 0

  /// A block that nobody else holds: of those that nobody reads any more, the one that came back last, which is most
  /// likely to be in a cache.
  func take() -> Block {
    taken += 1
    for index in free.indices.reversed() where isKnownUniquelyReferenced(&free[index]) { return free.remove(at: index) }
    return Block()
  }

  /// Takes a block back, even if somebody still reads it.
  func give(_ block: Block) {
    taken -= 1
    if free.count < Self.most { free.append(block) }
    if taken == 0 { free = [] }
  }
}

/// Free space on the spool's disk. Each running transfer has reserved what it still has to receive. Otherwise two
/// transfers that fit one at a time would fill the disk together, and neither could continue. Used on the loop's thread
/// only.
final class DiskSpace {
  struct Shortage {
    let needed: UInt64
    /// Bytes free now, less what others have reserved.
    let free: UInt64
    let kept: UInt64

    var reason: String { "\(needed) bytes still to come, \(free) free, --min-free keeps \(kept)" }
  }

  /// Fewer bytes than this are written without a question to the file system, unless some are to be kept free. If there
  /// is no space for them, the write says so.
  static let asked: UInt64 = 1 << 20

  let kept: UInt64
  private let spool: Spool
  /// The bytes that each running transfer still has to receive, as far as is known.
  private var takers: [ObjectIdentifier: () -> UInt64] = [:]

  init(_ spool: Spool, kept: UInt64) { (self.spool, self.kept) = (spool, kept) }

  /// - Parameter stillToCome: in bytes; called whenever another transfer needs space.
  func enter(_ taker: AnyObject, stillToCome: @escaping () -> UInt64) { takers[ObjectIdentifier(taker)] = stillToCome }
  func leave(_ taker: AnyObject) { takers[ObjectIdentifier(taker)] = nil }

  var freeIfShort: UInt64? {
    guard kept > 0, let free = spool.freeSpace(), free < kept else { return nil }
    return free
  }

  /// - Parameter needed: bytes still to come; there is always space for 0, see also ``asked``.
  /// - Parameter taker: the transfer that needs them, whose own reservation does not count.
  /// - Returns: nil if there is enough space, or the file system does not tell.
  func shortage(of needed: UInt64, for taker: AnyObject? = nil) -> Shortage? {
    guard needed > 0, needed >= Self.asked || kept > 0, let free = spool.freeSpace() else { return nil }
    var rest = free
    let own = taker.map { ObjectIdentifier($0) }
    for (other, stillToCome) in takers where other != own { rest -= min(rest, stillToCome()) }
    guard rest < kept || needed > rest - kept else { return nil }
    return Shortage(needed: needed, free: rest, kept: kept)
  }
}

extension WorkerOptions { var sharedRates: [SharedRate] { limitRate?.sharedRates(at: minuteOfDay()) ?? [] } }

extension RateRules {
  /// The rates that transfers share at this minute of the day: one for each clause that applies to any. The engine
  /// knows jobs of a priority by its place.
  func sharedRates(at minute: Int) -> [SharedRate] {
    let priorities = Dictionary(grouping: Priority.allCases) { clause(for: $0, at: minute) }
    return clauses.indices.compactMap { index in
      guard let members = priorities[index], let rate = clauses[index].bytesPerSecond else { return nil }
      return SharedRate(of: Set(members.map(\.place)), bytesPerSecond: rate)
    }
  }
}

/// The minute of the day by the local clock, from 0 to 1439.
func minuteOfDay() -> Int {
  var (now, parts) = (time(nil), tm())
  // localtime_r(3) alone would keep to the zone that the process began with.
  tzset()
  localtime_r(&now, &parts)
  return Int(parts.tm_hour) * 60 + Int(parts.tm_min)
}
