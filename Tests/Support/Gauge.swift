import Synchronization

/// How many are inside at a time, and the most there ever were.
package final class Gauge: Sendable {
  private let state = Mutex((now: 0, most: 0, total: 0))

  package init() {}

  package func enter() {
    state.withLock { state in
      state.now += 1
      state.total += 1
      state.most = max(state.most, state.now)
    }
  }
  private func leave() { state.withLock { $0.now -= 1 } }
  /// Counts one while `body` lasts. What answers a request must end its answer behind that: the next request may come
  /// before the server's thread goes on.
  package func hold<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) {
    enter()
    defer { leave() }
    try body()
  }
  package var now: Int { state.withLock { $0.now } }
  package var most: Int { state.withLock { $0.most } }
  package var total: Int { state.withLock { $0.total } }
}
