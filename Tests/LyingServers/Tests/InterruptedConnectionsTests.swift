import Glibc
import Testing
import TestSupport

@testable import LyingServer

/// Several connections that are interrupted, and go on; and a file that changes meanwhile.
@Suite struct InterruptedConnectionsTests {
  /// A worker with some data and all its connections waiting for more.
  private func interrupted(_ connections: Int, _ end: @Sendable (TemporarySpool, RunningCommand) throws -> Void)
    async throws -> (spool: TemporarySpool, server: ScriptedServer, held: [UInt8])
  {
    let isOver = try Gate()
    let whole = 6 * 16384
    let server = try ScriptedServer { request, reply in
      // What begins in the first 96 kB, and then 8 kB of each.
      if request.rangeStart ?? 0 < whole || isOver.isOpen {
        return _ = try Origin(bytes: LargeFile.bytes).answer(request, reply)
      }
      try Origin(bytes: LargeFile.bytes).answer(request, reply, limit: 8000)
      try reply.stall()
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "\(server.url("/data"))\n")
    let worker = try startSpoolrun(LargeFile.options + ["--connections", "\(connections)", spool.root])
    let part = spool.path("partial/job.part")
    try await waitUntil("all connections wait") {
      server.requests.count { $0.rangeStart ?? 0 >= whole } >= connections && (fileStatus(part)?.st_size ?? 0) > whole
    }
    isOver.open()
    try end(spool, worker)
    _ = try await worker.result()
    let held = try readFile(part)
    let isPrefix = LargeFile.bytes.starts(with: held) && held.count < LargeFile.bytes.count
    #expect(isPrefix, "\(held.count) bytes")
    return (spool, server, held)
  }

  /// What came early is lost; the data is a prefix, and any number of connections goes on from its end.
  @Test(arguments: [(4, 1), (4, 2), (2, 8)])
  func killed(before: Int, after: Int) async throws {
    let (spool, server, held) = try await interrupted(before) { $1.send(signal: SIGKILL) }
    let asked = server.requests.count
    let result = try await LargeFile.fetch(spool, "--connections", "\(after)")
    #expect(try LargeFile.isPublished(LargeFile.bytes, spool), "\(result)")
    #expect(server.requests[asked].rangeStart == resumePoint(after: held.count))
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

  /// From some request on, the server has another version. There are seven at least, on a machine so busy that each
  /// response takes long to come.
  private func changingServer(_ origin: Origin, after count: Int) throws -> ScriptedServer {
    try ScriptedServer { request, reply in
      try (request.nth <= count ? Origin(bytes: LargeFile.before) : origin).answer(request, reply)
    }
  }

  @Test(arguments: [2, 3, 4, 5], [Origin.IfRange.honoured, .ignored, .refused])
  func changes(after count: Int, ifRange: Origin.IfRange) async throws {
    let server = try changingServer(Origin(bytes: LargeFile.bytes, etag: v2, ifRange: ifRange), after: count)
    let spool = try TemporarySpool()
    try spool.drop("job", "\(server.url("/data"))\n")
    let result = try await LargeFile.fetch(spool, "--connections", "4")
    #expect(try LargeFile.isPublished(LargeFile.bytes, spool), "\(result)\n\(server.requests.map(ask))")
  }

  /// Nothing in the answers tells; the declared checksum does.
  @Test func changesUnderOneETag() async throws {
    // A first mismatch is looked at again after 4 s: in the same run, where the machine stood still for so long.
    for play in 1...5 {
      let server = try changingServer(Origin(bytes: LargeFile.bytes), after: 5)
      let spool = try TemporarySpool()
      try spool.drop("job", "url: \(server.url("/data"))\ncrc32: \(hex8(independentCRC32(LargeFile.bytes)))\n")
      let first = try await LargeFile.fetch(spool, "--connections", "4")
      if play < 5, spool.places(of: "job") == ["done/job"] {
        #expect(try LargeFile.isPublished(LargeFile.bytes, spool))
        continue
      }
      #expect(first.status == .exited(75), "\(first)")
      #expect(try spool.lines("partial/job").last { $0.key == "failed" }?["code"] == "mismatch-crc32")
      #expect(spool.payloads == [])
      try spool.makeDue("job")
      let result = try await LargeFile.fetch(spool, "--connections", "4")
      #expect(try LargeFile.isPublished(LargeFile.bytes, spool), "\(result)")
      return
    }
  }
}
