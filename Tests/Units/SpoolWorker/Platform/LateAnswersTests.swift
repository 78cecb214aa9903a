import Synchronization
import Testing

@testable import Spool
@testable import SpoolWorker

/// Answers of a file system that makes whoever asks wait.
@Suite struct LateAnswersTests {
  @Test func anAnswerIsThereAtOnceOrLater() {
    let answers = LateAnswers<String, Int>()
    #expect(answers.answer(to: "quick", patience: 60_000) { 7 } == 7)
    let lock = Bell()
    let asked = Mutex(0)
    let question: @Sendable () -> Int = {
      lock.wait()
      return asked.withLock { count in
        count += 1
        return count
      }
    }
    #expect(answers.answer(to: "locked", patience: 1, question) == nil)
    #expect(answers.answer(to: "locked", patience: 60_000, question) == nil, "who asks again does not wait")
    lock.ring()
    var answer: Int?
    while answer == nil { answer = answers.answer(to: "locked", patience: 0, question) }
    #expect(answer == 1)
    lock.ring()
    #expect(answers.answer(to: "locked", patience: 60_000, question) == 2, "it is asked anew")
  }

  /// Each open question has a thread, here and in the file system's process.
  @Test func openQuestionsAreFew() {
    let answers = LateAnswers<Int, Int>()
    let lock = Bell()
    let locked: @Sendable () -> Int = {
      lock.wait()
      return 0
    }
    for number in 0..<2 { #expect(answers.answer(to: number, patience: 0, locked) == nil) }
    #expect(answers.answer(to: 2, patience: 60_000) { 1 } == nil)
    // Nobody asks for this answer any more.
    lock.ring()
    var answer: Int?
    while answer == nil { answer = answers.answer(to: 2, patience: 60_000) { 1 } }
    for _ in 1..<2 { lock.ring() }
  }
}
