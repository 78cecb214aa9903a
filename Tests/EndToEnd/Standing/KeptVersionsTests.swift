import Glibc
import TestSupport
import Testing

/// `keep: N`: the last N versions or episodes stay.
@Suite struct KeptVersionsTests {
  private let spool: TemporarySpool
  private let server: FeedServer

  init() throws { (spool, server) = (try TemporarySpool(), try FeedServer("one")) }

  private func order(_ lines: String) throws {
    try spool.order("geo", "url: \(server.url("/list.mmdb"))\nevery: 1d\noutput: geo/\n\(lines)")
  }

  @discardableResult private func check() async throws -> CommandResult {
    try spool.makeOrderDue("geo")
    return try await spoolrun("--once", "-v", spool.root)
  }

  /// Versions are named by the second.
  @discardableResult private func publish(_ texts: String...) async throws -> CommandResult {
    var result: CommandResult?
    for text in texts {
      server.put(text)
      try await nextSecond()
      result = try await check()
      #expect(result?.status == .exited(0), "\(result as Any)")
    }
    return try #require(result)
  }

  private func nextSecond() async throws {
    let now = time(nil)
    try await waitUntil("the next second") { time(nil) > now }
  }

  /// Their contents, the oldest first, and at last that of the file itself.
  private func contents() throws -> [String] {
    try spool.payloads.sorted { ($0.contains("~") ? 0 : 1, $0) < ($1.contains("~") ? 0 : 1, $1) }.map {
      String(decoding: try spool.payload($0) ?? [], as: UTF8.self)
    }
  }

  private func oldest() throws -> String {
    spool.path("files/\(try #require(spool.payloads.filter { $0.contains("~") }.min()))")
  }

  private func sound() async throws {
    let result = try await spoolrun("verify", "--spool", spool.root)
    #expect(result.status == .exited(0) && result.output == "", "\(result)")
  }

  @Test func `the last versions of a file are kept beside it`() async throws {
    try order("entries: file\nkeep: 2\n")
    try await publish("one", "two")
    #expect(try contents() == ["one", "two", "two"])
    try await publish("three")
    #expect(try contents() == ["two", "three", "three"] && spool.names("done").count == 2)
    #expect(spool.payloads.contains("geo/list.mmdb"))
    #expect(
      spool.payloads.allSatisfy { $0.wholeMatch(of: /geo\/list(~\d{8}T\d{6}Z)?\.mmdb/) != nil }, "\(spool.payloads)")
    try await sound()
    try await check()
    #expect(try contents() == ["two", "three", "three"], "nothing is new")
  }

  /// It may have been wrong when the last versions came.
  @Test func `which version is older is not a matter of the clock`() async throws {
    try order("entries: file\nkeep: 2\n")
    try await publish("one", "two")
    for name in spool.names("done") {
      let receipt = try spool.text("done/\(name)")
      let later = receipt.replacing(/\ndone: 20\d\d/, with: "\ndone: 2099")
      try #require(later != receipt)
      try spool.write("done/\(name)", later)
    }
    try await publish("three")
    #expect(try contents() == ["two", "three", "three"] && spool.names("done").count == 2)
    try await sound()
  }

  @Test func `one version is one file, with one receipt`() async throws {
    try order("entries: file\nkeep: 1\n")
    try await publish("one", "two", "three")
    #expect(spool.payloads == ["geo/list.mmdb"] && spool.names("done").count == 1)
    try await sound()
  }

  @Test func `keep can be changed at any time`() async throws {
    try order("entries: file\n")
    try await publish("one", "two")
    try spool.setOrder("geo") { $0 + "keep: 2\n" }
    try await publish("three", "four", "five")
    #expect(try contents() == ["four", "five", "five"] && spool.names("done").count == 2)
    try await sound()
    try spool.setOrder("geo") { $0.replacing("keep: 2\n", with: "keep: 1\n") }
    try await publish("six")
    #expect(try contents() == ["six"] && spool.names("done").count == 1)
    try await sound()
  }

  @Test func `the last episodes are kept, and no more are fetched`() async throws {
    server.put(podcast(1...5))
    try order("first: all\nkeep: 2\n")
    try await check()
    #expect(spool.payloads == ["geo/4.mp3", "geo/5.mp3"])
    server.put(podcast(1...6))
    try await check()
    #expect(spool.payloads == ["geo/5.mp3", "geo/6.mp3"] && spool.names("done").count == 2)
    server.put(podcast(1...9))
    try await check()
    #expect(spool.payloads == ["geo/8.mp3", "geo/9.mp3"] && spool.names("done").count == 2)
    server.put(podcast(1...9))
    try await check()
    #expect(server.media.sorted() == [4, 5, 6, 8, 9].map { "/audio/\($0).mp3" }, "nothing twice")
    try await sound()
  }

  @Test func `files of a person's job or of an earlier subscription of the same name stay`() async throws {
    server.put(podcast(1...3))
    // As many bytes as a key has.
    try spool.drop("geo-2026b.tar.gz.asc", "\(server.url("/audio/9.mp3"))\noutput: mine\n")
    try order("first: all\n")
    try await check()
    #expect(unlink(spool.path("standing/geo")) == 0)
    server.put(podcast(5...6))
    try order("first: all\nkeep: 1\n")
    try await check()
    server.put(podcast(5...7))
    try await check()
    #expect(spool.payloads == ["geo/1.mp3", "geo/2.mp3", "geo/3.mp3", "geo/7.mp3", "mine"])
  }

  /// Which of them was done first is by chance.
  @Test func `the oldest is the one that is last in the feed`() async throws {
    server.put(podcast(1...3))
    server.breakMedia(["/audio/2.mp3"])
    try order("first: all\nkeep: 3\nattempts: 9\n")
    try await check()
    #expect(spool.payloads == ["geo/1.mp3", "geo/3.mp3"])
    server.breakMedia([])
    for name in spool.names("partial") where !name.hasSuffix(".part") { try spool.makeDue(name) }
    try await check()
    server.put(podcast(1...4))
    try await check()
    server.put(podcast(1...5))
    try await check()
    #expect(spool.payloads == ["geo/3.mp3", "geo/4.mp3", "geo/5.mp3"])
  }

  @Test func `a file that a person has changed stays, and is told once`() async throws {
    try order("entries: file\nkeep: 2\n")
    try await publish("one", "two")
    let path = try oldest()
    try writeFile(path, "ONE")
    var result = try await publish("three")
    #expect(result.errors.contains("not-removed") && result.errors.contains("changed since"), "\(result)")
    #expect(try readFile(path) == Array("ONE".utf8) && spool.names("done").count == 2)
    result = try await check()
    #expect(!result.errors.contains("not-removed"), "\(result)")
    #expect(try contents() == ["ONE", "two", "three", "three"])
    try await sound()
  }

  @Test func `what a link leads to stays`() async throws {
    try order("entries: file\nkeep: 2\n")
    try await publish("one", "two")
    let (path, other) = (try oldest(), spool.path("files/other"))
    try #require(rename(path, other) == 0 && symlink(other, path) == 0)
    try await publish("three")
    #expect(try readFile(other) == Array("one".utf8) && spool.names("done").count == 2)
    // Of the directory, too.
    server.put(podcast(1...2))
    try spool.order("pod", "url: \(server.url("/list"))\nevery: 1d\nfirst: all\noutput: pod/\n")
    _ = try await spool.once()
    try spool.setOrder("pod") { $0 + "keep: 1\n" }
    try #require(rename(spool.path("files/pod"), spool.path("files/moved")) == 0)
    try #require(symlink(spool.path("files/moved"), spool.path("files/pod")) == 0)
    let receipts = spool.names("done")
    try spool.makeOrderDue("pod")
    let result = try await spool.once()
    #expect(result.errors.contains("not-removed"), "\(result)")
    #expect(fileStatus(spool.path("files/moved/1.mp3")) != nil && spool.names("done") == receipts)
  }

  @Test func `what is another job's stays`() async throws {
    try order("entries: file\nkeep: 2\n")
    try await publish("one", "two")
    let path = try oldest()
    let name = try #require(path.split(separator: "/").last)
    try spool.drop(
      "mine",
      "url: \(server.url("/x"))\noutput: geo/\(name)\nsize: 3\ncrc32: \(hex8(independentCRC32(Array("one".utf8))))\n")
    _ = try await spool.once()
    #expect(spool.places(of: "mine") == ["done/mine"])
    try await publish("three")
    #expect(try readFile(path) == Array("one".utf8) && spool.names("done").count == 3)
    try await sound()
    // One that waits may be about to find it: from then on it is that one's.
    let second = spool.payloads.filter { $0.contains("~") }.sorted()[1]
    try spool.drop("wants", "url: \(server.url("/x"))\noutput: \(second)\n")
    try spool.move("new/wants", "hold/wants")
    try await publish("four")
    #expect(spool.payloads.contains(second) && spool.names("done").count == 3)
  }

  @Test func `the file itself is a person's until a newer version comes`() async throws {
    try order("entries: file\nkeep: 2\n")
    try await publish("one")
    let path = spool.path("files/geo/list.mmdb")
    unlink(path)
    try await check()
    #expect(try readFile(path) == Array("one".utf8), "it is kept current")
    unlink(path)
    try await nextSecond()
    try writeFile(path, "mine")
    try await check()
    #expect(try contents() == ["one", "mine"])
    try await publish("two")
    #expect(try contents() == ["one", "two", "two"])
  }

  /// A crash came between the two.
  @Test func `a receipt whose file is gone goes as well, unless nothing is there`() async throws {
    try order("entries: file\nkeep: 1\n")
    try await publish("one")
    try spool.setOrder("geo") { $0.replacing("keep: 1\n", with: "keep: 4\n") }
    try await publish("two", "three")
    unlink(try oldest())
    try spool.setOrder("geo") { $0.replacing("keep: 4\n", with: "keep: 2\n") }
    try await publish("four")
    #expect(try contents() == ["three", "four", "four"] && spool.names("done").count == 2)
    // As if the disk were not mounted.
    try #require(rename(spool.path("files/geo"), spool.path("files/away")) == 0)
    try spool.setOrder("geo") { $0.replacing("keep: 2\n", with: "keep: 1\n") }
    try await check()
    #expect(spool.names("done").count == 2)
  }

  @Test func `archived receipts count`() async throws {
    try order("entries: file\nkeep: 2\n")
    try await publish("one", "two")
    for name in spool.names("done") { try setModificationTime(spool.path("done/\(name)"), secondsFromNow: -9000) }
    try await spoolrun("clean", "--archive", "1h", spool.root).exits(0)
    #expect(spool.names("done") == ["archive"])
    try await publish("three")
    #expect(try contents() == ["two", "three", "three"] && spool.names("done").count == 2)
    try await sound()
  }

  @Test func `files may be in another directory`() async throws {
    let other = try TemporaryDirectory()
    try spool.order("geo", "url: \(server.url("/list.mmdb"))\nevery: 1d\nentries: file\nkeep: 2\n")
    for text in ["one", "two", "three"] {
      server.put(text)
      try await nextSecond()
      try spool.makeOrderDue("geo")
      try await spoolrun("--once", "--directory", other.path, spool.root).exits(0)
    }
    let contents = try filesBelow(other.path).map {
      try readText("\(other.path)/\($0)")
    }
    #expect(contents.sorted() == ["three", "three", "two"] && spool.names("done").count == 2)
    try await sound()
  }

  @Test func `subscribe takes it`() async throws {
    let result = try await spoolrun(
      "subscribe", "--spool", spool.root, "--keep", "3", "--name", "x", server.url("/list"))
    #expect(result.status == .exited(0), "\(result)")
    #expect(try spool.text("standing/x").contains("\nkeep: 3\n"))
    try await spoolrun("subscribe", "--spool", spool.root, "--keep", "0", server.url("/y")).exits(64)
  }
}

extension TemporarySpool {
  /// Changes the text of a standing order as an editor does.
  fileprivate func setOrder(_ name: String, _ change: (String) -> String) throws {
    let text = try readText(path("standing/\(name)"))
    try writeFile(path("standing/\(name)"), change(text))
  }
}
