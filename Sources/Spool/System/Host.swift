internal import CLinux
internal import Glibc
internal import Synchronization

/// What a process has of its host besides the ``Kernel`` of its files: clocks, threads, chance. A test puts a simulated
/// host in its place.
package protocol HostServices: Sendable {
  /// Seconds since the epoch, by the wall clock.
  func now() -> Int64
  func wallMilliseconds() -> Int64
  /// CLOCK_BOOTTIME (clock_gettime(2)), in milliseconds: it also counts the time that the machine slept, and never
  /// jumps.
  func milliseconds() -> Int64
  /// How much of it the machine slept: what CLOCK_MONOTONIC does not count.
  func asleepMilliseconds() -> Int64
  /// Blocks the thread.
  func wait(milliseconds: Int)
  /// Whether threads take turns, so that none may block until another one has done something. Such a thread waits for a
  /// while, and looks again.
  var takesTurns: Bool { get }
  /// Runs `body` on another thread, for which no thread waits.
  func runOnThread(_ body: @escaping @Sendable () -> Void)
  func random() -> UInt64
}

package struct Host: HostServices {
  @TaskLocal package static var current: any HostServices = Host()

  package func now() -> Int64 { wallMilliseconds() / 1000 }

  package func wallMilliseconds() -> Int64 { Self.milliseconds(of: CLOCK_REALTIME) }

  package func milliseconds() -> Int64 { Self.milliseconds(of: CLOCK_BOOTTIME) }

  package func asleepMilliseconds() -> Int64 {
    Self.milliseconds(of: CLOCK_BOOTTIME) - Self.milliseconds(of: CLOCK_MONOTONIC)
  }

  package func wait(milliseconds: Int) { usleep(UInt32(milliseconds * 1000)) }

  package let takesTurns = false

  package func runOnThread(_ body: @escaping @Sendable () -> Void) { BlockingThread.run(body) }

  package func random() -> UInt64 {
    var generator = SystemRandomNumberGenerator()
    return generator.next()
  }

  private static func milliseconds(of id: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(id, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}

package struct HostRandom: RandomNumberGenerator {
  package init() {}

  package func next() -> UInt64 { Host.current.random() }
}

extension Bell {
  /// Waits until it rings, or the time is up, also where threads take turns.
  /// - Returns: whether it rang.
  package func waitInTurn(milliseconds: Int64 = .max) -> Bool {
    if !Host.current.takesTurns {
      if milliseconds < .max { return wait(milliseconds: milliseconds) }
      wait()
      return true
    }
    var left = milliseconds
    while !hasRung() {
      if left <= 0 { return false }
      Host.current.wait(milliseconds: 1)
      left -= 1
    }
    return true
  }
}

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
    _ = bell.waitInTurn()
    try result.withLock { $0 }.get()
  }
}
