/// Lets so many in at a time, in the order in which they came.
@WorkerLoop
final class Turnstile {
  private var free: Int
  private var waiting: [(id: UInt64, continuation: CheckedContinuation<Bool, Never>)] = []

  nonisolated init(_ places: Int) { free = places }

  /// Waits for a place.
  /// - Returns: false if ``sendAway(_:)`` was called first; then it has no place to ``leave()``.
  func enter(_ id: UInt64) async -> Bool {
    if free > 0 {
      free -= 1
      return true
    }
    return await withCheckedContinuation { waiting.append((id, $0)) }
  }

  func leave() {
    if waiting.isEmpty { free += 1 } else { waiting.removeFirst().continuation.resume(returning: true) }
  }

  /// Ends the wait of `id`, if it waits.
  func sendAway(_ id: UInt64) {
    guard let index = waiting.firstIndex(where: { $0.id == id }) else { return }
    waiting.remove(at: index).continuation.resume(returning: false)
  }
}
