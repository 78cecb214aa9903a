package import Spool

package struct WorkerStatus: Sendable {
  /// `HOST.PID.TAG`, safe for a terminal.
  package var name: String
  /// Whether it may be alive: it has given a sign of life within the lease.
  package var isAlive: Bool
  package var beat: Timestamp
  /// What it said then; nil if that cannot be read.
  package var report: WorkerReport?

  var json: JSONText {
    let options = report.map { $0.options.named.compactMap { option in Self.json(option.key, option.value) } } ?? []
    let waits = report.map(\.waits) ?? []
    return .object([
      ("name", .string(name)), ("state", .string(isAlive ? "alive" : "silent")),
      ("beat", .string(beat.description)), ("started", .optional(report?.started)),
      ("program", .optional(report?.program.map { escaped($0) })),
      ("mode", .optional(report?.mode.map { escaped($0) })),
      ("runs", .count(report?.runs)), ("options", .object(options)),
      (
        "waits",
        .array(waits.map { .object([("cause", .string(escaped($0.cause))), ("reason", .string(escaped($0.reason)))]) })
      ),
      ("claims", .count(report?.claims)), ("lost", .count(report?.lost)),
      ("missed", .count(report?.missed)),
    ])
  }

  private static let numbers: Set = [
    "jobs", "per-host", "connections", "max-connections", "min-free", "max-size", "only",
  ]
  /// The file says only that there is one.
  private static let flags: Set = ["limit-rate", "gate"]

  /// - Returns: nil for a number that is none, and for what this version does not know.
  private static func json(_ key: String, _ value: String) -> (String, JSONText)? {
    if numbers.contains(key) { return decimal(value).map { (key, .count($0)) } }
    if flags.contains(key) { return (key, .bool(value == "yes")) }
    return key == "directory" ? (key, .string(escaped(value))) : nil
  }
}

extension ClaimName {
  /// Whether the claim's worker may be alive.
  /// - Parameter now: by the file system's clock.
  func isAlive(modified: Int64, in spool: Spool, now: Timestamp) -> Bool {
    owner.map { Leases(spool).isAlive($0, beat: modified, now: now) } ?? false
  }

  var shownOwner: String? { owner.map { escaped($0.text) } }
}
