import Glibc
import Synchronization
import TestSupport

/// A server with a list that changes, and a file under every other name, whose content is the request's target.
final class FeedServer: Sendable {
  private struct State {
    var list: [UInt8] = []
    var status = "200 OK"
    var isConditional = true
    var isAnnounced = true
    /// Media that answer 500.
    var broken: Set<String> = []
  }

  private final class Shared: Sendable { let state = Mutex(State()) }

  private let shared = Shared()
  private let server: ScriptedServer

  init(_ list: String = "") throws {
    let shared = shared
    shared.state.withLock { $0.list = Array(list.utf8) }
    server = try ScriptedServer { request, reply in
      let state = shared.state.withLock { $0 }
      guard request.target.hasPrefix("/list") else {
        if state.broken.contains(request.target) { return try reply.respond("500 Broken", body: []) }
        return try reply.respond("200 OK", ["ETag: \"1\""], body: Array(request.target.utf8))
      }
      if state.status != "200 OK" { return try reply.respond(state.status, body: []) }
      let tag = "\"\(hex8(independentCRC32(state.list)))\""
      if state.isConditional, request.value("If-None-Match") == tag {
        return try reply.head("304 Not Modified", ["ETag: \(tag)"])
      }
      let fields = state.isConditional ? ["ETag: \(tag)"] : []
      if state.isAnnounced { return try reply.respond("200 OK", fields, body: state.list) }
      try reply.head("200 OK", fields + ["Connection: close"])
      try reply.send(state.list)
      try reply.finish()
    }
  }

  func url(_ path: String) -> String { server.url(path) }

  /// Puts another list in the place of the last one.
  func put(_ list: String) { shared.state.withLock { $0.list = Array(list.utf8) } }
  func put(_ list: [UInt8]) { shared.state.withLock { $0.list = list } }
  /// The status of the list from now on.
  func answer(_ status: String) { shared.state.withLock { $0.status = status } }
  func dropValidators() { shared.state.withLock { $0.isConditional = false } }
  func dropLengths() { shared.state.withLock { $0.isAnnounced = false } }
  func breakMedia(_ targets: Set<String>) { shared.state.withLock { $0.broken = targets } }

  var checks: [ServerRequest] { server.requests.filter { $0.target.hasPrefix("/list") } }
  func requests(_ target: String) -> [ServerRequest] { server.requests(for: target) }
  /// The targets of all other requests.
  var media: [String] { server.requests.map(\.target).filter { !$0.hasPrefix("/list") } }
}

/// A podcast's feed with these episodes, the last one first.
func podcast(_ episodes: some Sequence<Int>) -> String {
  let items = episodes.reversed().map { number in
    """
    <item><title>\(number)</title><guid isPermaLink="false">episode-\(number)</guid>
    <pubDate>\(1 + number % 28) Nov 2026 06:00:00 GMT</pubDate><itunes:duration>60</itunes:duration>
    <enclosure url="/audio/\(number).mp3" length="1" type="audio/mpeg"/></item>
    """
  }
  return """
    <?xml version="1.0" encoding="UTF-8"?>
    <rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel><title>x</title>
    \(items.joined(separator: "\n"))</channel></rss>

    """
}

extension TemporarySpool {
  /// Writes a standing order, which is due.
  func order(_ name: String, _ lines: String) throws {
    if fileStatus(path("standing")) == nil {
      guard mkdir(path("standing"), 0o700) == 0 else { throw TestSupportError("mkdir standing") }
    }
    try writeFile(path("tmp/\(name)"), lines)
    // Before the move: a worker may have it right after.
    try setModificationTime(path("tmp/\(name)"), secondsFromNow: -60)
    try move("tmp/\(name)", "standing/\(name)")
  }

  /// A standing order `pod` of a list that a server of its own has.
  func subscribe(to list: String, _ lines: String) throws -> FeedServer {
    let server = try FeedServer(list)
    try order("pod", "url: \(server.url("/list"))\n\(lines)")
    return server
  }

  func makeOrderDue(_ name: String) throws { try setModificationTime(path("standing/\(name)"), secondsFromNow: -60) }
}
