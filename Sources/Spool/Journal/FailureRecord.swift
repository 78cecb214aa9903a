package struct FailureRecord: Sendable {
  package let time: Timestamp
  /// Counted from 1; 0 where the text was no job's.
  package let attempt: Int
  package let failure: Failure
  package let trust: Trust
  /// The end of the data; nil where there is none.
  package let mark: Mark?
  package let fetched: UInt64
  package let broken: UInt64?
  /// The time of the next attempt; nil when the job is given up.
  package let retry: Timestamp?

  /// - Parameter retry: nil when the job is given up.
  package init(
    time: Timestamp, attempt: Int, failure: Failure, trust: Trust = .sound, mark: Mark?, fetched: UInt64,
    broken: UInt64? = nil, retry: Timestamp?
  ) {
    (self.time, self.attempt, self.failure, self.trust, self.mark) = (time, attempt, failure, trust, mark)
    (self.fetched, self.broken, self.retry) = (fetched, broken, retry)
  }

  package var fields: Fields { facts(after: Fields("\(time)"), mark?.states) }

  /// What of it is for people: without the time, and without the states of digests.
  package var facts: Fields { facts(after: Fields(), mark?.states.narrowed(to: [])) }

  /// The same of a line that was read.
  package static func facts(of line: Fields) -> Fields {
    line.named.filter { $0.key != DigestStates.field }.reduce(Fields()) { $0.with($1.key, $1.value) }
  }

  private func facts(after head: Fields, _ states: DigestStates?) -> Fields {
    head.with("attempt", attempt).with("class", failure.failureClass.rawValue)
      .with("code", failure.label).with("at", mark?.offset ?? 0).with(states)
      .with("fetched", fetched > 0 ? fetched : nil).with("broken", broken).with("retry", retry)
      .with("burned", failure.burnsAttempt ? nil : "no")
      .with("lost", trust.isLost ? "yes" : failure.code == .io ? "no" : nil)
      .with("doubt", trust.isDoubtful ? "yes" : nil)
      .with("expected", failure.expected).with("found", failure.found).with("line", failure.line)
      .with("mirror", failure.wrongMirror).with("tried", failure.tried).with("reason", failure.reason)
  }
}

/// How far what was written to a job's data is to be trusted (INTERNALS.md, invariant 4).
package enum Trust: Sendable {
  /// Every fsync(2) succeeded.
  case sound
  /// A worker died with the data. An fsync may have failed before it could record that, and the data was not written
  /// again since.
  case doubtful
  /// An fsync failed: the kernel may have dropped what came after the last checkpoint, and counts it as written.
  case lost(SpoolError)

  package var isDoubtful: Bool { if case .doubtful = self { true } else { false } }
  package var isLost: Bool { if case .lost = self { true } else { false } }

  /// - Parameter error: what an fsync of the job's own file failed with.
  package func joined(with error: SpoolError?) -> Trust {
    guard !isLost, let error else { return self }
    return .lost(error)
  }
}

/// An fsync of a job's data, or of its payload, failed.
package struct LostWrites: Error, Sendable {
  package let error: SpoolError

  package init(_ error: SpoolError) { self.error = error }
}
