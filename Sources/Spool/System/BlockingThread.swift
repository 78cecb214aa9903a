internal import CLinux
internal import Glibc
internal import Synchronization

/// A thread that runs one body after another. Creating a thread for each would cost more than many of the calls.
///
/// `@unchecked Sendable`: the bell and the lock of ``idle`` order the accesses of two threads to `body`.
package final class BlockingThread: @unchecked Sendable {
  /// Small, because the bodies have their buffers on the heap.
  private static let stackSize = 512 << 10
  /// Milliseconds after which an idle thread ends.
  private static let patience: Int64 = 1000
  private static let idle = Mutex<[BlockingThread]>([])

  private var body: (@Sendable () -> Void)?
  private let bell = Bell()

  /// Runs `body` on a thread that has nothing else to do, or on this one if no thread is available: then the transfers
  /// wait.
  package static func run(_ body: @escaping @Sendable () -> Void) { if !begin(body) { body() } }

  /// Runs `body` on a thread that has nothing else to do.
  /// - Returns: whether there is one (pthread_create(3), EAGAIN).
  package static func begin(_ body: @escaping @Sendable () -> Void) -> Bool {
    guard let thread = idle.withLock({ $0.popLast() }) else { return BlockingThread(body).start() }
    thread.body = body
    thread.bell.ring()
    return true
  }

  private init(_ body: @escaping @Sendable () -> Void) { self.body = body }

  private func work() {
    while let body {
      body()
      self.body = nil
      Self.idle.withLock { $0.append(self) }
      if bell.wait(milliseconds: Self.patience) { continue }
      let isOver = Self.idle.withLock { idle in
        guard let index = idle.firstIndex(where: { $0 === self }) else { return false }
        idle.remove(at: index)
        return true
      }
      if isOver { return }
      // Another thread has just taken it off the list, and rings.
      bell.wait()
    }
  }

  private func start() -> Bool {
    let attributes = UnsafeMutablePointer<pthread_attr_t>.allocate(capacity: 1)
    pthread_attr_init(attributes)
    defer {
      pthread_attr_destroy(attributes)
      attributes.deallocate()
    }
    pthread_attr_setdetachstate(attributes, Int32(PTHREAD_CREATE_DETACHED))
    pthread_attr_setstacksize(attributes, Self.stackSize)
    var thread = pthread_t()
    let this = Unmanaged.passRetained(self)
    let code = pthread_create(
      &thread, attributes,
      { argument in
        guard let argument else { return nil }
        // One that began before the program watches for signals would still take them.
        spoolrun_block_signals()
        Unmanaged<BlockingThread>.fromOpaque(argument).takeRetainedValue().work()
        return nil
      }, this.toOpaque())
    if code != 0 { this.release() }
    return code == 0
  }
}

/// Wakes a thread that waits for it: a semaphore (sem_overview(7)).
///
/// `@unchecked Sendable`: threads share the semaphore, which is made for that.
package final class Bell: @unchecked Sendable {
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  package init() { sem_init(semaphore, 0, 0) }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  /// Ends one wait, or the next one at once.
  package func ring() { sem_post(semaphore) }

  package func wait() { while sem_wait(semaphore) != 0 {} }

  func hasRung() -> Bool { sem_trywait(semaphore) == 0 }

  package func wait(milliseconds: Int64) -> Bool {
    var until = timespec()
    clock_gettime(CLOCK_MONOTONIC, &until)
    until.tv_sec += Int(milliseconds / 1000)
    until.tv_nsec += Int(milliseconds % 1000) * 1_000_000
    if until.tv_nsec >= 1_000_000_000 {
      until.tv_sec += 1
      until.tv_nsec -= 1_000_000_000
    }
    while spoolrun_sem_wait(semaphore, &until) != 0 { if errno != EINTR { return false } }
    return true
  }
}
