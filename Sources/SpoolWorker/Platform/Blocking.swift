internal import Spool

/// Runs a call that may block for long (fsync, reading a large file, waiting for a program) on another thread, so that
/// no transfer waits for it.
///
/// Not on the global executor: libdispatch keeps its threads when the work is done, and writes a line to syslog for
/// each thread that may not get the priority it wants, which only root may.
func runBlocking<Value: Sendable, Failure: Error>(
  _ body: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
  let result = await withCheckedContinuation { continuation in
    Host.current.runOnThread { continuation.resume(returning: Result(catching: body)) }
  }
  return try result.get()
}

/// Questions that a network file system may answer late. Each is asked on a thread, and the loop waits for a moment.
///
/// MooseFS keeps a file that was being written locked for up to two minutes after its host was lost. Whoever reads it
/// waits as long.
final class LateAnswers<Key: Hashable, Value: Sendable> {
  /// Threads that may wait for an answer at the same time. libfuse serves a mount with 10 threads (fuse_loop_mt(3)),
  /// and one more request than that waits behind those without an answer: for a minute nobody on the host could even
  /// list a directory.
  private static var most: Int { 2 }

  private var asked: [Key: Answer<Value>] = [:]

  /// - Parameter patience: milliseconds to wait for the answer if the question is new.
  /// - Returns: nil as long as there is no answer. Ask again later.
  func answer(to key: Key, patience: Int64, _ question: @escaping @Sendable () -> Value) -> Value? {
    let known = asked[key]
    guard let answer = known ?? ask(key, question) else { return nil }
    guard let value = answer.value(within: known == nil ? patience : 0) else { return nil }
    asked[key] = nil
    return value
  }

  /// - Returns: nil if too many questions have no answer.
  private func ask(_ key: Key, _ question: @escaping @Sendable () -> Value) -> Answer<Value>? {
    // Nobody may want some of them any more.
    if asked.count >= Self.most { asked = asked.filter { $0.value.value(within: 0) == nil } }
    guard asked.count < Self.most else { return nil }
    let answer = Answer<Value>()
    asked[key] = answer
    Host.current.runOnThread { answer.give(question()) }
    return answer
  }
}

/// Lets so many in at a time, in the order in which they came.
@WorkerLoop final class AsyncSemaphore {
  private var free: Int
  private var waiting: [(id: UInt64, continuation: CheckedContinuation<Bool, Never>)] = []

  nonisolated init(_ places: Int) { free = places }

  /// - Returns: false if ``sendAway(_:)`` was called first; then it has no place to ``leave()``.
  func enter(_ id: UInt64) async -> Bool {
    if free > 0 {
      free -= 1
      return true
    }
    return await withCheckedContinuation { waiting.append((id, $0)) }
  }

  func leave() { if waiting.isEmpty { free += 1 } else { waiting.removeFirst().continuation.resume(returning: true) } }

  func sendAway(_ id: UInt64) {
    guard let index = waiting.firstIndex(where: { $0.id == id }) else { return }
    waiting.remove(at: index).continuation.resume(returning: false)
  }
}
