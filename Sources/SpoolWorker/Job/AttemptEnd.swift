internal import Spool

/// The result of one attempt, for the schedule.
struct AttemptEnd {
  enum Fate: Sendable {
    case done, waiting, givenUp, cancelled
    /// A person moved it away, or another worker has it now.
    case moved
    /// A standing order waits for its next check.
    case checked
  }

  let fate: Fate
  /// When the next attempt is due; nil for at once.
  var retry: Timestamp?
  /// It has dropped jobs.
  var hasDropped = false
  /// It is a standing order, which waits in `standing`.
  var isOrder = false
  var connectivity = Connectivity.unknown
  /// The spool failed: the job cannot be moved, or its last move may not be durable.
  var problem: (any Error)?

  init(_ fate: Fate, problem: (any Error)? = nil) {
    self.fate = fate
    self.problem = problem
  }

  /// A standing order was checked.
  init(checkedUntil next: Timestamp, hasDropped: Bool) {
    fate = .checked
    retry = next
    self.hasDropped = hasDropped
  }
}
