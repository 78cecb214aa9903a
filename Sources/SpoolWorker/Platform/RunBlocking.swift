internal import CLinux
internal import Glibc
internal import Synchronization

/// Runs a call that may block for long (fsync, reading a large file, waiting for a program) on a thread of its own, so that no transfer waits for it.
///
/// Not on the global executor: libdispatch's threads stay when the work is done, and each that may not have the priority it wants, as nobody but
/// root may, is a line in syslog.
func runBlocking<Value: Sendable, Failure: Error>(
  _ body: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
  let result = await withCheckedContinuation { continuation in
    BlockingThread.run { continuation.resume(returning: Result(catching: body)) }
  }
  return try result.get()
}

/// A thread for one body after another: to make one for each costs more than many of the calls that are sent to it.
///
/// `@unchecked Sendable`: `body` passes between two threads by way of the bell and the lock of ``idle``.
private final class BlockingThread: @unchecked Sendable {
  /// What is offloaded keeps its buffers on the heap.
  private static let stackSize = 512 << 10
  /// Seconds after which a thread that has nothing to do ends.
  private static let patience = 1
  private static let idle = Mutex<[BlockingThread]>([])

  private var body: (@Sendable () -> Void)?
  private let bell = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  static func run(_ body: @escaping @Sendable () -> Void) {
    let thread = idle.withLock { $0.popLast() }
    if let thread {
      thread.body = body
      sem_post(thread.bell)
    } else {
      BlockingThread(body).start()
    }
  }

  private init(_ body: @escaping @Sendable () -> Void) {
    self.body = body
    sem_init(bell, 0, 0)
  }

  deinit {
    sem_destroy(bell)
    bell.deallocate()
  }

  private func work() {
    while let body {
      body()
      self.body = nil
      Self.idle.withLock { $0.append(self) }
      if waits() { continue }
      let isOver = Self.idle.withLock { idle in
        guard let index = idle.firstIndex(where: { $0 === self }) else { return false }
        idle.remove(at: index)
        return true
      }
      if isOver { return }
      // Somebody has just taken it off the list, and rings.
      while sem_wait(bell) != 0 {}
    }
  }

  /// Whether the bell rang while there was patience.
  private func waits() -> Bool {
    var until = timespec()
    clock_gettime(CLOCK_REALTIME, &until)
    until.tv_sec += Self.patience
    while sem_timedwait(bell, &until) != 0 {
      if errno != EINTR { return false }
    }
    return true
  }

  private func start() {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    pthread_attr_setstacksize(&attributes, Self.stackSize)
    var thread = pthread_t()
    let this = Unmanaged.passRetained(self)
    let code = pthread_create(
      &thread, &attributes,
      { argument in
        guard let argument else { return nil }
        Unmanaged<BlockingThread>.fromOpaque(argument).takeRetainedValue().work()
        return nil
      }, this.toOpaque())
    if code != 0 {
      // No more threads to be had (EAGAIN): then the transfers wait for this one.
      this.release()
      body?()
    }
  }
}
