import Glibc

/// How many times longer than usual a test waits before it says that something hangs; `scripts/sanitize` asks for more.
let patience = getenv("SPOOLRUN_TEST_PATIENCE").flatMap { Int(String(cString: $0)) } ?? 1

/// How long a test waits for what has to happen, before it says that it does not. All tests begin at once, and a
/// machine may have other work: it only costs time where something hangs.
package let untilItHangs = Duration.seconds(300)

/// Waits until `condition` holds: for what no descriptor tells, such as a directory entry that another process makes.
/// It is asked every few milliseconds, or after each `interval`, on a thread of its own, so that a busy pool of Swift's
/// delays nothing. Throws, with what was waited for, when it doesn't hold in time.
package func waitUntil(
  _ what: String, timeout: Duration = untilItHangs, every interval: Duration = .milliseconds(3),
  _ condition: @escaping @Sendable () throws -> Bool
) async throws {
  let deadline = ContinuousClock.now + timeout * patience
  try await onThread {
    while try !condition() {
      guard ContinuousClock.now < deadline else { throw TestSupportError("waited \(timeout) in vain: \(what)") }
      usleep(UInt32(interval / .microseconds(1)))
    }
  }
}

/// Lets at most `count` tasks at a time into `withSlot`: processes that all start at once on two cores
/// would take the time that tests of time-outs measure.
package actor Slots {
  private var free: Int
  private var queue: [CheckedContinuation<Void, Never>] = []

  package init(_ count: Int) {
    free = count
  }

  package func withSlot<Result: Sendable>(_ body: @Sendable () async throws -> Result) async throws -> Result {
    if free > 0 {
      free -= 1
    } else {
      await withCheckedContinuation { queue.append($0) }
    }
    defer {
      if queue.isEmpty { free += 1 } else { queue.removeFirst().resume() }
    }
    return try await body()
  }
}
