internal import CLinux
internal import Glibc

/// Runs a call that may block for long (fsync, reading a large file, waiting for a program) on a thread of its own, so that no transfer waits for it.
///
/// Not on the global executor: libdispatch's threads stay when the work is done, and each that may not have the priority it wants, as nobody but
/// root may, is a line in syslog.
func offload<Value: Sendable, Failure: Error>(
  _ body: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
  let result = await withCheckedContinuation { continuation in
    BlockingThread { continuation.resume(returning: Result(catching: body)) }.start()
  }
  return try result.get()
}

private final class BlockingThread: Sendable {
  /// What is offloaded keeps its buffers on the heap.
  private static let stackSize = 512 << 10

  private let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) { self.body = body }

  func start() {
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
        Unmanaged<BlockingThread>.fromOpaque(argument).takeRetainedValue().body()
        return nil
      }, this.toOpaque())
    if code != 0 {
      // No more threads to be had (EAGAIN): then the transfers wait for this one.
      this.release()
      body()
    }
  }
}
