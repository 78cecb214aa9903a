package import Spool

/// What the spool knows about a standing order.
package struct OrderStatus: Sendable {
  package var name: FileName
  /// That of a job whose file is in the same place; ``JobState/waiting`` where a job would be retried.
  package var state: JobState
  /// When its list was last found sound; nil for never.
  package var checked: Timestamp?
  package var entries: Int?
  package var problems = ListProblems()
  package var next: Timestamp?
  /// Why the last check failed; nil if it did not.
  package var problem: JobStatus.Problem?

  init(_ name: FileName, _ state: JobState) {
    (self.name, self.state) = (name, state == .retrying ? .waiting : state)
  }

  /// The state as `status` and its JSON name it.
  var shownState: String { state == .running ? "checking" : state.rawValue }

  var json: JSONText {
    .object([
      ("name", .string(name.display)),
      ("state", .string(shownState)),
      ("checked", .optional(checked)),
      ("entries", .count(entries)),
      ("next", .optional(next)),
      ("problems", .count(problems.count)),
      ("error", problem?.json ?? .null),
    ])
  }

  /// - Parameter next: the time of modification of an order that waits.
  init(_ name: FileName, _ state: JobState, _ text: JobText, next: Timestamp?) {
    self.init(name, state)
    let checks = text.journal.checks
    checked = checks.lastTime
    entries = checks.lastTime == nil ? nil : checks.entries
    problems = checks.problems
    self.next = next
    problem = text.journal.attempts.lastFailure.map { JobStatus.Problem($0) }
  }
}
