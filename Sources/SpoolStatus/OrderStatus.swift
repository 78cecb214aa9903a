package import Spool

/// What the spool knows about a standing order.
package struct OrderStatus: Sendable {
  /// The state that `status` shows. The raw value is that of its JSON.
  package enum State: String, Sendable {
    case waiting, checking, interrupted, paused, failed

    /// - Parameter job: the state of a job whose file is in the same place.
    init(_ job: JobState) {
      switch job {
      case .running: self = .checking
      case .interrupted: self = .interrupted
      case .paused: self = .paused
      case .failed: self = .failed
      case .retrying, .waiting, .done: self = .waiting
      }
    }
  }

  /// The name of its file in `standing/`.
  package var name: FileName
  /// It follows from the place of its file.
  package var state: State
  /// When its list was last found sound; nil for never.
  package var checked: Timestamp?
  package var entries: Int?
  package var problems = ListProblems()
  package var next: Timestamp?
  /// Why the last check failed; nil if it did not.
  package var problem: JobStatus.Problem?

  package init(_ name: FileName, _ state: State) {
    (self.name, self.state) = (name, state)
  }

  var json: JSONText {
    .object([
      ("name", .string(name.display)),
      ("state", .string(state.rawValue)),
      ("checked", .optional(checked)),
      ("entries", .count(entries)),
      ("next", .optional(next)),
      ("problems", .count(problems.count)),
      ("error", problem?.json ?? .null),
    ])
  }

  /// - Parameter next: the time of modification of an order that waits.
  init(_ name: FileName, _ state: State, _ text: JobText, next: Timestamp?) {
    self.init(name, state)
    let checks = text.journal.checks
    checked = checks.lastTime
    entries = checks.lastTime == nil ? nil : checks.entries
    problems = checks.problems
    self.next = next
    problem = text.journal.attempts.lastFailure.map { JobStatus.Problem($0) }
  }
}
