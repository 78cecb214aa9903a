internal import Glibc

/// Computes digests on another thread than the one that brings the bytes. Blocks go over in order. A few wait at most;
/// then whoever brings more waits too, so that a slow digest takes time and no memory.
///
/// `@unchecked Sendable`: `lock` guards all but `hashes`, which the thread has from the time that `isRunning` is set
/// until it is unset, and otherwise the one that brings the bytes.
final class HashingQueue: @unchecked Sendable {
  /// In bytes; as the data is written (`BlockBuffer`).
  static let blockSize = 256 << 10
  /// Blocks that may wait: 2 MiB, a few milliseconds of a digest.
  static let mostBlocks = 8
  /// To hand fewer bytes over takes longer than to compute their digest.
  private static let small = 32 << 10

  private struct Block {
    let memory: UnsafeMutableRawBufferPointer
    var count = 0
  }

  private var hashes: [HashState]
  private var waiting: [Block] = []
  /// Memory to use again.
  private var free: [Block] = []
  private var isRunning = false
  private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

  init(_ hashes: [HashState]) {
    self.hashes = hashes
    pthread_mutex_init(lock, nil)
    pthread_cond_init(changed, nil)
  }

  deinit {
    for block in free { block.memory.deallocate() }
    pthread_cond_destroy(changed)
    pthread_mutex_destroy(lock)
    changed.deallocate()
    lock.deallocate()
  }

  /// Takes bytes in; may wait until the thread has taken others.
  func update(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes
    while !rest.isEmpty {
      let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(Self.blockSize))
      if !takeSmall(piece) { handOver(piece) }
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(piece.count))
    }
  }

  private func takeSmall(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count <= Self.small, !(withLock { isRunning }) else { return false }
    compute(bytes)
    return true
  }

  private func handOver(_ bytes: UnsafeRawBufferPointer) {
    var block =
      withLock {
        while waiting.count >= Self.mostBlocks { pthread_cond_wait(changed, lock) }
        return free.popLast()
      } ?? Block(memory: .allocate(byteCount: Self.blockSize, alignment: 4096))
    block.memory.copyMemory(from: bytes)
    block.count = bytes.count
    let wasRunning = withLock {
      waiting.append(block)
      defer { isRunning = true }
      return isRunning
    }
    if !wasRunning { BlockingThread.run { self.work() } }
  }

  /// On the thread, until nothing waits.
  private func work() {
    while let block = withLock({ next() }) {
      compute(UnsafeRawBufferPointer(rebasing: block.memory[..<block.count]))
      withLock {
        free.append(block)
        pthread_cond_signal(changed)
      }
    }
  }

  private func next() -> Block? {
    if !waiting.isEmpty { return waiting.removeFirst() }
    isRunning = false
    pthread_cond_signal(changed)
    return nil
  }

  private func compute(_ bytes: UnsafeRawBufferPointer) {
    for index in hashes.indices { hashes[index].update(bytes) }
  }

  /// The digests of all bytes so far; waits for them, and gives the memory back.
  func finish() -> [HashState] {
    withLock {
      while isRunning { pthread_cond_wait(changed, lock) }
      for block in free { block.memory.deallocate() }
      free = []
    }
    return hashes
  }

  private func withLock<Result>(_ body: () -> Result) -> Result {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    return body()
  }
}
