import Glibc
import Spool
import Testing
import TestSupport

@testable import LyingServer

/// Jobs that name a list of the digests of their file's pieces: what is wrong is fetched again, and no more.
@Suite struct PieceTests {
  private static let bytes = LargeFile.bytes
  private static let length = 4096
  private static let count = (bytes.count + length - 1) / length

  /// A spool with the list of the pieces of `bytes`, and the job's line that names it.
  private func spool(of bytes: [UInt8] = bytes) throws -> (TemporarySpool, String) {
    let spool = try TemporarySpool()
    var maker = PieceList.Maker(length: UInt64(Self.length))
    bytes.withUnsafeBytes { maker.take($0) }
    let made = maker.list()
    let list = try #require(made)
    guard mkdir(spool.path("pieces"), 0o700) == 0 else { throw TestSupportError("mkdir", "pieces", errno: errno) }
    try writeFile(spool.path("pieces/\(list.key.list)"), list.text)
    return (spool, "pieces: \(list.key.text)\n")
  }

  /// The file with a bit flipped in each of these pieces, counted from 0.
  private static func flipped(in pieces: Int...) -> [UInt8] {
    var result = bytes
    for piece in pieces { result[piece * length + 17] ^= 0x10 }
    return result
  }

  private func fetched(_ spool: TemporarySpool) throws -> Int? {
    try spool.lines("done/job").last { $0.key == "done" }?["bytes-fetched"].flatMap { Int($0) }
  }

  /// A flipped bit costs one piece. No other digest is declared: the pieces prove the whole.
  @Test(arguments: [[5], [0, 40], [count - 1], [7, 8, 9]])
  func aFlippedBitCostsOnePiece(pieces: [Int]) async throws {
    let (spool, line) = try spool()
    let wrong = pieces.reduce(into: Self.bytes) { $0[$1 * Self.length] ^= 1 }
    let server = try ScriptedServer { request, reply in
      try Origin(bytes: request.nth == 1 ? wrong : Self.bytes).answer(request, reply)
    }
    try spool.drop("job", "url: \(server.url("/data"))\n\(line)")
    let result = try await spoolrun("--once", "--verbose", spool.root)
    #expect(try LargeFile.isPublished(Self.bytes, spool), "\(result)")
    let wanted = Self.bytes.count + pieces.map { min(Self.length, Self.bytes.count - $0 * Self.length) }.reduce(0, +)
    #expect(try fetched(spool) == wanted, "\(server.requests.map(ask))")
    #expect(result.errors.contains("wrong-pieces") && result.errors.contains("repaired"), "\(result)")
    #expect(spool.names("failed") == [] && spool.names("partial") == [])
  }

  /// A digest of the whole is checked all the same.
  @Test func theWholeDigestCounts() async throws {
    // A first mismatch is looked at again after 4 s: in the same run, where the machine stood still for so long.
    for play in 1...5 {
      let (spool, line) = try spool()
      let server = try ScriptedServer { request, reply in
        try Origin(bytes: request.nth == 1 ? Self.flipped(in: 3) : Self.bytes).answer(request, reply)
      }
      try spool.drop("job", "url: \(server.url("/data"))\n\(LargeFile.checksum)\(line)")
      try spool.drop("other", "url: \(server.url("/other"))\ncrc32: 00C0FFEE\n\(line)")
      let result = try await spoolrun("--once", "--jobs", "1", spool.root)
      if play < 5, spool.places(of: "other") == ["failed/other"] { continue }
      #expect(try LargeFile.isPublished(Self.bytes, spool), "\(result)")
      #expect(try spool.lastFailure("partial/other")["code"] == "mismatch-crc32" && spool.payloads == ["data"])
      return
    }
  }

  @Test func overSeveralConnections() async throws {
    let (spool, line) = try spool()
    let server = try ScriptedServer { request, reply in
      // Whoever asks for these pieces alone gets them right.
      let (start, end) = (request.rangeStart ?? 1, request.rangeEnd ?? 0)
      let isRepair = start % Self.length == 0 && end - start < Self.length
      try Origin(bytes: isRepair ? Self.bytes : Self.flipped(in: 11, 50)).answer(request, reply)
    }
    try spool.drop("job", "url: \(server.url("/data"))\n\(line)")
    let result = try await LargeFile.fetch(spool, "--connections", "4", "--verbose")
    #expect(try LargeFile.isPublished(Self.bytes, spool), "\(result)")
    #expect(server.requests.count > 6)
    let most = Self.bytes.count + 2 * Self.length
    #expect(try fetched(spool) ?? .max <= most, "\(server.requests.map(ask))")
  }

  /// Another mirror is asked before the one that sent it.
  @Test func theOtherMirrorIsAskedFirst() async throws {
    let (spool, line) = try spool()
    let liar = try ScriptedServer { try Origin(bytes: Self.flipped(in: 20)).answer($0, $1) }
    let other = try ScriptedServer { try Origin(bytes: Self.bytes, etag: v2).answer($0, $1) }
    try spool.drop("job", "url: \(liar.url("/data"))\nurl: \(other.url("/data"))\n\(line)")
    let result = try await spoolrun("--once", spool.root)
    #expect(try LargeFile.isPublished(Self.bytes, spool), "\(result)")
    let piece = "range \(20 * Self.length)-\(21 * Self.length - 1)"
    #expect(liar.requests.map(ask) == ["plain"] && other.requests.map(ask) == [piece])
  }

  /// Each is asked once for the piece, and not again when it is the next one's turn.
  @Test func mirrorsThatAllSendItWrong() async throws {
    let (spool, line) = try spool()
    let liars = try (0..<3).map { _ in try ScriptedServer { try Origin(bytes: Self.flipped(in: 20)).answer($0, $1) } }
    try spool.drop("job", "\(liars.map { "url: \($0.url("/data"))\n" }.joined())\(line)")
    let result = try await spoolrun("--once", spool.root)
    #expect(try spool.lastFailure("partial/job")["code"] == "wrong-piece" && spool.payloads == [], "\(result)")
    let piece = "range \(20 * Self.length)-\(21 * Self.length - 1)"
    #expect(liars.map { $0.requests.map(ask) } == [["plain", piece], [piece], [piece]])
  }

  /// The attempts are counted once nobody waits for the other mirror any more, or the job would go on for ever.
  @Test func aMirrorThatAnswersNobody() async throws {
    let (spool, line) = try spool()
    let dead = try DeadPort()
    let liar = try ScriptedServer { try $1.respond("200 OK", body: Self.flipped(in: 60)) }
    let since = try await runTool(["/usr/bin/date", "-u", "-d", "-3 days", "+%FT%TZ"]).output.filter { $0 != "\n" }
    try writeFile(
      spool.path("partial/job"),
      Array(
        """
        url: \(liar.url("/data"))
        url: http://127.0.0.1:\(dead.port)/data
        \(line)attempts: 2
        patience: 2d
        failed: \(since) attempt=1 class=temporary code=connect at=0 retry=\(since) burned=no reason=x

        """.utf8))
    for place in ["partial/job", "failed/job"] {
      let result = try await spoolrun("--once", spool.root)
      #expect(spool.places(of: "job").first == place, "\(result)")
      guard spool.places(of: "job").first == place else { return }
      #expect(try spool.lastFailure(place)["code"] == "wrong-piece", "\(result)")
      try? spool.makeDue("job")
    }
  }

  /// It has sent nothing that is wrong, and the other one does not rest.
  @Test(arguments: [false, true]) func aMirrorThatSaysLater(isFirst: Bool) async throws {
    let (spool, line) = try spool()
    let liar = try ScriptedServer { try Origin(bytes: Self.flipped(in: 20)).answer($0, $1) }
    let busy = try ScriptedServer { try $1.respond("503 Service Unavailable", ["Retry-After: 600"], body: []) }
    let mirrors = isFirst ? [busy, liar] : [liar, busy]
    let urls = mirrors.map { "url: \($0.url("/data"))\n" }.joined()
    try spool.drop("job", "\(urls)attempts: 1\n\(line)")
    try setModificationTime(spool.path("new/job"), secondsFromNow: -60)
    try spool.drop("next", "url: \(liar.url("/next"))\n")
    let result = try await spoolrun("--once", "--jobs", "1", spool.root)
    #expect(spool.places(of: "job").first == "partial/job" && spool.payloads == ["next"], "\(result)")
    guard spool.names("partial").contains("job") else { return }
    let record = try spool.lastFailure("partial/job")
    #expect(record["code"] == "http-503" && record["burned"] == "no", "\(record)")
    #expect(spool.names("servers") == ["http-127.0.0.1-\(busy.port)"])
  }

  /// A mirror whose rest is over, and that this job does not need, is another job's to probe.
  @Test func aMirrorThatIsNotNeeded() async throws {
    let (spool, line) = try spool()
    let liar = try ScriptedServer { try Origin(bytes: Self.flipped(in: 20)).answer($0, $1) }
    let other = try ScriptedServer { try Origin(bytes: Self.bytes, etag: v2).answer($0, $1) }
    let rested = try ScriptedServer { request, reply in
      if request.target != "/probe" { return try reply.respond("200 OK", body: [7]) }
      try reply.respond("503 Service Unavailable", ["Retry-After: 600"], body: [])
    }
    try spool.drop("probe", "url: \(rested.url("/probe"))\n")
    #expect(try await spoolrun("--once", spool.root).status == .exited(75))
    unlink(spool.path("partial/probe"))
    try setModificationTime(spool.path("servers/http-127.0.0.1-\(rested.port)"), secondsFromNow: -1)
    // After the repair another job is dropped, and waited for.
    let hook = """
      #!/bin/sh
      [ "$SPOOLRUN_JOB" = job ] || exit 0
      cd '\(spool.root)' && echo 'url: \(rested.url("/next"))' >tmp/next && mv tmp/next new/next
      for i in $(seq 600); do [ -e files/next ] && exit 0; sleep 0.1; done
      exit 1
      """
    try #require(mkdir(spool.path("hooks"), 0o700) == 0)
    try writeFile(spool.path("hooks/verify"), Array(hook.utf8))
    try #require(chmod(spool.path("hooks/verify"), 0o700) == 0)
    let urls = [liar, other, rested].map { "url: \($0.url("/data"))\n" }.joined()
    try spool.drop("job", "\(urls)\(line)")
    let worker = try startSpoolrun([spool.root])
    try await waitUntil("the hook has ended, and both jobs") {
      spool.names("done") == ["job", "next"] || spool.names("partial").contains("job")
    }
    worker.send(signal: SIGTERM)
    let result = try await worker.result()
    #expect(spool.names("done") == ["job", "next"], "\(result)")
    #expect(rested.requests.map(\.target) == ["/probe", "/next"])
  }

  /// A mirror that has another file brings a few pieces; what is right of the others' is kept.
  @Test func anotherFileIsLeftEarly() async throws {
    let most = Self.bytes.count * 3 / 2
    var counts: [Int] = []
    // A worker that stands still finds all of the other file in its socket.
    for _ in 1...5 where counts.allSatisfy({ $0 >= most }) { counts.append(try await bytesFromBoth()) }
    #expect(counts.contains { $0 < most }, "\(counts)")
  }

  private func bytesFromBoth() async throws -> Int {
    let (spool, line) = try spool()
    let liar = try ScriptedServer { request, reply in
      let (status, fields, body) = Origin(bytes: LargeFile.before).response(to: request)
      try reply.head(status, fields)
      for start in stride(from: 0, to: body.count, by: 8192) {
        try reply.send(body.dropFirst(start).prefix(8192))
        try reply.pause(milliseconds: 20)
      }
    }
    let other = try ScriptedServer { try Origin(bytes: Self.bytes, etag: v2).answer($0, $1) }
    try spool.drop("job", "url: \(liar.url("/data"))\nurl: \(other.url("/data"))\n\(line)")
    let result = try await spoolrun("--once", spool.root)
    #expect(try LargeFile.isPublished(Self.bytes, spool), "\(result)")
    return try fetched(spool) ?? .max
  }

  /// What is known of the pieces survives the end of a run.
  @Test func aWrongPieceOfAnEarlierRun() async throws {
    let (spool, line) = try spool()
    let half = 30 * Self.length + 1000
    let server = try ScriptedServer { request, reply in
      switch request.nth {
      case 1: try Origin(bytes: Self.flipped(in: 9)).answerAndCut(request, reply, after: half)
      case 2: try reply.respond("404 Not Found", body: [])
      default: try Origin(bytes: Self.bytes).answer(request, reply)
      }
    }
    try spool.drop("job", "url: \(server.url("/data"))\n\(line)")
    let first = try await spoolrun("--once", spool.root)
    #expect(spool.places(of: "job") == ["partial/job"] && spool.length("partial/job.part") == half, "\(first)")
    try spool.makeDue("job")
    let second = try await spoolrun("--once", "--verbose", spool.root)
    #expect(try LargeFile.isPublished(Self.bytes, spool), "\(second) \(spool.listing(of: "job"))")
    let asked = server.requests.map(ask)
    #expect(asked.last == "range \(9 * Self.length)-\(10 * Self.length - 1)", "\(asked)")
  }

  /// Nothing wrong is published, and what is right is not fetched again.
  @Test func aPieceThatIsAlwaysWrong() async throws {
    let (spool, line) = try spool()
    let server = try ScriptedServer { request, reply in
      let isGood = request.nth > 4
      try Origin(bytes: isGood ? Self.bytes : Self.flipped(in: 5)).answer(request, reply)
    }
    try spool.drop("job", "url: \(server.url("/data"))\n\(line)")
    let first = try await spoolrun("--once", spool.root)
    #expect(try spool.lastFailure("partial/job")["code"] == "wrong-piece", "\(first)")
    #expect(spool.payloads == [])
    while server.requests.count < 5 {
      try spool.makeDue("job")
      _ = try await spoolrun("--once", spool.root)
    }
    #expect(try LargeFile.isPublished(Self.bytes, spool), "\(spool.listing(of: "job"))")
    let piece = "range \(5 * Self.length)-\(6 * Self.length - 1)"
    let asked = server.requests.map(ask)
    #expect(asked[0] == "plain" && asked.dropFirst().allSatisfy { $0 == piece }, "\(asked)")
  }

  /// The first attempt ends with a wrong piece, the second one with the file.
  private func publishesAtTheSecondAttempt(
    _ server: ScriptedServer, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let (spool, line) = try spool()
    try spool.drop("job", "url: \(server.url("/data"))\n\(line)")
    let first = try await spoolrun("--once", spool.root)
    #expect(
      try spool.lastFailure("partial/job")["code"] == "wrong-piece" && spool.payloads == [], "\(first)",
      sourceLocation: sourceLocation)
    try spool.makeDue("job")
    let second = try await spoolrun("--once", spool.root)
    #expect(
      try LargeFile.isPublished(Self.bytes, spool), "\(second) \(spool.listing(of: "job"))",
      sourceLocation: sourceLocation)
  }

  /// Only the last piece tells that the first answer was too long, or too short.
  @Test(arguments: [3, -3]) func aLastPieceOfAnotherLength(more: Int) async throws {
    let server = try ScriptedServer { request, reply in
      let wrong = more > 0 ? Self.bytes + [UInt8](repeating: 7, count: more) : Self.bytes.dropLast(-more)
      try Origin(bytes: request.nth == 1 ? wrong : Self.bytes).answer(request, reply)
    }
    try await publishesAtTheSecondAttempt(server)
  }

  /// A server without ranges sends the whole once more; one that refuses them, too.
  @Test(arguments: [nil, "400 Bad Request"]) func aServerWithoutRanges(refusal: String?) async throws {
    let server = try ScriptedServer { request, reply in
      if let refusal, request.rangeStart != nil { return try reply.respond(refusal, body: []) }
      let bytes = request.nth <= 2 ? Self.flipped(in: 60) : Self.bytes
      try reply.respond("200 OK", body: bytes)
    }
    try await publishesAtTheSecondAttempt(server)
  }

  /// Its whole begins with the first piece.
  @Test func theFirstPieceFromAServerWithoutRanges() async throws {
    let (spool, line) = try spool()
    let server = try ScriptedServer { request, reply in
      try reply.respond("200 OK", body: request.nth == 1 ? Self.flipped(in: 0) : Self.bytes)
    }
    try spool.drop("job", "url: \(server.url("/data"))\n\(line)")
    let result = try await spoolrun("--once", spool.root)
    #expect(try LargeFile.isPublished(Self.bytes, spool) && server.requests.count == 2, "\(result)")
  }

  @Test(arguments: [-1, 1])
  func aFileOfAnotherSize(more: Int) async throws {
    // A first mismatch is looked at again after 4 s: in the same run, where the machine stood still for so long.
    for play in 1...5 {
      let bytes = Array(repeating: UInt8(7), count: 8 * Self.length)
      let (spool, line) = try spool(of: bytes)
      let other = more > 0 ? bytes + [7] : Array(bytes.dropLast(Self.length))
      let server = try ScriptedServer { try Origin(bytes: other).answer($0, $1) }
      try spool.drop("job", "url: \(server.url("/data"))\n\(line)")
      let result = try await spoolrun("--once", spool.root)
      if play < 5, spool.places(of: "job") == ["failed/job"] { continue }
      #expect(try spool.lastFailure("partial/job")["code"] == "mismatch-size" && spool.payloads == [], "\(result)")
      return
    }
  }

  @Test(arguments: [nil, "pieces: sha256 4k\n", "something else"])
  func aListThatIsNotThere(text: String?) async throws {
    let (spool, line) = try spool()
    let server = try ScriptedServer { try Origin(bytes: Self.bytes).answer($0, $1) }
    let list = spool.path("pieces/\(spool.names("pieces")[0])")
    if let text { try writeFile(list, Array(text.utf8)) } else { unlink(list) }
    try spool.drop("job", "url: \(server.url("/data"))\n\(line)")
    let result = try await spoolrun("--once", spool.root)
    #expect(try spool.lastFailure("failed/job")["code"] == "no-pieces", "\(result)")
    #expect(server.requests.isEmpty && spool.payloads == [])
  }
}
