/// Gathers what libcurl brings in pieces of at most 16 KiB into blocks that begin and end at multiples of their size. To write 1 GiB so takes less than half the
/// time of the pieces as they come, at odd offsets: each of those touches a page of the page cache that the one before it has touched.
final class BlockBuffer {
  static let size = 256 << 10

  private let pool: BlockPool
  private var memory: UnsafeMutableRawBufferPointer?
  /// Bytes that wait to be written.
  private(set) var count = 0

  init(_ pool: BlockPool = BlockPool()) { self.pool = pool }

  deinit { giveBack() }

  /// Takes bytes in, and writes whole blocks.
  /// - Parameters:
  ///   - offset: where those that wait begin.
  ///   - isEnd: nothing comes after `bytes`.
  /// - Throws: what `write` throws; what waits is dropped then, as nothing may be written behind a gap.
  func take<Failure: Error>(
    _ bytes: UnsafeRawBufferPointer, at offset: UInt64, isEnd: Bool,
    write: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    var rest = bytes
    var offset = offset + UInt64(count)
    while !rest.isEmpty {
      let room = Self.size - Int(offset % UInt64(Self.size))
      // Whole blocks, and a small body that is all there is, need no copy.
      let isDirect = count == 0 && (rest.count >= room || isEnd)
      let length =
        isDirect && isEnd
        ? rest.count : isDirect ? room + (rest.count - room) / Self.size * Self.size : min(rest.count, room)
      let piece = UnsafeRawBufferPointer(rebasing: rest[..<length])
      if isDirect {
        try write(piece)
      } else {
        gather(piece)
        if length == room { try flush(write) }
      }
      offset += UInt64(length)
      rest = UnsafeRawBufferPointer(rebasing: rest[length...])
    }
  }

  private func gather(_ bytes: UnsafeRawBufferPointer) {
    let memory = self.memory ?? pool.take()
    self.memory = memory
    UnsafeMutableRawBufferPointer(rebasing: memory[count...]).copyMemory(from: bytes)
    count += bytes.count
  }

  /// Lets go of the memory: a job in its commit needs none.
  func giveBack() {
    if let memory { pool.give(memory) }
    memory = nil
  }

  /// Forgets what waits.
  func drop() { count = 0 }

  /// Writes what waits.
  func flush<Failure: Error>(_ write: (UnsafeRawBufferPointer) throws(Failure) -> Void) throws(Failure) {
    guard count > 0, let memory else { return }
    let bytes = UnsafeRawBufferPointer(rebasing: memory[..<count])
    count = 0
    try write(bytes)
  }
}

/// Memory for blocks, used again: pages that are given back to the kernel cost as much as writing to them.
final class BlockPool {
  private static let most = 16
  private var free: [UnsafeMutableRawBufferPointer] = []

  deinit { for memory in free { memory.deallocate() } }

  func take() -> UnsafeMutableRawBufferPointer {
    free.popLast() ?? .allocate(byteCount: BlockBuffer.size, alignment: 4096)
  }

  func give(_ memory: UnsafeMutableRawBufferPointer) {
    if free.count < Self.most { free.append(memory) } else { memory.deallocate() }
  }
}
