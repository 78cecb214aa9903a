import Glibc
import TestSupport
import Testing

/// Entries that a standing order must not lose, nor fetch twice.
@Suite struct LostEntryTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  private func feed(_ items: (id: String, url: String)...) -> String {
    let items = items.map { "<item><guid>\($0.id)</guid><enclosure url=\"\($0.url)\"/></item>" }
    return "<rss><channel>\(items.joined())</channel></rss>\n"
  }

  private func check() async throws -> CommandResult {
    try spool.makeOrderDue("pod")
    return try await spool.once()
  }

  @Test func `entries that cannot be fetched are told once, and fetched when they can be`() async throws {
    let server = try spool.subscribe(
      to: feed(("1", "http://127.0.0.1:99999/1"), ("2", "/2")), "every: 6h\nfirst: all\n")
    var result = try await check()
    #expect(result.errors.contains("pod: its list has 1 problem: `http://127.0.0.1:99999/1`: port"), "\(result)")
    let status = try await spoolrun("status", spool.root).output
    #expect(status.contains("(2 entries)") && status.contains("; 1 problem: "), "\(status)")
    #expect(try await spoolrun("status", spool.root, "--json").output.contains("\"problems\":1"))
    #expect(try await spoolrun("status", "--spool", spool.root, "pod").output.contains("; 1 problem: "))
    server.put(feed(("3", "/3"), ("1", "http://127.0.0.1:99999/1"), ("2", "/2")))
    result = try await check()
    #expect(result.errors == "" && spool.payloads == ["2", "3"], "\(result)")
    server.put(feed(("1", "/1"), ("2", "/2")))
    result = try await check()
    #expect(result.errors == "" && spool.payloads == ["1", "2", "3"], "\(result)")
  }

  @Test func `a feed without enclosures is told`() async throws {
    let server = try FeedServer("<rss><channel><item><guid>1</guid></item></channel></rss>\n")
    try spool.order("pod", "url: \(server.url("/list"))\nevery: 6h\n")
    try await check().exits(0, saying: "none of its 1 items has an enclosure")
  }

  @Test func `a failed episode is fetched from the link that the feed has now`() async throws {
    let server = try FeedServer(feed(("1", "/old"), ("2", "/gone")))
    server.breakMedia(["/old", "/gone"])
    try spool.order("pod", "url: \(server.url("/list"))\nevery: 6h\nfirst: all\nattempts: 1\n")
    try await check().exits(1)
    let failed = spool.names("failed")
    #expect(failed.count == 2)
    // Of a cancelled one, too.
    let gone = try #require(failed.first { try spool.text("failed/\($0)").contains("/gone") })
    try await spoolrun("cancel", "--spool", spool.root, gone).exits(0)
    server.put(feed(("3", "/3"), ("1", "/old"), ("2", "/gone")))
    #expect(try await check().status == .exited(0) && spool.payloads == ["3"])
    server.put(feed(("1", "/new"), ("2", "/here")))
    try await check().exits(0)
    #expect(Set(server.media.suffix(2)) == ["/new", "/here"] && server.media.count == 5)
    #expect(spool.names("failed") == [] && spool.names("done").count == 3)
    // The output of the first link stays, as after the command `url`.
    #expect(spool.payloads == ["3", "here", "old"])
  }

  @Test func `an entry whose receipt is removed before the next check is not fetched again`() async throws {
    let server = try spool.subscribe(to: feed(("1", "/1"), ("2", "/2")), "every: 6h\nfirst: all\n")
    _ = try await check()
    func clean() async throws -> Int {
      for name in spool.names("done") { try setModificationTime(spool.path("done/\(name)"), secondsFromNow: -60) }
      try await spoolrun("clean", "--keep-done", "1s", spool.root).exits(0)
      return spool.names("done").count
    }
    #expect(try await clean() == 2, "the check has to see them")
    // One leaves the list for a while.
    for list in [feed(("1", "/new/1")), feed(("1", "/new/1"), ("2", "/new/2"))] {
      server.put(list)
      #expect(try await check().status == .exited(0) && server.media.count == 2)
      #expect(try await clean() == 0)
    }
  }

  @Test func `an old entry that is done late goes, and is not fetched again`() async throws {
    let server = try FeedServer(feed(("2", "/2"), ("1", "/1")))
    server.breakMedia(["/2"])
    try spool.order("pod", "url: \(server.url("/list"))\nevery: 6h\nfirst: all\nkeep: 1\n")
    _ = try await check()
    server.put(feed(("3", "/3"), ("2", "/2"), ("1", "/1")))
    _ = try await check()
    server.breakMedia([])
    for name in spool.names("partial") { try spool.makeDue(name) }
    let result = try await spool.once()
    #expect(result.status == .exited(0) && spool.payloads.sorted() == ["2", "3"], "\(result)")
    server.put(feed(("3", "/3"), ("2", "/new"), ("1", "/1")))
    #expect(try await check().status == .exited(0) && !server.media.contains("/new"))
    #expect(spool.names("done").count == 1 && spool.payloads == ["3"])
  }

  @Test(arguments: [("/list", 2), ("/list/of/others", 4)])
  func `who subscribes again gets nothing twice, but what another list calls the same`(path: String, count: Int)
    async throws
  {
    let server = try FeedServer(feed(("1", "/1"), ("2", "/2")))
    for (path, list) in [("/list", feed(("1", "/1"), ("2", "/2"))), (path, feed(("1", "/new/3"), ("2", "/new/4")))] {
      server.put(list)
      try spool.order("pod", "url: \(server.url(path))\nevery: 6h\nfirst: all\n")
      try await check().exits(0)
    }
    #expect(server.media.count == count && spool.names("done").count == count, "\(spool.names("done"))")
  }

  /// RFC 3986 section 5.1.3.
  @Test func `URLs are relative to where the list is, but those of checksums to what was asked for`() async throws {
    let (feed, sum) = (feed(("1", "a")), hex8(independentCRC32(Array("/new/b".utf8))))
    let server = try ScriptedServer { request, reply in
      switch request.target {
      case "/new/feed": try reply.respond("302 Found", ["Location: /store/1/feed.xml?sig=1"], body: [])
      case "/new/sums.sfv": try reply.respond("302 Found", ["Location: /store/1/sums.sfv?sig=1"], body: [])
      case "/store/1/feed.xml?sig=1": try reply.respond("200 OK", body: Array(feed.utf8))
      case "/store/1/sums.sfv?sig=1": try reply.respond("200 OK", body: Array("b \(sum)\n".utf8))
      default: try reply.respond("200 OK", body: Array(request.target.utf8))
      }
    }
    for name in ["feed", "sums.sfv"] { try spool.order(name, "url: \(server.url("/new/\(name)"))\nevery: 6h\n") }
    let result = try await spool.once()
    #expect(result.status == .exited(0) && spool.payloads == ["a", "b"], "\(result)")
    #expect(try spool.payload("a") == Array("/store/1/a".utf8) && spool.payload("b") == Array("/new/b".utf8))
  }

  @Test func `an archive whose entries have new identities is not fetched again`() async throws {
    let server = try spool.subscribe(to: feed(("1", "/1"), ("2", "/2")), "every: 6h\nfirst: all\noutput: p/\n")
    _ = try await check()
    // Another size: it is not the same file any more.
    try spool.write("files/p/2", "changed")
    server.put(feed(("x1", "/1"), ("x2", "/2"), ("x3", "/d/1")))
    let result = try await check()
    #expect(result.status == .exited(0) && server.media.sorted() == ["/1", "/2", "/2", "/d/1"], "\(result)")
    #expect(spool.payloads.count == 4)
    server.put(feed(("y1", "/1")))
    #expect(try await check().status == .exited(0) && server.media.count == 4)
  }

  /// As in a feed that has its last episode only.
  @Test func `another query is another file, unless the entry is older than the one that is there`() async throws {
    let server = try spool.subscribe(to: feed(("1", "/get?ep=1")), "every: 6h\nfirst: all\noutput: p/\n")
    let dated = feed(("3", "/get?token=3"))
      .replacing("</guid>", with: "</guid><pubDate>1 Jan 2015 00:00:00 GMT</pubDate>")
    for list in [feed(("1", "/get?ep=1")), feed(("2", "/get?ep=2")), dated] {
      server.put(list)
      try await check().exits(0)
    }
    #expect(server.media == ["/get?ep=1", "/get?ep=2"] && spool.payloads.count == 2)
  }

  @Test func `an entry whose receipt was archived is not fetched again by another link`() async throws {
    let server = try spool.subscribe(to: feed(("1", "/1")), "every: 6h\nfirst: all\noutput: p/\n")
    _ = try await check()
    let receipt = try #require(spool.names("done").first)
    try setModificationTime(spool.path("done/\(receipt)"), secondsFromNow: -10_000)
    try await spoolrun("clean", "--archive", "1h", spool.root).exits(0)
    #expect(spool.names("done") == ["archive"])
    server.put(feed(("1", "/cdn/1")))
    let result = try await check()
    #expect(result.status == .exited(0) && server.media == ["/1"], "\(result)")
  }

  /// A board without a clock starts with any time.
  @Test(arguments: [(300, true), (6, false)]) func `a time further ahead than the next check can be counts as due`(
    days: Int, isDue: Bool
  ) async throws {
    let server = try spool.subscribe(to: feed(("1", "/1")), "every: 6d\n")
    try setModificationTime(spool.path("standing/pod"), secondsFromNow: days * 86_400)
    #expect(try await spoolrun("status", spool.root).output.contains("due now") == isDue)
    _ = try await spool.once()
    #expect(server.checks.count == (isDue ? 1 : 0))
  }
}
