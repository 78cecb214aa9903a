import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LyingServer

/// Answers that break off with bytes behind the cut that are not the file's: no downloader can tell them by their
/// heads.
@Suite struct BrokenAnswerTests {
  static let file = large(payload, count: 300)

  enum Tail: String, CaseIterable {
    case none, errorPage, byte, zeros, ownBytes, junk

    var bytes: [UInt8] {
      switch self {
      case .none: []
      case .errorPage: Array("<html><h1>502 Bad Gateway</h1></html>".utf8)
      case .byte: [0xFF]
      case .zeros: Array(repeating: 0, count: 65_536)
      case .ownBytes: Array(BrokenAnswerTests.file[5000..<45_000])
      case .junk: (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 13) }
      }
    }
  }

  /// The first `count` answers that are long enough break off in their middle.
  private static func server(_ tail: Tail, breaks count: Int, good: Int = 500_000) throws -> ScriptedServer {
    let left = Atomic(count)
    return try ScriptedServer { request, reply in
      let origin = Origin(bytes: file)
      let count = origin.response(to: request).body.count
      guard count > 70_000, left.wrappingSubtract(1, ordering: .relaxed).oldValue > 0 else {
        return _ = try origin.answer(request, reply)
      }
      try origin.answerAndBreak(request, reply, after: min(good, count / 2), junk: tail.bytes)
    }
  }

  @Test(arguments: Tail.allCases, [1, 4])
  func noWrongTailIsPublished(_ tail: Tail, connections: Int) async throws {
    for breaks in [1, 3] {
      let server = try Self.server(tail, breaks: breaks)
      let spool = try TemporarySpool()
      try spool.drop("job", "\(server.url("/data"))\n")
      let result = try await spoolrun(["--once", "--connections", "\(connections)", spool.root])
      #expect(try spool.payload("data") == Self.file, "\(result)\n\(server.requests.map(ask))")
    }
  }

  /// FTP has no validator, so only a declared digest lets data be continued.
  @Test(arguments: [Tail.errorPage, .byte, .zeros, .junk])
  func noWrongTailOfFTPIsPublished(_ tail: Tail) async throws {
    let server = try await FTPServer(file: Self.file, sending: 500_000, junk: tail.bytes)
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url)\ncrc32: \(hex8(independentCRC32(Self.file)))\n")
    let result = try await spoolrun(["--once", "--protocols", "ftp", spool.root])
    let commands = try server.commands
    #expect(try spool.payload("f") == Self.file, "\(result)\n\(commands)")
    #expect(commands.contains { $0.hasPrefix("REST ") }, "not from its start: \(commands)")
  }

  /// libcurl waits for that, for a minute, and nothing else would go on meanwhile.
  @Test func anFTPServerNeedNotSayThatAllIsSent() async throws {
    let server = try await FTPServer(file: Self.file, isSilent: true)
    let spool = try TemporarySpool()
    for name in ["a", "b", "c"] { try spool.drop(name, "url: \(server.url)\noutput: \(name)\n") }
    let result = try await spoolrun(["--once", "--jobs", "1", "--protocols", "ftp", spool.root])
    for name in ["a", "b", "c"] { #expect(try spool.payload(name) == Self.file, "\(result)") }
    // The second has the connection of the first, on which its answer may still come.
    let logins = try server.commands.count { $0.hasPrefix("USER") }
    #expect(logins == 2 && result.duration < .seconds(50), "\(result)")
  }

  /// The connection ends within the wrong bytes, at least 4 KB or 224 KB behind the last right one.
  @Test(.enabled("needs sshd") { try await Need.sftp.isMet() }, arguments: [520_000, 300_000])
  func noWrongTailOfSFTPIsPublished(good: Int) async throws {
    let junk = (0..<Self.file.count - good).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 13) }
    let server = try await SFTPServer(file: Self.file, first: Self.file.prefix(good) + junk, .silent(700_000))
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url)\ncrc32: \(hex8(independentCRC32(Self.file)))\n")
    let worker = try startSpoolrun(
      ["--once", "--protocols", "sftp", spool.root], environment: ["HOME": server.home])
    try await waitUntil("two blocks are written") { spool.length("partial/job.part") >= 524_288 }
    try server.cut()
    let result = try await worker.result()
    #expect(try spool.payload("f") == Self.file, "\(result)")
    let offsets = try server.offsets
    #expect((1...UInt64(good)).contains(offsets.min() ?? 0), "not from its start: \(offsets)")
  }

  /// The first answer says nothing of its length, and breaks off behind the end of the file. Only a later one, perhaps
  /// of another mirror, shows where that is.
  @Test(arguments: [Tail.errorPage, .byte, .zeros, .junk], [false, true])
  func noTailBehindTheEndIsPublished(_ tail: Tail, isOfOtherMirror: Bool) async throws {
    let server = try ScriptedServer { request, reply in
      if request.nth > 1 {
        if isOfOtherMirror { return try reply.respond("404 Not Found", body: []) }
        return _ = try Origin(bytes: Self.file).answer(request, reply)
      }
      let bytes = Self.file + tail.bytes
      try reply.head("200 OK", ["ETag: \(v1)", "Transfer-Encoding: chunked"])
      try reply.send("\(String(bytes.count + 1, radix: 16))\r\n")
      try reply.send(bytes)
      try reply.finish()
    }
    let other = try ScriptedServer { try Origin(bytes: Self.file, etag: v2).answer($0, $1) }
    let spool = try TemporarySpool()
    let more = isOfOtherMirror ? "url: \(other.url("/data"))\ncrc32: \(hex8(independentCRC32(Self.file)))\n" : ""
    try spool.drop("job", "url: \(server.url("/data"))\n\(more)")
    let result = try await spoolrun(["--once", spool.root])
    #expect(try spool.payload("data") == Self.file, "\(result)\n\((server.requests + other.requests).map(ask))")
  }

  /// The server breaks off at the same place with the same junk.
  @Test func anAnswerThatEndsAlikeConfirmsNothing() async throws {
    let server = try Self.server(.errorPage, breaks: 2, good: 1000)
    let spool = try TemporarySpool()
    try spool.drop("job", "\(server.url("/data"))\n")
    let result = try await spoolrun(["--once", spool.root])
    #expect(try spool.payload("data") == Self.file, "\(result)\n\(server.requests.map(ask))")
  }

  @Test func anAnswerThatBrokeOffCostsOneRequestAnd64KiB() async throws {
    let server = try Self.server(.none, breaks: 1)
    let spool = try TemporarySpool()
    try spool.drop("job", "\(server.url("/data"))\n")
    #expect(try await spoolrun(["--once", spool.root]).status == .exited(0))
    #expect(server.requests.map(\.rangeStart) == [nil, 500_000 - 65_536])
  }

  /// A worker that is killed just then leaves complete data that nobody has proved.
  @Test(arguments: [Tail.errorPage, .none])
  func completeDataOfAKilledWorkerIsAskedFor(_ tail: Tail) async throws {
    let whole = Self.file.count
    let server = try ScriptedServer { request, reply in
      guard request.nth == 1 else { return _ = try Origin(bytes: Self.file).answer(request, reply) }
      try reply.head("200 OK", ["Content-Length: \(whole)", "ETag: \(v1)"])
      try reply.send(Self.file.prefix(whole - 37) + (tail == .none ? Self.file.suffix(37) : tail.bytes[...]).prefix(36))
      try reply.stall()
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "\(server.url("/data"))\n")
    let worker = try startSpoolrun(["--once", spool.root])
    try await waitUntil("all but a byte is there") {
      (fileStatus(spool.path("partial/job.part"))?.st_size ?? 0) == whole - 1
    }
    worker.send(signal: SIGKILL)
    _ = try await worker.result()
    let result = try await spoolrun(["--once", spool.root])
    #expect(try spool.payload("data") == Self.file, "\(result)\n\(server.requests.map(ask))")
  }

  /// What the journal says of an attempt that failed is enough for the next one.
  @Test func theNextAttemptDoubtsWhatTheLastOneLeft() async throws {
    let isBack = try Gate()
    let server = try ScriptedServer { request, reply in
      if isBack.isOpen { return _ = try Origin(bytes: Self.file).answer(request, reply) }
      guard request.nth == 1 else { return try reply.respond("500 Internal Server Error", body: []) }
      try reply.head("200 OK", ["Content-Length: \(Self.file.count)", "ETag: \(v1)"])
      try reply.send(Self.file.prefix(900_000) + Tail.errorPage.bytes)
      try reply.finish()
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "\(server.url("/data"))\n")
    #expect(try await spoolrun(["--once", spool.root]).status == .exited(75))
    #expect(try spool.lines("partial/job").last { $0.key == "failed" }?["broken"] == "0")
    isBack.open()
    try spool.makeDue("job")
    let result = try await spoolrun(["--once", spool.root])
    #expect(try spool.payload("data") == Self.file, "\(result)\n\(server.requests.map(ask))")
    #expect(server.requests.filter { $0.rangeStart == nil }.count == 1, "not from its start again")
  }
}
