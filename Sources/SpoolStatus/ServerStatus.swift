package import Spool

/// A server or proxy that rests, and the jobs that wait for it.
package struct ServerStatus: Sendable, Equatable {
  package let note: ServerNote
  /// When it may be asked again.
  package let end: Timestamp
  /// Of the jobs that were read.
  package var jobs = 0
  /// Whether more wait than were read.
  package var areMore = false

  /// nil for one that does not rest.
  package init?(_ seen: ServerFiles.Seen) {
    guard let note = seen.note, note.rest != nil, let end = seen.end else { return nil }
    (self.note, self.end) = (note, Timestamp(seconds: end))
  }

  private var name: String { note.isProxy ? "the proxy \(note.shownHost)" : note.shownHost }

  /// `mirror.example rests for 9m (429, asked by the server)`
  package func sentence(now: Timestamp) -> String {
    guard let rest = note.rest else { return "" }
    let code = FailureCode.status(of: rest.code).map { "\($0)" } ?? escaped(rest.code)
    let why: String
    switch rest.cause {
    case "asked": why = "\(code), asked by the server"
    case "unreachable": why = code + (rest.host.map { ", for \(escaped($0))" } ?? "")
    default: why = code
    }
    return end > now
      ? "\(name) rests for \(shortDuration(end.seconds - now.seconds)) (\(why))" : "\(name) is to be probed (\(why))"
  }

  /// The same with the number of jobs.
  package func line(now: Timestamp) -> String {
    let count = jobs == 1 ? "1 job" : "\(jobs) jobs"
    return sentence(now: now) + (jobs > 0 ? ": \(areMore ? "at least " : "")\(count)" : "")
  }

  var json: JSONText {
    .object([
      ("server", .string(escaped(note.server))), ("cause", .string(escaped(note.rest?.cause ?? ""))),
      ("code", .string(escaped(note.rest?.code ?? ""))), ("reason", .string(escaped(note.rest?.reason ?? ""))),
      ("host", note.rest?.host.map { .string(escaped($0)) } ?? .null), ("until", .string(end.description)),
      ("failures", .count(note.rest?.failures ?? 0)), ("jobs", .count(jobs)),
    ])
  }
}
