internal import Glibc
internal import Synchronization

/// A body that runs on a thread of its own, for one that waits for its end later.
///
/// `@unchecked Sendable`: the semaphore's memory never changes, and sem_post(3) is safe from any thread.
final class Background<Failure: Error>: @unchecked Sendable {
  private let result = Mutex<Result<Void, Failure>>(.success(()))
  private let bell = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init(_ body: @escaping @Sendable () throws(Failure) -> Void) {
    sem_init(bell, 0, 0)
    let run: @Sendable () -> Void = {
      do throws(Failure) { try body() } catch { self.result.withLock { $0 = .failure(error) } }
      sem_post(self.bell)
    }
    if Host.current.hasThreads { BlockingThread.run(run) } else { run() }
  }

  deinit {
    sem_destroy(bell)
    bell.deallocate()
  }

  /// Waits for the end, once.
  /// - Throws: what the body has thrown.
  func wait() throws(Failure) {
    while sem_wait(bell) != 0 {}
    try result.withLock { $0 }.get()
  }
}
