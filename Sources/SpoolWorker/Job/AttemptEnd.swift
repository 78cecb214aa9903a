internal import Spool

/// What became of a job in one attempt, for the schedule.
struct AttemptEnd {
  enum Fate: Sendable {
    case done, waiting, givenUp, cancelled
    /// A person set it aside, or another worker has it now.
    case moved
  }

  let fate: Fate
  /// When the job is tried again, where that is not at once.
  var retry: Timestamp?
  /// It failed on this machine's way to the network.
  var wantsNetwork = false
  /// The spool failed: the job can be moved no more, or its last move is not known to be durable.
  var problem: (any Error)?

  init(_ fate: Fate, problem: (any Error)? = nil) {
    self.fate = fate
    self.problem = problem
  }
}
