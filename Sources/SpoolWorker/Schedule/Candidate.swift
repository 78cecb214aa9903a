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
  /// Those that its mtime has beyond the seconds.
  var nanoseconds = 0

  /// Whether it comes before another one.
  func isBefore(_ other: Candidate) -> Bool {
    let (left, right) = (modified + delay, other.modified + other.delay)
    if (left, nanoseconds) != (right, other.nanoseconds) { return (left, nanoseconds) < (right, other.nanoseconds) }
    // At the same time, shorter names first: a job before its `~2`, job-9 before job-10.
    let (name, otherName) = (name.bytes, other.name.bytes)
    return name.count == otherName.count ? name.lexicographicallyPrecedes(otherName) : name.count < otherName.count
  }
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
    var parked = Candidate(name: candidate.name, origin: .partial, modified: candidate.modified)
    parked.nanoseconds = candidate.nanoseconds
    return Choice(candidate: parked, peek: peek)
  }

  /// Empty for a job that opens no connection.
  var host: String { peek.host ?? "" }
}
