import Glibc
import TestSupport
import Testing

@testable import LyingServer

/// An SFTP server that goes silent: libcurl waits for its answer to each goodbye, and the whole worker with it.
@Suite(.enabled("needs sshd") { try await Need.sftp.isMet() }) struct SilentSFTPTests {
  private static let file = large(payload, count: 300)

  private func job(_ server: SFTPServer) throws -> TemporarySpool {
    let spool = try TemporarySpool()
    // A log-in at sshd may take seconds, and many on a busy machine.
    try spool.drop("job", "url: \(server.url)\ncrc32: \(hex8(independentCRC32(Self.file)))\ntimeout: 30\n")
    return spool
  }

  private func start(_ server: SFTPServer, _ spool: TemporarySpool) throws -> RunningCommand {
    try startSpoolrun(["--once", "-v", "--protocols", "sftp", spool.root], environment: ["HOME": server.home])
  }

  @Test(arguments: [SFTPServer.End.silent(700_000), .deaf])
  func theWorkerGoesOn(end: SFTPServer.End) async throws {
    let server = try await SFTPServer(file: Self.file, first: Self.file, end)
    let spool = try job(server)
    let result = try await start(server, spool).result()
    #expect(try spool.payload("f") == Self.file, "\(result)")
  }

  @Test func theWorkerCanBeStopped() async throws {
    let server = try await SFTPServer(file: Self.file, first: Self.file, .silent(700_000))
    let spool = try job(server)
    let worker = try start(server, spool)
    try await waitUntil("half of it is there") { spool.length("partial/job.part") > 500_000 }
    worker.send(signal: SIGTERM)
    let result = try await worker.result()
    #expect(result.exitStatus == 75 && spool.names("partial") == ["job", "job.part"], "\(result)")
  }
}
