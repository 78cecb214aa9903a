import Synchronization

/// Counts from 1 on, whoever asks.
package final class Counter: Sendable {
  private let value = Atomic(0)

  package init() {}

  /// 1, 2, 3, …
  package func next() -> Int { value.add(1, ordering: .relaxed).newValue }
  /// How often it was asked.
  package var current: Int { value.load(ordering: .relaxed) }
}
