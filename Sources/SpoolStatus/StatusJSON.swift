internal import Spool

extension SpoolSnapshot {
  /// The version of the format of ``json(limit:)``. It is raised when a member is removed or changes its meaning, not
  /// when one is added.
  package static let jsonFormat = 1

  /// One JSON object, as described in spoolrun(1).
  /// - Parameter limit: the maximum number of jobs of each state to list.
  package func json(limit: Int) -> String {
    let states = JobState.allCases
    let listed = states.map { (jobs[$0] ?? []).prefix(limit) }
    let omitted = zip(states, listed).filter { $0.0 != .done }.map {
      ($0.0.rawValue, JSONText.count(max(0, count($0.0) - $0.1.count)))
    }
    return JSONText.object([
      ("format", .count(Self.jsonFormat)),
      ("spool", .string(escaped(location))),
      ("time", .string(time.description)),
      ("jobs", .object(states.map { ($0.rawValue, .count(count($0))) })),
      (
        "bytes",
        .object([
          ("stored", .count(stored)), ("present", .count(progress?.bytes)), ("total", .count(total)),
          ("rate", .rate(rate)),
          ("left", .count(secondsLeft)),
        ])
      ),
      ("list", .array(listed.joined().map(\.json))),
      ("omitted", .object(omitted)),
      ("recent", recent.map { .array($0.map(\.json)) } ?? .null),
      ("orders", .array(orders.prefix(limit).map(\.json))),
      ("workers", .array(workers.map(\.json))),
      ("unproven", .count(unproven)),
      ("unreadable", .array(unreadable.map { .string($0.rawValue) })),
    ]).text
  }
}

extension JobStatus {
  fileprivate var json: JSONText {
    .object([
      ("name", .string(name.display)),
      ("state", .string(state.rawValue)),
      ("bytes", .count(bytes)),
      ("total", .count(total)),
      ("rate", .rate(rate)),
      ("left", .count(secondsLeft)),
      ("attempts", .count(attempts)),
      ("attempt-limit", .count(attemptLimit)),
      ("next", .optional(next)),
      ("worker", .optional(worker)),
      ("priority", .optional(priority?.rawValue)),
      ("waits", waits?.json ?? .null),
      ("delivery", .optional(awaitsDelivery ? "waiting" : nil)),
      ("error", problem?.json ?? .null),
    ])
  }
}

extension JobStatus.Problem {
  var json: JSONText {
    .object([("code", .string(code)), ("reason", .string(reason)), ("time", .optional(time))])
  }
}
