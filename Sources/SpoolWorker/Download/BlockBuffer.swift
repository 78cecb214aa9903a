internal import Spool

/// Collects the pieces of at most 16 KiB that libcurl delivers into blocks that start and end at multiples of their
/// size. Writing 1 GiB in blocks takes less than half the time of writing the pieces at their odd offsets, where each
/// write touches a page of the page cache that the previous one has touched.
final class BlockBuffer {
  static let size = Block.size

  /// Writes bytes. They are in the block, unless there is none.
  typealias Write<Failure: Error> = (UnsafeRawBufferPointer, Block?) throws(Failure) -> Void

  private let pool: BlockPool
  private var block: Block?
  /// Bytes not yet written.
  private(set) var count = 0

  init(_ pool: BlockPool = BlockPool()) { self.pool = pool }

  deinit { giveBack() }

  /// Takes bytes and writes complete blocks.
  /// - Parameters:
  ///   - offset: the file offset of the first byte not yet written.
  ///   - isEnd: whether `bytes` are the last ones.
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
    if count == 0, !isKnownUniquelyReferenced(&block) { giveBack() }
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

  /// Drops the bytes not yet written.
  func drop() { count = 0 }

  /// Writes the remaining bytes.
  func flush<Failure: Error>(_ write: Write<Failure>) throws(Failure) {
    guard count > 0, let block else { return }
    let bytes = UnsafeRawBufferPointer(rebasing: block.memory[..<count])
    count = 0
    try write(bytes, block)
  }
}

/// Reuses memory for blocks. Returning pages to the kernel and getting them back costs as much as writing to them.
final class BlockPool {
  private static let most = 16
  private var free: [Block] = []

  /// A block that nobody else holds: of those that nobody reads any more, the one that came back last, which is most
  /// likely to be in a cache.
  func take() -> Block {
    for index in free.indices.reversed() where isKnownUniquelyReferenced(&free[index]) { return free.remove(at: index) }
    return Block()
  }

  /// Takes a block back, even if somebody still reads it.
  func give(_ block: Block) {
    if free.count < Self.most { free.append(block) }
  }
}
