import Glibc
import Synchronization
import Testing
import TestSupport

@testable import LyingServer

/// One job over several connections, against servers and mirrors that do or don't play along.
@Suite struct SeveralConnectionsTests {
  /// 300 kB.
  private static let data = large(payload, count: 30)
  private static let previousData = large(previous, count: 30)
  /// Requests of 16 kB.
  private static let small = ["--once", "--chunk-size", "16k"]

  private func fetch(_ spool: TemporarySpool, _ options: String...) async throws -> CommandResult {
    try await spoolrun(Self.small + options + [spool.root])
  }

  private func isPublished(_ bytes: [UInt8], _ spool: TemporarySpool) throws -> Bool {
    try spool.payload("data") == bytes
  }

  /// The job's own number counts; the first request goes alone, then that many are under way at the same time.
  @Test func sideBySide() async throws {
    let all = try Gate()
    let waiting = Mutex(0)
    let server = try ScriptedServer { request, reply in
      if request.nth > 1, !all.isOpen {
        let isLast = waiting.withLock { waiting in
          waiting += 1
          return waiting == 4
        }
        if isLast { all.open() } else { try reply.stall(until: all) }
      }
      try Origin(bytes: Self.data).answer(request, reply)
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\nconnections: 4\n")
    let result = try await fetch(spool, "--connections", "2")
    #expect(try isPublished(Self.data, spool), "\(result)")
    #expect(server.requests.map(ask).first == "range 0-16383")
    #expect(Set(server.requests.map(\.connection)).count == 4)
    #expect(server.requests.allSatisfy { ($0.rangeEnd ?? .max) - ($0.rangeStart ?? 0) < 16384 })
  }

  /// A range that ends where numbers do.
  @Test func aRangeWithoutMeasure() async throws {
    let server = try ScriptedServer { _, reply in
      try reply.respond(
        "206 Partial Content", ["ETag: \"1\"", "Content-Range: bytes 0-18446744073709551615/*"], body: [1, 2, 3])
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\n")
    let result = try await fetch(spool, "--connections", "2")
    #expect(result.status == .exited(75) && spool.places(of: "job") == ["partial/job"], "\(result)")
  }

  @Test func oneMeansOne() async throws {
    let server = try ScriptedServer { try Origin(bytes: Self.data).answer($0, $1) }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\nconnections: 1\n")
    let result = try await fetch(spool, "--connections", "4")
    #expect(try isPublished(Self.data, spool), "\(result)")
    #expect(server.requests.map(ask) == ["plain"])
  }

  struct OnlyOne: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let script: ScriptedServer.Script
    let asks: [String]
  }

  static let serversForOne = [
    OnlyOne(
      testDescription: "knows no ranges",
      script: { _, reply in try reply.respond("200 OK", ["ETag: \(v1)"], body: data) },
      asks: ["range 0-16383"]),
    OnlyOne(
      testDescription: "weak ETag", script: { _ = try Origin(bytes: data, etag: "W/\(v1)").answer($0, $1) },
      asks: ["range 0-16383", "plain"]),
    OnlyOne(
      testDescription: "no validator", script: { _ = try Origin(bytes: data, etag: nil).answer($0, $1) },
      asks: ["range 0-16383", "plain"]),
    OnlyOne(
      testDescription: "all of it as a range",
      script: { _, reply in
        try reply.respond(
          "206 Partial Content", ["ETag: \(v1)", "Content-Range: \(Origin(bytes: data).contentRange(0))"], body: data)
      }, asks: ["range 0-16383"]),
    OnlyOne(
      testDescription: "416 for a first range",
      script: { request, reply in
        if request.rangeStart == nil {
          try Origin(bytes: data).answer(request, reply)
        } else {
          try reply.respond("416 Range Not Satisfiable", body: [])
        }
      }, asks: ["range 0-16383", "plain"]),
  ]

  @Test(arguments: serversForOne)
  func onlyOne(_ server: OnlyOne) async throws {
    let running = try ScriptedServer(server.script)
    let spool = try TemporarySpool()
    try spool.drop("job", "\(running.url("/data"))\n")
    let result = try await fetch(spool, "--connections", "4")
    #expect(try isPublished(Self.data, spool), "\(result)\n\(spool.listing(of: "job"))")
    #expect(running.requests.map(ask) == server.asks)
  }

  /// Does not honour If-Range, which shows only when a second piece is asked for: then without, and nothing is fetched
  /// twice.
  @Test func ifRangeIsIgnored() async throws {
    let server = try ScriptedServer { try Origin(bytes: Self.data, ifRange: .refused).answer($0, $1) }
    let spool = try TemporarySpool()
    try spool.drop("job", "\(server.url("/data"))\n")
    let result = try await fetch(spool, "--connections", "4")
    #expect(try isPublished(Self.data, spool), "\(result)")
    #expect(server.requests.filter { $0.value("if-range") != nil }.count <= 4)
    #expect(try spool.lines("done/job").last { $0.key == "response" }?["if-range"] == "ignored")
  }

  /// One request never gets an answer: long before its time-out of 60 s, its bytes are asked for on another connection.
  @Test func oneStalls() async throws {
    let server = try ScriptedServer { request, reply in
      if request.nth == 3 { try reply.stall() }
      try Origin(bytes: Self.data).answer(request, reply)
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "\(server.url("/data"))\n")
    let result = try await fetch(spool, "--connections", "4")
    #expect(try isPublished(Self.data, spool), "\(result)")
    let stalled = server.requests.first { $0.nth == 3 }?.rangeEnd
    #expect(server.requests.filter { $0.rangeEnd == stalled }.count == 2)
  }

  /// Each connection breaks off in the middle of what it was asked for, and goes on there.
  @Test func allAreCut() async throws {
    let server = try ScriptedServer { try Origin(bytes: Self.data).answerAndCut($0, $1, after: 9000) }
    let spool = try TemporarySpool()
    try spool.drop("job", "\(server.url("/data"))\n")
    let result = try await fetch(spool, "--connections", "4")
    #expect(try isPublished(Self.data, spool), "\(result)")
    let receipt = try spool.lines("done/job").last { $0.key == "done" }
    #expect(receipt?["attempts"] == "1")
  }

  /// Refusals cost connections, not the job, as long as one is served.
  @Test(arguments: ["429 Too Many Requests", "503 Service Unavailable", "403 Forbidden"])
  func tooManyForTheServer(status: String) async throws {
    let served = Mutex<Int?>(nil)
    let isRefused = try Gate()
    let server = try ScriptedServer { request, reply in
      let isServed = served.withLock { served in
        if request.nth > 1, served == nil { served = request.connection }
        return request.nth == 1 || served == request.connection
      }
      if isServed {
        // Else it might bring all before another one is refused.
        if request.nth > 1, !isRefused.isOpen { try reply.stall(until: isRefused) }
        try Origin(bytes: Self.data).answer(request, reply)
      } else {
        try reply.respond(status, body: [])
        isRefused.open()
      }
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "\(server.url("/data"))\n")
    let result = try await fetch(spool, "--verbose", "--connections", "4")
    #expect(try isPublished(Self.data, spool), "\(result)")
    #expect(try spool.lines("done/job").last { $0.key == "done" }?["attempts"] == "1")
    #expect(result.errors.contains("fewer-connections"))
  }

  // MARK: interrupted

  /// A worker with some data and all its connections waiting for more.
  private func interrupted(_ connections: Int, _ end: @Sendable (TemporarySpool, RunningCommand) throws -> Void)
    async throws -> (spool: TemporarySpool, server: ScriptedServer, held: [UInt8])
  {
    let isOver = try Gate()
    let server = try ScriptedServer { request, reply in
      // The first six pieces, and then half of each.
      if request.rangeStart ?? 0 < 6 * 16384 || isOver.isOpen {
        return _ = try Origin(bytes: Self.data).answer(request, reply)
      }
      try Origin(bytes: Self.data).answer(request, reply, limit: 8000)
      try reply.stall()
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "\(server.url("/data"))\n")
    let worker = try startSpoolrun(Self.small + ["--connections", "\(connections)", spool.root])
    let part = spool.path("partial/job.part")
    try await waitUntil("all connections wait") {
      server.requests.count >= 6 + connections && (fileStatus(part)?.st_size ?? 0) > 6 * 16384
    }
    isOver.open()
    try end(spool, worker)
    _ = try await worker.result()
    let held = try readFile(part)
    let isPrefix = Self.data.starts(with: held) && held.count < Self.data.count
    #expect(isPrefix, "\(held.count) bytes")
    return (spool, server, held)
  }

  /// What came early is lost; the data is a prefix, and any number of connections goes on from its end.
  @Test(arguments: [(4, 1), (4, 2), (2, 8)])
  func killed(before: Int, after: Int) async throws {
    let (spool, server, held) = try await interrupted(before) { $1.send(signal: SIGKILL) }
    let asked = server.requests.count
    let result = try await fetch(spool, "--connections", "\(after)")
    #expect(try isPublished(Self.data, spool), "\(result)")
    #expect(server.requests[asked].rangeStart == held.count, "resumes at the length of the data")
  }

  /// All connections of a job that is set aside end with it.
  @Test func held() async throws {
    let (spool, _, held) = try await interrupted(4) { spool, _ in
      guard let claim = spool.places(of: "job").first else { throw TestSupportError("no job") }
      #expect(rename(spool.path(claim), spool.path("hold/job")) == 0)
    }
    #expect(spool.places(of: "job") == ["hold/job"])
    let interrupted = try spool.lines("hold/job").last { $0.key == "interrupted" }
    #expect(interrupted?["at"] == "\(held.count)" && interrupted?["crc32"] == hex8(independentCRC32(held)))
  }

  // MARK: a file that changes

  /// From some request on, the server has another version.
  private func changingServer(_ origin: Origin, after count: Int) throws -> ScriptedServer {
    try ScriptedServer { request, reply in
      try (request.nth <= count ? Origin(bytes: Self.previousData) : origin).answer(request, reply)
    }
  }

  @Test(arguments: [2, 3, 7, 12], [Origin.IfRange.honoured, .ignored, .refused])
  func changes(after count: Int, ifRange: Origin.IfRange) async throws {
    let server = try changingServer(Origin(bytes: Self.data, etag: v2, ifRange: ifRange), after: count)
    let spool = try TemporarySpool()
    try spool.drop("job", "\(server.url("/data"))\n")
    let result = try await fetch(spool, "--connections", "4")
    #expect(try isPublished(Self.data, spool), "\(result)\n\(server.requests.map(ask))")
  }

  /// Nothing in the answers tells; the declared checksum does.
  @Test func changesUnderOneETag() async throws {
    let server = try changingServer(Origin(bytes: Self.data), after: 7)
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\ncrc32: \(hex8(independentCRC32(Self.data)))\n")
    #expect(try await fetch(spool, "--connections", "4").status == .exited(75))
    #expect(try spool.lines("partial/job").last { $0.key == "failed" }?["code"] == "mismatch-crc32")
    #expect(spool.payloads == [])
    try spool.makeDue("job")
    let result = try await fetch(spool, "--connections", "4")
    #expect(try isPublished(Self.data, spool), "\(result)")
  }

  // MARK: mirrors

  private func fetchFromTwo(_ first: Origin, _ second: Origin, _ lines: String = "") async throws
    -> (spool: TemporarySpool, asked: [Int], log: String)
  {
    // Else the first might bring all before the second one has been heard.
    let isHeard = try Gate()
    let servers = try [
      ScriptedServer { request, reply in
        if request.nth > 1, !isHeard.isOpen { try reply.stall(until: isHeard) }
        try first.answer(request, reply)
      },
      ScriptedServer { request, reply in
        try second.answer(request, reply)
        isHeard.open()
      },
    ]
    let spool = try TemporarySpool()
    try spool.drop("job", servers.map { "url: \($0.url("/data"))\n" }.joined() + lines)
    let result = try await fetch(spool, "--verbose", "--connections", "4")
    return (spool, servers.map(\.requests.count), result.errors)
  }

  private static let checksum = "crc32: \(hex8(independentCRC32(data)))\n"

  /// An ETag is unique within one resource only: without a checksum nothing proves that two servers have the same file.
  @Test func mirrorsAreNotJoinedOnTrust() async throws {
    let servers = try [Self.data, Self.previousData].map { bytes in
      try ScriptedServer { try Origin(bytes: bytes).answer($0, $1) }
    }
    let spool = try TemporarySpool()
    try spool.drop("job", servers.map { "url: \($0.url("/data"))\n" }.joined())
    let result = try await fetch(spool, "--verbose", "--connections", "4")
    #expect(try isPublished(Self.data, spool), "\(result)")
    #expect(servers[0].requests.count > 1 && servers[1].requests.isEmpty)
  }

  /// Their validators mean nothing to each other, but a checksum will tell.
  /// What is for one host goes to no other, whichever connection asks.
  @Test func headersOfOneMirror() async throws {
    let server = try ScriptedServer { request, reply in
      // Each has to bring its part.
      try reply.pause(milliseconds: 20)
      try Origin(bytes: Self.data).answer(request, reply)
    }
    let spool = try TemporarySpool()
    try writeFile(spool.path("defaults"), Array("header@LOCALHOST: X-Token: s3cret\nheader: X-All: yes\n".utf8))
    let other = server.url("/data").replacing("127.0.0.1", with: "localhost")
    try spool.drop("job", "url: \(server.url("/data"))\nurl: \(other)\ncrc32: \(hex8(independentCRC32(Self.data)))\n")
    let result = try await fetch(spool, "--connections", "4")
    #expect(try isPublished(Self.data, spool), "\(result)")
    let isTold = Dictionary(grouping: server.requests) { $0.value("host")?.hasPrefix("localhost") == true }
      .mapValues { $0.map { $0.value("x-token") } }
    #expect(isTold[true]?.allSatisfy { $0 == "s3cret" } == true && isTold[false]?.allSatisfy { $0 == nil } == true)
    #expect(server.requests.allSatisfy { $0.value("x-all") == "yes" })
  }

  @Test func mirrorsShareByChecksum() async throws {
    let (spool, asked, log) = try await fetchFromTwo(
      Origin(bytes: Self.data), Origin(bytes: Self.data, etag: v2), Self.checksum)
    #expect(try isPublished(Self.data, spool), "\(log)")
    #expect(asked.allSatisfy { $0 > 1 } && !log.contains("mirror-dropped"))
  }

  @Test func aMirrorOfAnotherSizeIsDropped() async throws {
    let (spool, asked, log) = try await fetchFromTwo(
      Origin(bytes: Self.data), Origin(bytes: Array(Self.previousData.dropLast())), Self.checksum)
    #expect(try isPublished(Self.data, spool), "\(log)")
    #expect(log.contains("mirror-dropped"))
    #expect(asked[1] <= 2, "once for each connection that led there, and no more")
  }

  @Test func aDeadMirrorIsDropped() async throws {
    let isGone = try Gate()
    let dead = try ScriptedServer { _, reply in
      defer { isGone.open() }
      try reply.finish()
    }
    let server = try ScriptedServer { request, reply in
      if request.nth > 1, !isGone.isOpen { try reply.stall(until: isGone) }
      try Origin(bytes: Self.data).answer(request, reply)
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\nurl: \(dead.url("/data"))\n\(Self.checksum)")
    let result = try await fetch(spool, "--verbose", "--connections", "4")
    #expect(try isPublished(Self.data, spool), "\(result)")
    #expect(result.errors.contains("mirror-dropped") && !result.errors.contains("fewer-connections"))
  }

  /// One that lies about the bytes spoils the first attempt, which the checksum finds out; after that each has to stand
  /// for all of them.
  @Test func aMirrorThatLiesSpoilsOneAttempt() async throws {
    let servers = try [Self.data, Self.previousData].map { bytes in
      try ScriptedServer { try Origin(bytes: bytes).answer($0, $1) }
    }
    let spool = try TemporarySpool()
    try spool.drop("job", servers.map { "url: \($0.url("/data"))\n" }.joined() + Self.checksum)
    #expect(try await fetch(spool, "--connections", "4").status == .exited(75))
    #expect(spool.payloads == [])
    try spool.makeDue("job")
    let result = try await fetch(spool, "--connections", "4")
    #expect(try isPublished(Self.data, spool), "\(result)\n\(spool.listing(of: "job"))")
  }
}
