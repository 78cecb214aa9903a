internal import Synchronization

/// A body that runs on a thread of its own, for one that waits for its end later.
final class Background<Failure: Error>: Sendable {
  private let result = Mutex<Result<Void, Failure>>(.success(()))
  private let bell = Bell()

  init(_ body: @escaping @Sendable () throws(Failure) -> Void) {
    Host.current.runOnThread {
      do throws(Failure) { try body() } catch { self.result.withLock { $0 = .failure(error) } }
      self.bell.ring()
    }
  }

  /// Waits for the end, once.
  /// - Throws: what the body has thrown.
  func wait() throws(Failure) {
    bell.wait()
    try result.withLock { $0 }.get()
  }
}
