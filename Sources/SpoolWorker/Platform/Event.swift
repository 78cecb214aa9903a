package import Spool

package struct Event: Sendable {
  /// How important it is; a run without `--verbose` shows warnings and errors.
  package enum Level: String, Sendable { case debug, info, warning, error }

  package let name: String
  package let level: Level
  package let job: FileName?
  package let fields: Fields

  package init(_ name: String, _ level: Level, job: FileName? = nil, _ fields: Fields = Fields()) {
    (self.name, self.level, self.job, self.fields) = (name, level, job, fields)
  }

  /// The fields that are numbers in JSON (spoolrun-log.7): bytes, an offset, a count, a position, seconds or a status.
  package static let numbers: Set = [
    "at", "attempt", "broken", "bytes", "bytes-fetched", "connections", "count", "deaths", "entries", "fetched", "free",
    "jobs", "line", "milliseconds", "min-free", "mirror", "needed", "new", "rate", "relinked", "seconds", "size",
    "status", "unsettled",
  ]
}
