package import Spool

/// An event for the log.
package struct Event: Sendable {
  /// How important it is; a run without `--verbose` shows warnings and errors.
  package enum Level: String, Sendable { case debug, info, warning, error }

  /// Its name in the log (spoolrun-log.7).
  package let name: String
  /// How important it is.
  package let level: Level
  /// The job's name as bytes; nil if the event concerns the whole spool.
  package let job: FileName?
  /// What it says beside its name and job.
  package let fields: Fields

  /// - Parameter name: one of spoolrun-log(7).
  package init(_ name: String, _ level: Level, job: FileName? = nil, _ fields: Fields = Fields()) {
    self.name = name
    self.level = level
    self.job = job
    self.fields = fields
  }
}
