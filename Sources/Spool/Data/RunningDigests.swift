internal import Glibc

/// The digests of data while it grows. CRC-32 is computed at once, while the bytes are in the processor's cache. The
/// other digests take several times as long, and get a thread.
final class RunningDigests {
  private var atOnce: [HashState]
  private let beside: HashingQueue?

  init(_ states: DigestStates) {
    atOnce = states.all.filter { $0.algorithm == .crc32 }
    let others = states.all.filter { $0.algorithm != .crc32 }
    beside = others.isEmpty && states.pieces == nil ? nil : HashingQueue(others, states.pieces)
  }

  /// - Parameter block: see ``PartFile/append(_:in:)``.
  func update(_ bytes: UnsafeRawBufferPointer, in block: Block?) {
    beside?.update(bytes, in: block)
    for index in atOnce.indices { atOnce[index].update(bytes) }
  }

  var isFull: Bool { beside?.isFull ?? false }

  /// Those of all bytes so far; waits for the thread.
  var states: DigestStates {
    guard let beside else { return DigestStates(atOnce) }
    return DigestStates(atOnce + beside.finish(), beside.pieces)
  }

  /// What is known of the pieces by now, which may be some blocks behind.
  var wrongPieces: WrongPieces { beside?.wrongPieces ?? WrongPieces() }
}

/// Memory for bytes that are about to be written and hashed. All of its holders may read it; only one that holds it
/// alone may write to it (`isKnownUniquelyReferenced`).
///
/// `@unchecked Sendable`: that rule.
package final class Block: @unchecked Sendable {
  /// In bytes.
  package static let size = 256 << 10

  /// ``size`` bytes, at a page's boundary.
  package let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: Block.size, alignment: 4096)

  /// The memory has no defined content.
  package init() {}

  deinit { memory.deallocate() }
}

/// Computes digests on another thread than the one that brings the bytes. Blocks go over in order. A few wait at most;
/// then whoever brings more waits too, so that a slow digest takes time and no memory.
///
/// `@unchecked Sendable`: `lock` guards all but `digests` and `pieces`, which the thread has from the time that
/// `isRunning` is set until it is unset, and otherwise the one that brings the bytes.
final class HashingQueue: @unchecked Sendable {
  /// Blocks that may wait: 2 MiB, a few milliseconds of a digest.
  private static let mostBlocks = 8
  /// To hand fewer bytes over takes longer than to compute their digest.
  private static let small = 32 << 10

  /// Bytes, and the block that keeps them in memory.
  private typealias Piece = (block: Block, bytes: UnsafeRawBufferPointer)

  private var digests: [HashState]
  /// To be read after ``finish()``.
  private(set) var pieces: PieceState?
  private var wrong = WrongPieces()
  private var waiting: [Piece] = []
  private var isRunning = false
  private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

  init(_ digests: [HashState], _ pieces: PieceState? = nil) {
    (self.digests, self.pieces) = (digests, pieces)
    wrong = WrongPieces(pieces)
    pthread_mutex_init(lock, nil)
    pthread_cond_init(changed, nil)
  }

  deinit {
    pthread_cond_destroy(changed)
    pthread_mutex_destroy(lock)
    changed.deallocate()
    lock.deallocate()
  }

  /// Takes bytes in; may wait until the thread has taken others.
  /// - Parameter block: the memory that they are in; nil for other memory, from which they are copied.
  func update(_ bytes: UnsafeRawBufferPointer, in block: Block? = nil) {
    if let block {
      if !takeSmall(bytes) { handOver((block, bytes)) }
      return
    }
    var rest = bytes
    while !rest.isEmpty {
      let bytes = UnsafeRawBufferPointer(rebasing: rest.prefix(Block.size))
      if !takeSmall(bytes) { handOver(copy(bytes)) }
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(bytes.count))
    }
  }

  /// Only a few blocks have room. Whoever stops now need not wait.
  var isFull: Bool { withLock { waiting.count + 2 >= Self.mostBlocks } }

  private func copy(_ bytes: UnsafeRawBufferPointer) -> Piece {
    let block = Block()
    block.memory.copyMemory(from: bytes)
    return (block, UnsafeRawBufferPointer(rebasing: block.memory[..<bytes.count]))
  }

  private func takeSmall(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count <= Self.small, !(withLock { isRunning }) else { return false }
    compute(bytes)
    withLock { wrong = WrongPieces(pieces) }
    return true
  }

  private func handOver(_ piece: Piece) {
    let wasRunning = withLock {
      while waiting.count >= Self.mostBlocks { waitForChange() }
      waiting.append(piece)
      defer { isRunning = true }
      return isRunning
    }
    if !wasRunning { Host.current.runOnThread { self.work() } }
  }

  /// With the lock, which it gives away meanwhile.
  private func waitForChange() {
    if !Host.current.takesTurns {
      pthread_cond_wait(changed, lock)
      return
    }
    pthread_mutex_unlock(lock)
    Host.current.wait(milliseconds: 1)
    pthread_mutex_lock(lock)
  }

  private func compute(_ bytes: UnsafeRawBufferPointer) {
    for index in digests.indices { digests[index].update(bytes) }
    pieces?.update(bytes)
  }

  /// On the thread, until nothing waits.
  private func work() {
    while let piece = withLock({ next() }) { withExtendedLifetime(piece.block) { compute(piece.bytes) } }
  }

  private func next() -> Piece? {
    wrong = WrongPieces(pieces)
    // Whoever waits wants room for another piece, or the end.
    pthread_cond_signal(changed)
    if !waiting.isEmpty { return waiting.removeFirst() }
    isRunning = false
    return nil
  }

  /// Of all bytes so far; waits for them.
  func finish() -> [HashState] {
    withLock { while isRunning { waitForChange() } }
    return digests
  }

  var wrongPieces: WrongPieces { withLock { wrong } }

  private func withLock<Result>(_ body: () -> Result) -> Result {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    return body()
  }
}
