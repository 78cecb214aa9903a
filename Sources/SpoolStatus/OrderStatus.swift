package import Spool
internal import SystemPackage

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
  /// What of the list could not be used then.
  package var problems = ListProblems()
  package var next: Timestamp?
  /// Why the last check failed; nil if it did not.
  package var problem: JobStatus.Problem?

  /// Of an order of which only the place is known.
  package init(_ name: FileName, _ state: State) {
    self.name = name
    self.state = state
  }
}

extension OrderStatus {
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
}

extension OrderStatus {
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

extension SnapshotReader {
  /// Adds the orders that wait for their next check, by their names.
  func addOrders(_ names: [FileName], _ spool: Spool, limit: Int, _ snapshot: inout SpoolSnapshot) throws(SpoolError) {
    snapshot.orderCount += max(0, names.count - limit)
    let sorted = names.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    for name in sorted.prefix(limit) {
      do throws(SpoolError) {
        guard let status = try spool.status(.standing, name), let text = try spool.job(.standing, name) else {
          continue
        }
        let now = snapshot.time.seconds
        let isDue = try spool.isDue(name, modified: status.modified, in: .standing, at: now)
        let next = isDue ? now : status.modified
        snapshot.add(OrderStatus(name, .waiting, text, next: Timestamp(seconds: next)))
      } catch  where error.isUnreadable {
        snapshot.add(OrderStatus(name, .waiting))
      }
    }
  }
}

extension SpoolSnapshot {
  mutating func add(_ order: OrderStatus) {
    orders.append(order)
    orderCount += 1
  }
}
