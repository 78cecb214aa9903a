package import Spool

package struct Event: Sendable {
  /// How important it is; a run without `--verbose` shows warnings and errors.
  package enum Level: String, Sendable { case debug, info, warning, error }

  package let name: String
  package let level: Level
  /// The job's name as bytes; nil if the event concerns the whole spool.
  package let job: FileName?
  package let fields: Fields

  package init(_ name: String, _ level: Level, job: FileName? = nil, _ fields: Fields = Fields()) {
    (self.name, self.level, self.job, self.fields) = (name, level, job, fields)
  }
}

/// The fields of the log's events (spoolrun-log.7). What type a field has in JSON is decided here alone.
package enum EventField {
  /// Bytes, an offset, a count, a position, seconds or a status.
  package static let numbers: Set = [
    "at", "attempt", "broken", "bytes", "bytes-fetched", "connections", "count", "deaths", "entries", "fetched", "free",
    "jobs", "line", "milliseconds", "min-free", "needed", "new", "rate", "relinked", "seconds", "size", "status",
    "unsettled",
  ]

  /// Digests are texts, even those that have decimal digits only; so are values that are numbers or texts, such as what
  /// was expected.
  package static let texts: Set = [
    "blake2b", "burned", "by", "class", "code", "crc32", "crc32c", "crc64nvme", "data", "directory", "doubt",
    "expected",
    "file", "fitness", "found", "gate", "hook", "kind", "limits", "lost", "md5", "next", "other", "output",
    "output-root", "proxy", "reason", "retry", "server", "sha1", "sha256", "sha3-256", "sha512", "signed", "states",
    "text", "tried", "type", "unchanged", "url", "way",
  ]
}
