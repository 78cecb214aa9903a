internal import Spool

/// The result of one attempt, for the schedule.
struct AttemptEnd {
  enum Fate: Sendable {
    case done, waiting, givenUp, cancelled
    /// A person moved it away, or another worker has it now.
    case moved
  }

  let fate: Fate
  /// When the next attempt is due; nil for at once.
  var retry: Timestamp?
  var connectivity = Connectivity.unknown
  /// The spool failed: the job cannot be moved, or its last move may not be durable.
  var problem: (any Error)?

  init(_ fate: Fate, problem: (any Error)? = nil) {
    self.fate = fate
    self.problem = problem
  }
}
