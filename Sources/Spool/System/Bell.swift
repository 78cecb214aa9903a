internal import CLinux
internal import Glibc

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

  package func wait() {
    if Host.current.takesTurns { _ = waitForTurn(.max) } else { while sem_wait(semaphore) != 0 {} }
  }

  private func waitForTurn(_ most: Int64) -> Bool {
    var left = most
    while sem_trywait(semaphore) != 0 {
      if left <= 0 { return false }
      Host.current.wait(milliseconds: 1)
      left -= 1
    }
    return true
  }

  /// Waits until it rings, or the time is up.
  /// - Returns: whether it rang.
  package func wait(milliseconds: Int64) -> Bool {
    if Host.current.takesTurns { return waitForTurn(milliseconds) }
    var until = timespec()
    clock_gettime(CLOCK_REALTIME, &until)
    until.tv_sec += Int(milliseconds / 1000)
    until.tv_nsec += Int(milliseconds % 1000) * 1_000_000
    if until.tv_nsec >= 1_000_000_000 {
      until.tv_sec += 1
      until.tv_nsec -= 1_000_000_000
    }
    while sem_timedwait(semaphore, &until) != 0 {
      if errno != EINTR { return false }
    }
    return true
  }
}
