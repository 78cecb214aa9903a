internal import Spool

/// Why a running attempt is stopped.
enum JobStop: Error {
  /// The worker was told to stop.
  case shutdown
  /// The download was stopped. Only its attempt knows why.
  case cancelled
  /// The claim is no longer this worker's.
  case notOurs(Claim.Ownership)
  /// Less than `--min-free` would be left, so the job waits for space.
  case noSpace(String)
  /// The output root is missing or must not be published to, so the job waits for it.
  case noOutput(String)
  /// A job of high priority needs the slot of this one, which is of low priority.
  case outranked
  /// Another job has published a file at the output, and has still to deliver it.
  case outputAwaited(AwaitedOutput)
  /// Its server, or each of its mirrors, rests.
  case serverRests(ServerWait)
  case failed(SpoolError)
}

extension Claim {
  /// - Throws: ``JobStop/notOurs(_:)`` if this worker slept too long: then a successor on another host has the lock,
  ///   and the job is no longer ours; ``SpoolError``.
  func checkLock() throws {
    guard try holdsLock() else { throw JobStop.notOurs(.takenOver) }
  }

  /// - Throws: ``JobStop/notOurs(_:)`` if the claim is not ours; ``SpoolError``.
  func checkOwnership() throws {
    let ownership = try self.ownership()
    guard ownership == .ours else { throw JobStop.notOurs(ownership) }
  }
}

/// A server that rests, for which a job waits without a failure.
struct ServerWait: Equatable {
  /// As in ``ServerRests``.
  let key: String
  let reason: String
  let until: Timestamp
}

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
  /// Parks the job without a failure. The first time its journal says so. It is known from then on: what another job
  /// publishes later may be what this one is for (``OutputPublisher/sharedPayload()``).
  func park(until due: Timestamp, first reason: String) throws(SpoolError) {
    if text.journal.knownSince == nil {
      let mark = text.journal.data.softMark ?? .zero
      do throws(SpoolError) {
        let broken = text.journal.data.brokenFrom
        try append(
          .interrupted(.now(), attempt: 1, mark: mark, fetched: 0, broken: broken, reason: reason))
      } catch  where error.isLackOfSpace {
        // The move needs no space.
      }
    }
    try park(until: due)
  }
}
