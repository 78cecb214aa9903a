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

/// A JSON value to be written (RFC 8259).
package indirect enum JSONText: Sendable {
  case null
  case number(String)
  case bool(Bool)
  case string(String)
  case array([JSONText])
  /// Members, written in this order.
  case object([(String, JSONText)])

  /// A number; `null` for nil.
  package static func count(_ value: (some BinaryInteger)?) -> JSONText { value.map { .number(String($0)) } ?? .null }
  /// A string; `null` for nil.
  package static func optional(_ value: (some CustomStringConvertible)?) -> JSONText {
    value.map { .string($0.description) } ?? .null
  }

  /// Bytes per second.
  static func rate(_ value: Double?) -> JSONText { count(value.map { Int64(min($0, 1e18)) }) }

  /// The value in one line (RFC 8259).
  package var text: String {
    switch self {
    case .null: "null"
    case .number(let digits): digits
    case .bool(let value): value ? "true" : "false"
    case .string(let value): Self.quoted(value)
    case .array(let values): "[" + values.map(\.text).joined(separator: ",") + "]"
    case .object(let members): "{" + members.map { "\(Self.quoted($0)):\($1.text)" }.joined(separator: ",") + "}"
    }
  }

  /// A string (RFC 8259 section 7). Characters that control a terminal or the direction of text are escaped as well.
  package static func quoted(_ value: String) -> String {
    doubleQuoted(value) { "\\u" + hexadecimal(UInt64($0.value), digits: 4) }
  }
}
