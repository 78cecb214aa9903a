internal import Spool
internal import Synchronization

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

  /// - Parameters:
  ///   - patience: milliseconds to wait for the answer if the question is new.
  ///   - question: runs on another thread.
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
    if Host.current.hasThreads { BlockingThread.run { answer.give(question()) } } else { answer.give(question()) }
    return answer
  }
}

private final class Answer<Value: Sendable>: Sendable {
  private let given = Mutex<Value?>(nil)
  private let bell = Bell()

  func give(_ value: Value) {
    given.withLock { $0 = value }
    bell.ring()
  }

  /// - Parameter patience: in milliseconds.
  func value(within patience: Int64) -> Value? {
    if patience > 0 { _ = bell.wait(milliseconds: patience) }
    return given.withLock { $0 }
  }
}
