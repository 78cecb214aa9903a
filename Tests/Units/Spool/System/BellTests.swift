import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Spool

@Suite struct BellTests {
  /// A clock that is set back would make the loop wait as much longer: the kernel waits by that clock if the call of
  /// futex(2) has FUTEX_CLOCK_REALTIME.
  @Test func `a wait does not depend on the time of day`() async throws {
    let bell = Bell()
    let thread = Mutex("")
    let isBegun = BlockingThread.begin {
      let path = realpath("/proc/thread-self", nil)
      thread.withLock { $0 = path.map { String(cString: $0) } ?? "" }
      free(path)
      _ = bell.wait(milliseconds: 300_000)
    }
    try #require(isBegun)
    let operation = Mutex<UInt64?>(nil)
    try await waitUntil("it waits") {
      // The number of the call, its address, its operation.
      let call = try? readFile("\(thread.withLock { $0 })/syscall")
      let fields = call.map { String(decoding: $0, as: UTF8.self).split(separator: " ") } ?? []
      guard fields.count > 3, ["202", "98"].contains(fields[0]) else { return false }
      operation.withLock { $0 = UInt64(fields[2].dropFirst(2), radix: 16) }
      return true
    }
    bell.ring()
    #expect(operation.withLock { $0 }.map { $0 & 256 } == 0)
  }
}
