import Glibc
import TestSupport
import Testing

/// Standing orders whose list cannot be had, cannot be read, or means harm; and orders that are none.
@Suite struct FailingOrderTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  @Test func `a failed check is recorded and tried again`() async throws {
    let server = try FeedServer(podcast(1...2))
    server.answer("404 Not Found")
    try spool.order("pod", "url: \(server.url("/list"))\nevery: 6h\n")
    var result = try await spool.once().exits(75, saying: "pod: http-404")
    #expect(try spool.lastFailure("standing/pod")["retry"] != nil)
    let status = try await spoolrun("status", spool.root).output
    #expect(
      status.contains("standing/: 1 subscription") && status.contains("never checked, next in")
        && status.contains("http-404")
    )
    server.answer("200 OK")
    try await spoolrun("retry", "--spool", spool.root, "pod").exits(0)
    result = try await spool.once()
    #expect(result.status == .exited(0) && spool.payloads == ["2.mp3"], "\(result)")
    #expect(try spool.lines("standing/pod").allSatisfy { $0.key != "failed" })
  }

  @Test(arguments: [
    "<!DOCTYPE html><p>moved</p>", "<rss><channel><item>", "<rss><channel></a></channel>", "gone\n",
    "<!DOCTYPE rss [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;\">]><rss>&b;</rss>",
    "", "\n \n", "\u{FEFF}",
  ])
  func `a list that cannot be read takes nothing away`(list: String) async throws {
    let server = try spool.subscribe(to: podcast(1...2), "every: 6h\n")
    _ = try await spool.once()
    server.put(list)
    try spool.makeOrderDue("pod")
    try await spool.once().exits(75, saying: "pod: bad-entries: ")
    server.put(podcast(1...3))
    try spool.makeOrderDue("pod")
    #expect(try await spool.once().status == .exited(0) && spool.payloads == ["2.mp3", "3.mp3"])
    #expect(spool.names("tmp") == [])
  }

  /// The rest of the line may be missing.
  @Test func `a list of lines that ends with the connection has to end in a newline`() async throws {
    let server = try FeedServer("http://127.0.0.1:1/a.is")
    server.dropLengths()
    try spool.order("list", "url: \(server.url("/list"))\nevery: 6h\nattempts: 1\n")
    try await spool.once().exits(75, saying: "list: short-body")
    #expect(spool.names("new") == [] && spool.names("failed") == [] && spool.names("partial") == [])
  }

  /// XML shows its end.
  @Test(arguments: ["\u{FEFF}", "\n", "Warning: x in /y.php on line 3\n"])
  func `a feed that ends with the connection need not end in a newline`(start: String) async throws {
    let server = try FeedServer(start + trimmed(podcast(1...2)))
    server.dropLengths()
    try spool.order("pod", "url: \(server.url("/list"))\nevery: 6h\n")
    let result = try await spool.once()
    #expect(result.status == .exited(0) && spool.payloads == ["2.mp3"], "\(result)")
  }

  private func trimmed(_ text: String) -> String { String(text.reversed().drop { $0.isWhitespace }.reversed()) }

  @Test func `checks that fail for weeks leave no long file`() async throws {
    let server = try spool.subscribe(to: podcast(1...2), "every: 6h\n")
    _ = try await spool.once()
    let old = try spool.text("standing/pod")
    let failed = "failed: 2026-01-01T00:00:00Z attempt=1 class=temporary code=no-network burned=no at=0 reason=x\n"
    try spool.order("pod", old + String(repeating: failed, count: 4000))
    server.answer("404 Not Found")
    try await spool.once(exits: 75)
    let text = try spool.text("standing/pod")
    #expect(text.hasPrefix(old) && text.utf8.count < old.utf8.count + 1000, "\(text.utf8.count) bytes")
    #expect(try spool.lastFailure("standing/pod")["code"] == "http-404")
  }

  @Test func `what is no order goes to failed, and says why`() async throws {
    let usual = "url: http://h/x\nevery: 6h\n"
    let orders = [
      ("url: http://h/x\n", "needs `every:`"), ("every: 6h\n", "no URL"),
      ("url: http://h/x\nevery: often\n", "every: must be a time"), ("\(usual)size: 5\n", "one file"),
      ("\(usual)output: x\n", "is a directory"), ("\(usual)entries: html\n", "one of rss, atom"),
      ("\(usual)resolve: y\n", "belongs to a job"), ("\(usual)first: some\n", "or all"),
      ("\(usual)colour: red\n", "unknown key"), ("url: gopher://h/x\nevery: 6h\n", "the scheme is not one of"),
      ("url: sftp://h/x\nevery: 6h\n", "not enabled"), ("\(usual)expires: 2020-01-01\n", "expired"),
    ]
    for (number, order) in orders.enumerated() { try spool.order("x\(number)", order.0) }
    let result = try await spool.once(exits: 1)
    for (number, order) in orders.enumerated() {
      let line = result.errors.split(separator: "\n").first { $0.hasPrefix("spoolrun: x\(number): ") } ?? ""
      #expect(line.contains(order.1), "\(order): \(result)")
    }
    #expect(spool.names("standing") == [] && spool.names("failed").count == orders.count)
  }

  /// Whoever may drop jobs may not have the worker fetch for ever.
  @Test(arguments: ["new", "urgent"])
  func `a standing order cannot be dropped`(directory: String) async throws {
    try spool.write("\(directory)/x", "url: http://127.0.0.1:1/x\nevery: 1s\n")
    try setModificationTime(spool.path("\(directory)/x"), secondsFromNow: -60)
    try await spool.once().exits(1, saying: "belong to a subscription")
    // Corrected by its owner.
    try await spoolrun("retry", "--spool", spool.root, "x").exits(0)
    #expect(spool.names("standing") == ["x"])
  }

  @Test func `an order that is still being written waits`() async throws {
    try await replay {
      let spool = try TemporarySpool()
      let began = ContinuousClock.now
      try spool.order("x", "url: http://127.0.0.1:1/x\nevery: 6")
      try setModificationTime(spool.path("standing/x"), secondsFromNow: 0)
      let result = try await spool.once()
      // The machine stood still until its writer counts as dead.
      if ContinuousClock.now - began > .seconds(8) { return false }
      #expect(result.errors.contains("no newline") && spool.names("standing") == ["x"], "\(result)")
      return true
    }
  }

  // MARK: the program that reads lists

  /// - Returns: what spoolrun-entries says of what a shell's command prints.
  private func read(_ command: String) async throws -> CommandResult {
    let program = try productPath("spoolrun-entries")
    return try await run(["/bin/bash", "-c", "\(command) | '\(program)'"], environment: testEnvironment)
  }

  @Test(arguments: [
    // A gigabyte that takes a few megabytes on the way: members of 32 MiB (RFC 1952 section 2.2).
    (
      "blanks=$(mktemp); head -c 32M /dev/zero | tr '\\0' ' ' | gzip -1 >$blanks; "
        + "(printf '<rss><channel>' | gzip; for _ in {1..32}; do cat $blanks; done; rm $blanks)",
      "longer than 512 MiB"
    ),
    ("(printf '<rss a=\"'; head -c 400M /dev/zero | tr '\\0' 'x')", "a tag or comment of over 1 MiB"),
    ("(printf '<rss><!--'; head -c 400M /dev/zero | tr '\\0' 'x')", "a tag or comment of over 1 MiB"),
    (
      "(printf '<rss><channel>'; yes '<item><enclosure url=\"a\"/></item>' | head -n 200000)",
      "more than 100000 entries"
    ),
    ("yes http://h/a", "more than 100000 entries"),
    ("printf '<rss a=\"\\xff\"'", "XML: the text ends within a tag"),
    ("printf '\\x1f\\x8b\\x08\\x00garbage'", "gzipped data"),
  ])
  func `hostile lists end the program, with little memory and time`(command: String, reason: String) async throws {
    let result = try await read(command)
    #expect(result.status != .exited(0) && result.output == "" && result.errors.contains(reason), "\(result)")
  }

  @Test func `the program prints a list that add can take`() async throws {
    let feed = podcast(1...2).replacing("\"", with: "\\\"").replacing("\n", with: " ").replacing("%", with: "%%")
    let result = try await read("printf \"\(feed)\"")
    #expect(result.status == .exited(0) && result.errors == "", "\(result)")
    #expect(result.output.contains("# entry: id=episode-2 date=2026-11-03T06:00:00Z\nurl: /audio/2.mp3\n\n"))
    let program = try productPath("spoolrun-entries")
    try await run([program, "--entries", "html"]).exits(64)
    try await run([program, nowhere]).exits(66)
  }
}
