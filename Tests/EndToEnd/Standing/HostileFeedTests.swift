import Glibc
import TestSupport
import Testing

/// Feeds that mean harm, from a server through a worker and `spoolrun-entries` to the spool.
@Suite struct HostileFeedTests {
  /// What a server sends after the head.
  enum Feed: String, CaseIterable, CustomTestStringConvertible {
    case endlessElement, endlessAttribute, endlessEntries, packedEntries, packedIdentity, packedLines, packedURLs
    case entities, badText, cutText

    var testDescription: String { rawValue }

    /// What a person is told.
    var reason: String {
      switch self {
      case .endlessElement, .endlessAttribute, .endlessEntries: "the list is longer than 64 MiB"
      case .packedEntries, .packedLines: "more than 100000 entries"
      case .packedIdentity: "an element with over 64 KiB of text"
      case .packedURLs: "memory"
      case .entities: "a DOCTYPE with entities, which no list needs"
      case .badText: "XML: not well-formed (invalid token)"
      case .cutText: "XML: "
      }
    }

    /// Shell commands that print what takes little space on the way, before it is gzipped.
    private var packed: String? {
      let item = #"<item><enclosure url="http://h/$"/></item>"#
      return switch self {
      case .packedEntries: "printf '<rss><channel>'; yes '\(item)' | head -n 110000"
      case .packedIdentity: "printf '<rss><channel><item><guid>'; head -c 64M /dev/zero | tr '\\0' x"
      // Each of 30 kB, which is not too long for one.
      case .packedURLs:
        "printf '<rss><channel>'; yes \"<item><enclosure url='h$(head -c 30000 /dev/zero | tr '\\0' x)'/></item>\""
          + " | head -n 12000"
      case .packedLines: "yes http://h/x | head -n 110000"
      default: nil
      }
    }

    private var text: String {
      switch self {
      case .endlessElement: "<rss><channel><title>"
      case .endlessAttribute: "<rss><channel><item id=\""
      case .endlessEntries: "<rss><channel>"
      case .entities:
        "<!DOCTYPE rss [<!ENTITY a \"ha\">"
          + (1...9).map { "<!ENTITY a\($0) \"\(String(repeating: "&a\($0 == 1 ? "" : "\($0 - 1)");", count: 10))\">" }
          .joined() + "]><rss><channel><item><guid>&a9;</guid></item></channel></rss>\n"
      case .cutText: "<rss><channel><item><guid>a</guid></item>"
      default: ""
      }
    }

    /// The bytes that are sent once, and those that follow for ever.
    func bytes() async throws -> (once: [UInt8], again: [UInt8]) {
      if let packed {
        let directory = try TemporaryDirectory()
        let file = "\(directory.path)/feed"
        _ = try await run(["/bin/bash", "-c", "(\(packed)) | gzip -1 >'\(file)'"], environment: testEnvironment)
        return (try readFile(file), [])
      }
      if self == .badText { return (Array("<rss\u{FFFF} a=\"".utf8) + [0xFF, 0xFE] + Array("\"/>\n".utf8), []) }
      let again: [UInt8] =
        switch self {
        case .endlessElement, .endlessAttribute: [UInt8](repeating: 0x78, count: 1 << 20)
        case .endlessEntries:
          Array(String(repeating: "<item><guid>1</guid><enclosure url=\"/a\"/></item>\n", count: 20_000).utf8)
        default: []
        }
      return (Array(text.utf8), again)
    }
  }

  /// Bytes that the process has had in memory at most.
  private func peak(_ process: pid_t) throws -> Int {
    let status = try readText("/proc/\(process)/status")
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
    return try #require(Int(line.split(separator: " ")[1])) << 10
  }

  /// The order waits for its next check, with a reason; the worker goes on, and has not grown.
  @Test(arguments: Feed.allCases) func `a hostile feed does no harm`(feed: Feed) async throws {
    let (once, again) = try await feed.bytes()
    let sent = Gauge()
    let server = try ScriptedServer { request, reply in
      guard request.target == "/list" else { return try reply.respond("200 OK", body: Array("payload\n".utf8)) }
      try reply.head("200 OK", ["Connection: close"])
      try reply.send(once)
      while !again.isEmpty {
        sent.enter()
        try reply.send(again)
      }
      try reply.finish()
    }
    let spool = try TemporarySpool()
    let worker = try startSpoolrun([spool.root])
    try spool.drop("before", "\(server.url("/before"))\n")
    try await waitUntil("the worker has its libraries") { spool.names("done") == ["before"] }
    let usual = try peak(worker.processID)
    try spool.order("pod", "url: \(server.url("/list"))\nevery: 6h\n")
    try await waitUntil("the check has failed") {
      spool.names("standing") == ["pod"] && (try? spool.lastFailure("standing/pod")) != nil
    }
    let record = try spool.lastFailure("standing/pod")
    let reason = record["reason"] ?? ""
    // On a busy machine the time is over first.
    let isOver = feed == .packedURLs && reason.contains("time limit")
    #expect(record["code"] == "bad-entries" && (isOver || reason.contains(feed.reason)), "\(record)")
    try spool.drop("after", "\(server.url("/after"))\n")
    try await waitUntil("the worker goes on") { spool.names("done") == ["after", "before"] }
    #expect(try peak(worker.processID) < usual + 16 << 20)
    // In blocks of about a MiB: 64, and what sockets hold (tcp(7), tcp_rmem: 32 MiB since Linux 6.16). On a busy
    // machine the next check may be due by now.
    #expect(sent.total < 150 * server.requests(for: "/list").count)
    #expect(["tmp", "partial", "new", "cur", "failed"].allSatisfy { spool.names($0) == [] })
    #expect(try await worker.stop().status == .exited(75), "the order waits")
  }

  private func feed(_ items: [(id: Int, url: String, day: Int?)]) -> String {
    let items = items.map { id, url, day in
      let date = day.map { "<pubDate>\($0) Nov 2026 06:00:00 GMT</pubDate>" } ?? ""
      return "<item><guid>\(id)</guid>\(date)<enclosure url=\"\(url)\"/></item>"
    }
    return "<rss><channel>\(items.joined())</channel></rss>\n"
  }

  @Test func `several entries with one identity are fetched, each once`() async throws {
    let server = try FeedServer(feed([(1, "/a", nil), (1, "/b", nil), (2, "/c", nil), (1, "/d", nil)]))
    let spool = try TemporarySpool()
    try spool.order("pod", "url: \(server.url("/list"))\nevery: 6h\nfirst: all\n")
    // Alone, an entry has its identity again, and another link to it is no other entry.
    for (list, media) in [
      (nil, ["/a", "/b", "/c", "/d"]), (feed([(1, "/b", nil), (2, "/x", nil)]), ["/a", "/b", "/c", "/d"]),
      (feed([(1, "/e", nil), (2, "/c", nil)]), ["/a", "/b", "/c", "/d"]),
    ] {
      if let list { server.put(list) }
      try spool.makeOrderDue("pod")
      try await spool.once(exits: 0)
      #expect(server.media.sorted() == media)
    }
  }

  @Test func `dates in disorder: the newest are chosen, and the oldest of them comes first`() async throws {
    let server = try FeedServer(feed([(1, "/1", 3), (2, "/2", 9), (3, "/3", 1), (4, "/4", 7), (5, "/5", 9)]))
    let spool = try TemporarySpool()
    try spool.order("pod", "url: \(server.url("/list"))\nevery: 6h\nfirst: 3\n")
    try await spool.once("-j", "1", exits: 0)
    #expect(Set(server.media) == ["/4", "/2", "/5"], "\(server.media)")
  }
}
