package import Spool

/// A server or proxy that rests, and the jobs that wait for it.
package struct ServerStatus: Sendable, Equatable {
  package let note: ServerNote
  package let rest: ServerNote.Rest
  package let end: Timestamp
  /// Of the jobs that were read.
  package var jobs = 0
  /// Whether more wait than were read.
  package var areMore = false

  /// For each host that may not ask it; empty for one that does not rest.
  package static func all(_ seen: ServerFiles.Seen) -> [ServerStatus] {
    guard let note = seen.note else { return [] }
    return note.rests.map { ServerStatus(note: note, rest: $0, end: Timestamp(seconds: seen.end(of: $0))) }
  }

  package var name: String { note.isProxy ? "the proxy \(note.shownHost)" : note.shownHost }

  /// `mirror.example rests for 9m (429, asked by the server)`
  package func sentence(now: Timestamp) -> String {
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

  package func line(now: Timestamp) -> String {
    let count = jobs == 1 ? "1 job" : "\(jobs) jobs"
    return sentence(now: now) + (jobs > 0 ? ": \(areMore ? "at least " : "")\(count)" : "")
  }

  var json: JSONText {
    .object([
      ("server", .string(escaped(note.server))), ("cause", .string(escaped(rest.cause))),
      ("code", .string(escaped(rest.code))), ("reason", .string(escaped(rest.reason))),
      ("host", rest.host.map { .string(escaped($0)) } ?? .null), ("until", .string(end.description)),
      ("failures", .count(rest.failures)), ("jobs", .count(jobs)),
    ])
  }
}
