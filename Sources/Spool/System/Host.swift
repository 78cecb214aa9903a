internal import CLinux
internal import Glibc
internal import Synchronization

/// What a process has of its host besides the ``Kernel`` of its files: clocks, threads, chance. A test puts a simulated
/// host in its place, and overrides all of it.
///
/// `@unchecked Sendable`: it has no state.
package class Host: @unchecked Sendable {
  @TaskLocal package static var current = Host()

  /// Seconds since the epoch, by the wall clock.
  package func now() -> Int64 { wallMilliseconds() / 1000 }

  package func wallMilliseconds() -> Int64 { Self.milliseconds(of: CLOCK_REALTIME) }

  /// It also counts the time that the machine slept, and never jumps.
  package func milliseconds() -> Int64 { Self.milliseconds(of: CLOCK_BOOTTIME) }

  /// The same without the time that the machine slept: for limits of what goes on only while it is awake.
  package func awakeMilliseconds() -> Int64 { Self.milliseconds(of: CLOCK_MONOTONIC) }

  package func wait(milliseconds: Int) { usleep(UInt32(milliseconds * 1000)) }

  /// Whether threads take turns, so that none may block until another one has done something. Such a thread waits for a
  /// while, and looks again.
  package var takesTurns: Bool { false }

  /// Runs `body` on another thread, for which no thread waits.
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

/// What another thread or task finds out.
package final class Answer<Value: Sendable>: Sendable {
  private let given = Mutex<Value?>(nil)
  private let bell = Bell()

  package init() {}

  package func give(_ value: Value) {
    given.withLock { $0 = value }
    bell.ring()
  }

  /// - Parameter patience: in milliseconds.
  package func value(within patience: Int64) -> Value? {
    if patience > 0 { _ = bell.waitInTurn(milliseconds: patience) }
    return given.withLock { $0 }
  }

  convenience init<Failure: Error>(of body: @escaping @Sendable () throws(Failure) -> Void)
  where Value == Result<Void, Failure> {
    self.init()
    Host.current.runOnThread { self.give(Result(catching: body)) }
  }

  /// Waits for the end of the body, once.
  func wait<Failure: Error>() throws(Failure) where Value == Result<Void, Failure> { try value(within: .max)?.get() }
}
