internal import CLinux
internal import Glibc
internal import Spool
internal import Synchronization

/// Makes one call for each number from 0 on, several at a time, and hands the results over in the order of the numbers.
///
/// `@unchecked Sendable`: the semaphore's memory never changes, and sem_post(3) is safe from any thread.
final class OrderedCalls<Value: Sendable>: @unchecked Sendable {
  private struct State {
    var next = 0
    var taken = 0
    var results: [Int: Value] = [:]
  }

  private let state = Mutex(State())
  private let count: Int
  private let call: @Sendable (Int) -> Value
  private let bell = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  /// - Parameters:
  ///   - count: of the calls.
  ///   - width: how many run at a time.
  init(_ count: Int, width: Int, _ call: @escaping @Sendable (Int) -> Value) {
    self.count = count
    self.call = call
    sem_init(bell, 0, 0)
    for _ in 0..<min(width, count) { BlockingThread.run { self.work() } }
  }

  deinit {
    sem_destroy(bell)
    bell.deallocate()
  }

  private func work() {
    while let number = state.withLock({ next(&$0) }) {
      let value = call(number)
      state.withLock { $0.results[number] = value }
      sem_post(bell)
    }
  }

  private func next(_ state: inout State) -> Int? {
    guard state.next < count else { return nil }
    defer { state.next += 1 }
    return state.next
  }

  var isOver: Bool { state.withLock { $0.taken == count } }

  /// The results that are next in order; none if none of them comes within the time.
  func take(within milliseconds: Int) -> [Value] {
    var until = timespec()
    clock_gettime(CLOCK_REALTIME, &until)
    until.tv_nsec += milliseconds % 1000 * 1_000_000
    until.tv_sec += milliseconds / 1000 + until.tv_nsec / 1_000_000_000
    until.tv_nsec %= 1_000_000_000
    // Each result rings; those that were taken with an earlier one have rung in vain.
    while sem_timedwait(bell, &until) == 0 {
      let values = state.withLock { ready(&$0) }
      if !values.isEmpty { return values }
    }
    return state.withLock { ready(&$0) }
  }

  private func ready(_ state: inout State) -> [Value] {
    var values: [Value] = []
    while let value = state.results.removeValue(forKey: state.taken) {
      values.append(value)
      state.taken += 1
    }
    return values
  }
}
