internal import Spool

/// A job that a worker found and may run.
struct Candidate: Equatable {
  let name: FileName
  let origin: Directory
  /// Its mtime in seconds since the epoch, or the current time if the mtime is in the future.
  let modified: Int64
  /// It may run before it is due.
  var isForced = false
  /// Seconds by which it counts as younger than it is: see ``SpoolReader``.
  var delay: Int64 = 0

  /// The candidate with the lowest is the first.
  var rank: Int64 { modified + delay }
}

/// The parts of a candidate's text that the schedule needs.
struct Peek: Equatable {
  /// Scheme, host and port of its first URL, or `resolve` where a hook has to say it; nil for a job that opens no
  /// connection, such as a malformed one.
  let host: String?
  /// How many workers died during attempts of the job; 0 if it has already waited for other jobs.
  var deaths = 0
  /// Bytes that it still has to receive; nil if that is not known, or it needs none.
  var needed: UInt64?
  /// `HOST:PORT` of the proxy for its first URL; nil for a direct connection.
  var proxy: String?
  /// ``JobPlan/rootAndOutput(of:)``
  var output: ExactText?
  var priority = Priority.normal
  /// It has waited for a day.
  var isAged = false
}

/// A candidate that was chosen to start.
struct Choice: Equatable {
  let candidate: Candidate
  let peek: Peek

  /// The same job after it was put into `partial/`.
  var parked: Choice {
    Choice(candidate: Candidate(name: candidate.name, origin: .partial, modified: candidate.modified), peek: peek)
  }

  /// Empty for a job that opens no connection.
  var host: String { peek.host ?? "" }
}
