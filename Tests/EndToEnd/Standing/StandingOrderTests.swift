import Glibc
import TestSupport
import Testing

/// Standing orders: a list is looked at, and what is new in it is fetched.
@Suite struct StandingOrderTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  @Test func `new episodes come by themselves, each once`() async throws {
    let server = try spool.subscribe(to: podcast(1...3), "every: 1s\noutput: pods/\n")
    let worker = try startSpoolrun(["-v", spool.root])
    try await waitUntil("the newest episode") { spool.payloads == ["pods/3.mp3"] }
    let before = server.checks.count
    try await waitUntil("an answer that nothing has changed") {
      server.checks.count > before && server.checks.last?.value("If-None-Match") != nil
    }
    server.put(podcast(2...5))
    try await waitUntil("two more") { spool.payloads == ["pods/3.mp3", "pods/4.mp3", "pods/5.mp3"] }
    // The jobs come before the record of them.
    try await waitUntil("the check is recorded") {
      (try? spool.lines("standing/pod"))?.contains { $0.key == "checked" && $0["entries"] == "4" } == true
    }
    let result = try await worker.stop()
    #expect([.exited(0), .exited(75)].contains(result.status), "\(result)")
    #expect(server.media.sorted() == ["/audio/3.mp3", "/audio/4.mp3", "/audio/5.mp3"])
    let lines = try spool.lines("standing/pod")
    #expect(lines.contains { $0.key == "checked" && $0["entries"] == "4" } && lines.contains { $0.key == "seen" })
    #expect(spool.names("done").allSatisfy { $0.hasPrefix("pod-") && $0.utf8.count == 20 })
  }

  @Test func `--once looks at what is due, and runs what comes of it`() async throws {
    let server = try spool.subscribe(to: podcast(1...3), "every: 6h\nfirst: all\n")
    var result = try await spool.once()
    #expect(result.status == .exited(0) && result.errors == "", "\(result)")
    #expect(spool.payloads == ["1.mp3", "2.mp3", "3.mp3"])
    let due = Int(fileStatus(spool.path("standing/pod"))!.st_mtim.tv_sec) - Int(time(nil))
    #expect((21_000...21_600).contains(due))
    // Not due.
    server.put(podcast(1...4))
    result = try await spool.once()
    #expect(result.status == .exited(0) && server.checks.count == 1)
    try await spoolrun("retry", "--spool", spool.root, "pod").exits(0)
    result = try await spool.once()
    #expect(result.status == .exited(0) && spool.payloads.count == 4, "\(result)")
    #expect(spool.names("tmp") == [] && spool.names("cur") == [])
  }

  /// As after a crash between the drop of the jobs and the record of them.
  @Test func `entries whose jobs exist are not fetched again`() async throws {
    let server = try FeedServer(podcast(1...3))
    let order = "url: \(server.url("/list"))\nevery: 6h\nfirst: all\n"
    try spool.order("pod", order)
    _ = try await spool.once()
    try spool.order("pod", order)
    try await spool.once(exits: 0)
    #expect(server.media.count == 3 && spool.names("done").count == 3 && server.checks.count == 2)
  }

  @Test func `a list of checksums that changes`() async throws {
    func sums(_ names: [String]) -> String {
      names.map { "\($0) \(hex8(independentCRC32(Array("/\($0)".utf8))))\n" }.joined()
    }
    let server = try FeedServer(sums(["r/one.iso"]))
    try spool.order("mirror", "url: \(server.url("/list.sfv"))\nevery: 1d\noutput: m/\nfirst: all\nmatch: *.iso\n")
    _ = try await spool.once()
    server.put(sums(["r/one.iso", "r/two.iso", "r/notes.txt"]))
    try spool.makeOrderDue("mirror")
    try await spool.once(exits: 0)
    #expect(spool.payloads == ["m/r/one.iso", "m/r/two.iso"] && server.media.count == 2)
  }

  @Test func `a list whose name says that its digests are others`() async throws {
    let server = try FeedServer("\(String(repeating: "ab", count: 64))  one.iso\n")
    try spool.order("mirror", "url: \(server.url("/list/B3SUMS"))\nevery: 1d\nfirst: all\n")
    let result = try await spool.once()
    #expect(result.errors.contains("b3sum by the list's name") && server.media.isEmpty, "\(result)")
    #expect(spool.names("new") == [] && spool.names("failed") == [])
  }

  @Test func `a docset is replaced by its new version when that is whole`() async throws {
    func docset(_ version: Int) -> String {
      let urls = ["a", "b"].map { "<url>/\($0)/\(version)/Lua.tgz</url>" }.joined()
      return "<entry><version>\(version)</version>\(urls)</entry>\n"
    }
    let server = try FeedServer(docset(1))
    try spool.order("lua", "url: \(server.url("/list/Lua.xml"))\nevery: 1d\noutput: docsets/\n")
    _ = try await spool.once()
    #expect(try spool.payload("docsets/Lua.tgz") == Array("/a/1/Lua.tgz".utf8))
    server.put(docset(2))
    server.breakMedia(["/a/2/Lua.tgz", "/b/2/Lua.tgz"])
    try spool.makeOrderDue("lua")
    try await spool.once(exits: 75)
    #expect(try spool.payload("docsets/Lua.tgz") == Array("/a/1/Lua.tgz".utf8))
    server.breakMedia(["/a/2/Lua.tgz"])
    for name in spool.names("partial") where !name.hasSuffix(".part") { try spool.makeDue(name) }
    try await spool.once(exits: 0)
    #expect(try spool.payload("docsets/Lua.tgz") == Array("/b/2/Lua.tgz".utf8))
  }

  @Test func `two workers look at a list once`() async throws {
    let server = try spool.subscribe(to: podcast(1...3), "every: 1d\nfirst: all\n")
    let workers = try (0..<3).map { _ in try startSpoolrun(["--once", spool.root]) }
    for worker in workers { _ = try await worker.result() }
    #expect(server.checks.count == 1 && server.media.count == 3)
    #expect(spool.names("standing") == ["pod"] && spool.names("cur") == [])
  }

  @Test func `without validators the list is compared by its entries`() async throws {
    let server = try FeedServer(podcast(1...2))
    server.dropValidators()
    try spool.order("pod", "url: \(server.url("/list"))\nevery: 1d\n")
    for _ in 0..<3 {
      try await spool.once(exits: 0)
      try spool.makeOrderDue("pod")
    }
    #expect(server.checks.count == 3 && server.media == ["/audio/2.mp3"])
  }

  /// A validator of another list would say that this one is unchanged.
  @Test func `a list that comes encoded is decoded`() async throws {
    let list = Array(podcast(1...2).utf8)
    let server = try ScriptedServer { request, reply in
      guard request.target == "/list" else { return try reply.respond("200 OK", body: Array(request.target.utf8)) }
      try reply.respond("200 OK", ["Content-Encoding: deflate"], body: storedDeflate(list))
    }
    try spool.order("pod", "url: \(server.url("/list"))\nevery: 6h\nfirst: all\n")
    let result = try await spool.once()
    #expect(result.status == .exited(0) && spool.payloads == ["1.mp3", "2.mp3"], "\(result)")
  }

  @Test func `an order with another URL asks for the whole list`() async throws {
    let server = try spool.subscribe(to: podcast(1...2), "every: 1d\n")
    _ = try await spool.once()
    let text = try spool.text("standing/pod")
    try spool.order("pod", text.replacing("/list\n", with: "/list2\n"))
    try await spool.once(exits: 0)
    #expect(server.checks.map(\.target) == ["/list", "/list2"] && server.checks[1].value("If-None-Match") == nil)
    #expect(try spool.lines("standing/pod").last { $0.key == "checked" }?["new"] == "0")
  }

  /// The list says where its files are. What the order knows is for the list's own host.
  @Test func `header fields go to the list's host only`() async throws {
    let server = try FeedServer()
    let other = try FeedServer()
    // Another name of this host is another origin.
    server.put("\(server.url("/own"))\n\(other.url("/other").replacing("127.0.0.1", with: "localhost"))\n")
    let order = "url: \(server.url("/list"))\nevery: 1d\nfirst: all\nheader: X-Key: secret\n"
    try spool.order("list", order)
    try await spool.once(exits: 0)
    #expect(server.checks[0].value("X-Key") == "secret" && server.requests("/own")[0].value("X-Key") == "secret")
    #expect(other.requests("/other").map { $0.value("X-Key") } == [nil])
  }
}

/// In one block that is not compressed (RFC 1950; RFC 1951, 3.2.4), so shorter than 64 KiB.
private func storedDeflate(_ bytes: [UInt8]) -> [UInt8] {
  let (low, high) = (UInt8(bytes.count & 0xFF), UInt8(bytes.count >> 8))
  let (a, b) = bytes.reduce((UInt32(1), UInt32(0))) { sums, byte in
    let a = (sums.0 + UInt32(byte)) % 65_521
    return (a, (sums.1 + a) % 65_521)
  }
  let sum = [b >> 8, b & 0xFF, a >> 8, a & 0xFF].map { UInt8($0) }
  return [0x78, 0x01, 0x01, low, high, ~low, ~high] + bytes + sum
}
