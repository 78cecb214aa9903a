internal import Spool
internal import Synchronization

/// Makes a call for each item of a sequence, several at a time, and hands the results over in the order of the items.
///
/// `@unchecked Sendable`: the sequence is asked under the lock.
final class OrderedCalls<Item: Sendable, Value: Sendable>: @unchecked Sendable {
  private struct State {
    /// How many items there were so far, and whether these are all.
    var count = 0
    var isExhausted = false
    var taken = 0
    /// Without any, who takes the results makes the calls.
    var threads = 0
    var results: [Int: Value] = [:]
  }

  private let state = Mutex(State())
  private let items: () -> Item?
  private let call: @Sendable (Item) -> Value
  private let bell = Bell()

  /// - Parameter items: the next item, on any thread but one at a time; nil at the end.
  /// - Parameter width: how many calls run at a time.
  init(_ items: @escaping () -> Item?, width: Int, _ call: @escaping @Sendable (Item) -> Value) {
    self.items = items
    self.call = call
    for _ in 0..<width where BlockingThread.begin({ self.work() }) { state.withLock { $0.threads += 1 } }
  }

  private func work() {
    while callNext() { bell.ring() }
    // Whoever waits for a result may wait in vain.
    bell.ring()
  }

  /// - Returns: whether there was an item left.
  private func callNext() -> Bool {
    guard let (number, item) = state.withLock({ next(&$0) }) else { return false }
    let value = call(item)
    state.withLock { $0.results[number] = value }
    return true
  }

  private func next(_ state: inout State) -> (Int, Item)? {
    guard !state.isExhausted, let item = items() else {
      state.isExhausted = true
      return nil
    }
    defer { state.count += 1 }
    return (state.count, item)
  }

  var isOver: Bool { state.withLock { $0.isExhausted && $0.taken == $0.count } }

  /// The results that are next in order; none if none of them comes within the time.
  func take(within milliseconds: Int) -> [Value] {
    if state.withLock({ $0.threads }) == 0 {
      _ = callNext()
      return state.withLock { ready(&$0) }
    }
    let until = Host.current.milliseconds() + Int64(milliseconds)
    // Each result rings; those that were taken with an earlier one have rung in vain.
    while bell.wait(milliseconds: max(0, until - Host.current.milliseconds())) {
      let values = state.withLock { ready(&$0) }
      if !values.isEmpty || isOver { return values }
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
