package import Spool

/// An event for the log.
package struct Event: Sendable {
  package enum Level: String, Sendable { case debug, info, warning, error }

  package let name: String
  package let level: Level
  /// The job's name as bytes; nil if the event concerns the whole spool.
  package let job: FileName?
  package let fields: Fields

  package init(_ name: String, _ level: Level, job: FileName? = nil, _ fields: Fields = Fields()) {
    self.name = name
    self.level = level
    self.job = job
    self.fields = fields
  }
}
