package import Spool

package struct Event: Sendable {
  /// How important it is; a run without `--verbose` shows warnings and errors.
  package enum Level: String, Sendable { case debug, info, warning, error }

  /// Its name in the log (spoolrun-log.7).
  package let name: String
  package let level: Level
  /// The job's name as bytes; nil if the event concerns the whole spool.
  package let job: FileName?
  package let fields: Fields

  package init(_ name: String, _ level: Level, job: FileName? = nil, _ fields: Fields = Fields()) {
    (self.name, self.level, self.job, self.fields) = (name, level, job, fields)
  }
}

/// A field of the log's events (spoolrun-log.7). What type a field has in JSON is decided here alone.
package enum EventField: String, CaseIterable, Sendable {
  case at, attempt, broken, bytes, connections, count, deaths, entries, fetched, free, jobs, line, needed, new, rate
  case relinked, seconds, size
  case bytesFetched = "bytes-fetched"
  case minFree = "min-free"
  case milliseconds, status, unsettled

  case blake2b, burned, by, `class`, code, crc32, crc32c, crc64nvme, data, directory, doubt
  case expected, file, fitness, found, gate, hook, kind, limits, lost, md5
  case next, other, output
  case outputRoot = "output-root"
  case sha3 = "sha3-256"
  case proxy, reason, retry, server, sha1, sha256, sha512, states, text, time, tried, type, unchanged, url, way

  /// Whether it is a number: bytes, an offset, a count, a position, seconds or a status. Digests are texts, even those
  /// that have decimal digits only; so are values that are numbers or texts, such as what was expected.
  package var isNumber: Bool {
    switch self {
    case .at, .attempt, .broken, .bytes, .bytesFetched, .connections, .count, .deaths, .entries, .fetched, .free, .jobs,
      .line, .milliseconds, .minFree, .needed, .new, .rate, .relinked, .seconds, .size, .status, .unsettled:
      true
    case .blake2b, .burned, .by, .class, .code, .crc32, .crc32c, .crc64nvme, .data, .directory, .doubt, .expected,
      .file,
      .fitness, .found, .gate, .hook,
      .kind, .limits, .lost, .md5, .next, .other, .output, .outputRoot, .proxy, .reason, .retry, .server, .sha1,
      .sha256, .sha3, .sha512, .states, .text, .time, .tried, .type, .unchanged, .url, .way:
      false
    }
  }
}
