internal import Spool

/// An output for which a job waits, because another job has it.
struct AwaitedOutput: Equatable {
  let output: String
  /// The other job's name.
  let other: FileName
  /// When to look again.
  let until: Timestamp

  /// Seconds between two looks at the least. At random, so that of two workers which see each other's claims one goes
  /// first.
  private static let pause: ClosedRange<Int64> = 2...6
  /// Seconds until another look at the latest: a person may have the other job run earlier than planned.
  private static let longestPause: Int64 = 300

  /// - Parameters:
  ///   - now: the time by ``Spool/now()``.
  ///   - next: when the other job runs next; nil for now.
  init(_ output: String, of other: FileName, now: Timestamp, next: Timestamp? = nil) {
    (self.output, self.other) = (output, other)
    var random = HostRandom()
    until = min(max(next ?? now, now) + .random(in: Self.pause, using: &random), now + Self.longestPause)
  }

  /// For the journal.
  var reason: String { "waits for \(other.display), which has its output" }

  /// For the log.
  var facts: Fields { Fields().with("output", output).with("other", other.display) }
}

extension Claim {
  /// Parks the job until another one is done with its output. The first time its journal says so: what the other one
  /// publishes later may be what this job is for (``OutputPublisher/sharedPayload()``).
  /// - Throws: ``SpoolError``.
  func wait(for awaited: AwaitedOutput) throws(SpoolError) {
    if text.journal.knownSince == nil {
      let mark = text.journal.data.softMark ?? .zero
      do throws(SpoolError) {
        let broken = text.journal.data.brokenFrom
        try append(
          .interrupted(.now(), attempt: 1, mark: mark, fetched: 0, broken: broken, reason: awaited.reason))
      } catch  where error.isLackOfSpace {
        // The move needs no space.
      }
    }
    try park(until: awaited.until)
  }
}
