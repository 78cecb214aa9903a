internal import Spool

enum JobStop: Error {
  case shutdown
  /// The download was stopped. Only its attempt knows why.
  case cancelled
  case notOurs(Claim.Ownership)
  /// Less than `--min-free` would be left, so the job waits for space.
  case noSpace(String)
  /// The output root is missing or must not be published to, so the job waits for it.
  case noOutput(String)
  /// A job of high priority needs the slot of this one, which is of low priority.
  case outranked
  /// Another job has published a file at the output, and has still to deliver it; or its server, or each of its
  /// mirrors, rests.
  case waits(JobWait)
  case failed(SpoolError)
}

extension Claim {
  /// - Throws: ``JobStop/notOurs(_:)`` if the claim is not ours, or this worker slept too long: then a successor on
  ///   another host has the lock; ``SpoolError``.
  func check() throws {
    guard try holdsLock() else { throw JobStop.notOurs(.takenOver) }
    let ownership = try self.ownership()
    guard ownership == .ours else { throw JobStop.notOurs(ownership) }
  }
}

/// What a job waits for without a failure: servers that rest, or another job that has its output.
struct JobWait: Equatable {
  /// For the journal.
  let reason: String
  let until: Timestamp
  /// As in ``ServerRests``; nil for an output.
  var server: String?
  /// For the log.
  private var output = Fields()

  /// Seconds between two looks at the least. At random, so that of two workers which see each other's claims one goes
  /// first.
  private static let pause: ClosedRange<Int64> = 2...6
  /// Seconds until another look at the latest: a person may have the other job run earlier than planned.
  private static let longestPause: Int64 = 300

  init(for server: String, _ reason: String, until: Timestamp) {
    (self.server, self.reason, self.until) = (server, reason, until)
  }

  /// - Parameter other: the name of the job that has the output.
  /// - Parameter now: the time by ``Spool/now()``.
  /// - Parameter next: when the other job runs next; nil for now.
  init(forOutput output: String, of other: FileName, now: Timestamp, next: Timestamp? = nil) {
    var random = HostRandom()
    until = min(max(next ?? now, now) + .random(in: Self.pause, using: &random), now + Self.longestPause)
    reason = "waits for \(other.display), which has its output"
    self.output = Fields().with("output", output).with("other", other.display)
  }

  /// - Parameter length: of the job's data, in bytes.
  func event(of job: FileName, at length: UInt64 = 0) -> Event {
    guard server != nil else { return Event("waits-for-output", .info, job: job, output) }
    return Event("parked", .info, job: job, Fields().with("at", length).with("retry", until).with("reason", reason))
  }
}

extension Claim {
  /// Parks the job without a failure. The first time its journal says so. It is known from then on: what another job
  /// publishes later may be what this one is for (``Commit/sharedPayload()``).
  func park(until due: Timestamp, first reason: String) throws(SpoolError) {
    if text.journal.knownSince == nil {
      let mark = text.journal.data.softMark ?? .zero
      do throws(SpoolError) {
        let broken = text.journal.data.brokenFrom
        try append(.interrupted(spool.now(), attempt: 1, mark: mark, fetched: 0, broken: broken, reason: reason))
      } catch  where error.isLackOfSpace {
        // The move needs no space.
      }
    }
    try park(until: due)
  }
}

@WorkerLoop protocol RunningTransfer: AnyObject {
  func stop()
  /// Stops soon: what is under way may end first, if nothing else would remain of it.
  func windDown()
  func tick()
}

extension RunningTransfer {
  func windDown() { stop() }
  func tick() {}
}
