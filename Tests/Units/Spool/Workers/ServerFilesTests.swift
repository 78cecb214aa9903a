import Glibc
import TestSupport
import Testing

@testable import Spool

/// The files in `servers/`.
@Suite struct ServerFilesTests {
  private static let noon = Timestamp.now()

  private func note(_ server: String = "https://a.example:443", reason: String = "it said 429") -> ServerNote {
    ServerNote(
      server: server,
      rests: [Self.rest(reason, host: "alpha"), Self.rest("no route", host: nil)], answered: Self.noon + -10, bears: 2,
      pause: 250)
  }

  private static func rest(_ reason: String, host: String?) -> ServerNote.Rest {
    ServerNote.Rest(
      since: noon, failed: noon + 5, until: noon + 60, cause: "asked", code: "http-429", reason: reason, failures: 3,
      url: 7, host: host)
  }

  @Test func whatIsWrittenIsRead() throws {
    let fixture = try Fixture()
    let files = ServerFiles(fixture.spool)
    #expect(try files.all().isEmpty && files.stamp() == nil, "made when it is first needed")
    for note in [
      note(reason: "a \"b\"\n\u{1b}"), ServerNote(server: "http://b:80", bears: 1),
    ] {
      try files.write(note, end: Self.noon.seconds + 60)
      let seen = try files.read(ServerFiles.name(of: note.server))
      #expect(seen?.note == note && seen?.modified == Self.noon.seconds + 60)
    }
    #expect(try Set(files.all().map(\.name.display)) == ["https-a.example-443", "http-b-80"])
    #expect(try files.save(ServerNote(server: "http://b:80"), of: "alpha", isOfAll: false) == nil)
    #expect(try files.all().count == 1 && fixture.names("tmp") == [])
  }

  @Test(arguments: [
    ("h", "http://h:80", true), ("h", "https://u:p@H:8443/x", true), ("h:80", "http://h/x", true),
    ("h:80", "https://h/x", false), ("[::1]", "http://[::1]:80", true), ("::1", "http://[::1]/x", true),
    ("[::1]:80", "http://[::1]/x", true), ("[::1]:81", "http://[::1]/x", false), ("p:3128", "proxy://p:3128", true),
    ("[", "http://[::1]/x", false),
  ])
  func `a server is meant by its host, with the port or without`(host: String, url: String, isMeant: Bool) {
    #expect(ServerNote.isMeant(by: host, url) == isMeant)
  }

  /// What one host cannot reach stays when another one writes what it knows.
  @Test func eachHostHasItsRest() throws {
    let fixture = try Fixture()
    let files = ServerFiles(fixture.spool)
    let (server, now) = ("http://b:80", fixture.spool.now())
    func note(_ host: String?, until: Int) -> ServerNote {
      let rest = ServerNote.Rest(
        since: now, failed: now, until: now + Int64(until), cause: "unreachable", code: "connect", reason: "no route",
        failures: 1, host: host)
      return ServerNote(server: server, rests: [rest])
    }
    _ = try files.save(note("alpha", until: 500), of: "alpha", isOfAll: false)
    let seen = try files.save(note("beta", until: 90), of: "beta", isOfAll: false)
    #expect(seen?.note?.rest(of: "alpha")?.until == now + 500 && seen?.note?.rest(of: "beta")?.until == now + 90)
    #expect(seen?.modified == now.seconds + 500 && seen?.note?.rest(of: "gamma") == nil)
    // One that all hosts have to heed.
    let asked = try files.save(note(nil, until: 60), of: "beta", isOfAll: true)
    #expect(asked?.note?.rest(of: "gamma")?.until == now + 60 && asked?.note?.rests.count == 2)
    // What gamma cannot reach, and reaches again, says nothing of it.
    for (until, longest) in [(30, 60), (90, 90)] {
      let both = try files.save(note("gamma", until: until), of: "gamma", isOfAll: false)
      #expect(both?.note?.rest(of: "gamma")?.until == now + Int64(longest) && both?.note?.rests.count == 3)
    }
    let left = try files.save(ServerNote(server: server), of: "gamma", isOfAll: false)
    #expect(left?.note?.rest(of: "beta")?.until == now + 60 && left?.note?.rests.count == 2)
    let over = try files.save(ServerNote(server: server), of: "gamma", isOfAll: true)
    #expect(over?.note?.rests.map(\.host) == ["alpha"])
    // A person has ended the rests of all.
    try files.write(#require(asked?.note), end: now.seconds)
    #expect(try files.save(ServerNote(server: server), of: "beta", isOfAll: false) == nil && files.all().isEmpty)
  }

  /// A person may make it shorter, and nobody longer.
  @Test(arguments: [(30, 30), (60, 60), (9999, 60)])
  func theTimeEndsTheRest(modified: Int64, end: Int64) throws {
    let fixture = try Fixture()
    try ServerFiles(fixture.spool).write(note(), end: Self.noon.seconds + modified)
    let seen = try #require(ServerFiles(fixture.spool).all().first)
    #expect(seen.note?.rests.map(seen.end) == [Self.noon.seconds + end, Self.noon.seconds + end])
  }

  /// A clock was days ahead, and was set right since. The server's limits hold, and its rest is forgotten.
  @Test(arguments: [(0, 0), (-600, 5 * 86_400), (5 * 86_400, 5 * 86_400)] as [(Int64, Int64)])
  func aRestByAClockThatWasSetBackIsNone(since: Int64, failed: Int64) throws {
    let fixture = try Fixture()
    let (files, isAhead) = (ServerFiles(fixture.spool), failed > 0)
    let rest = ServerNote.Rest(
      since: Self.noon + since, failed: Self.noon + failed, until: Self.noon + failed + 60, cause: "asked",
      code: "http-429", reason: "later", failures: 3, host: nil)
    let note = ServerNote(server: "http://b:80", rests: [rest], answered: Self.noon + failed, bears: 2, pause: 250)
    try files.write(note, end: rest.until.seconds)
    let seen = try #require(files.all().first?.note)
    #expect(seen == (isAhead ? ServerNote(server: note.server, bears: 2, pause: 250) : note))
    // Nor does it stay in the file beside what is found now.
    let found = try files.save(ServerNote(server: note.server, bears: 3), of: "alpha", isOfAll: false)
    #expect(found?.note?.rests == (isAhead ? [] : [rest]))
  }

  @Test func othersFilesSayNothing() throws {
    let fixture = try Fixture()
    let files = ServerFiles(fixture.spool)
    try files.write(note(), end: Self.noon.seconds)
    let own = fixture.files.path("servers/https-a.example-443")
    let text = try readFile(own)
    try writeFile(fixture.files.path("servers/https-b.example-443"), text)
    try fixture.write("servers/junk", "junk")
    try writeFile(fixture.files.path("servers/long"), text + [UInt8](repeating: 0x23, count: 5000))
    mkdir(fixture.files.path("servers/directory"), 0o700)
    symlink(own, fixture.files.path("servers/link"))
    try fixture.write("servers/.slots", "")
    let seen = try files.all()
    #expect(seen.count == 6 && seen.compactMap(\.note) == [note()])
    chown(own, 12345, 12345)
    if geteuid() == 0 { #expect(try files.all().compactMap(\.note).isEmpty) }
    // They are replaced.
    try files.write(note(), end: Self.noon.seconds)
    #expect(try files.all().compactMap(\.note) == [note()])
  }

  @Test(arguments: [
    "", "server: a", "server: http://a:1\n", "rests: x\n", "server: http://a:1\nrests: soon until=x cause=asked\n",
    "server: http://a:1\nbears: 2", "server\nbears: 2\n",
  ])
  func whatIsNoNote(text: String) { #expect(ServerNote(Array(text.utf8)) == nil) }

  /// A worker calculates with these.
  @Test func hugeNumbers() throws {
    let text = "server: http://a:1\npause: 9223372036854775807\nbears: 9223372036854775808\n"
    let note = try #require(ServerNote(Array(text.utf8)))
    #expect(note.pause == Int(Int32.max) && note.bears == Int(Int32.max))
  }

  @Test func laterLinesAreSkipped() {
    let text = note().text + "pace: 3 per=10s\n"
    #expect(ServerNote(Array(text.utf8)) == note())
  }

  @Test func names() {
    #expect(ServerFiles.name(of: "http://[::1]:8080").display.hasPrefix("http-1-8080-"))
    #expect(ServerFiles.name(of: "proxy://p.example:3128").display == "proxy-p.example-3128")
    #expect(ServerFiles.name(of: "https://\(String(repeating: "a", count: 500)):443").bytes.count < 200)
    for (server, shown) in [
      ("https://a:443", "https://a"), ("http://a:443", "http://a:443"), ("ftp://a:21", "ftp://a"),
    ] {
      #expect(ServerNote(server: server, bears: 1).shown == shown)
    }
  }

  @Test(arguments: [
    ("[::1]:80", "[1::]:80"), ("[1::2]:80", "[1:2::]:80"), ("[::1]:80", "1:80"), ("é:80", "ö:80"), ("%:80", "$:80"),
    ("\(String(repeating: "a", count: 300))a:80", "\(String(repeating: "a", count: 300))b:80"),
  ])
  func `no two servers share a file`(one: String, other: String) throws {
    let fixture = try Fixture()
    let files = ServerFiles(fixture.spool)
    for host in [one, other] { try files.write(note("http://\(host)"), end: Self.noon.seconds + 60) }
    #expect(try Set(files.all().compactMap(\.note?.server)) == ["http://\(one)", "http://\(other)"])
  }

  @Test func oldOnesAreSwept() throws {
    let fixture = try Fixture()
    let files = ServerFiles(fixture.spool)
    try files.write(note(), end: Timestamp.now().seconds - 8 * 86_400)
    try files.write(note("http://b:80"), end: Timestamp.now().seconds - 86_400)
    try files.sweep()
    #expect(fixture.names("servers") == ["http-b-80"])
    #expect(try files.forget { $0.shown == "http://b" } == 1)
    #expect(fixture.names("servers") == [])
  }
}
