import Glibc
import TestSupport
import Testing

/// Outputs whose name is taken, or gets taken.
@Suite struct SameOutputTests {
  /// As with `wget -P`; before anything is fetched.
  @Test(arguments: ["", "overwrite: yes\n"])
  func aDirectoryIsNoOutput(more: String) async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    try #require(mkdir(spool.path("files/sets"), 0o700) == 0)
    try spool.drop("a", "url: \(server.url("/x"))\noutput: sets\n\(more)")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(1) && result.errors.contains("sets is a directory"), "\(result)")
    #expect(try spool.lastFailure("failed/a")["code"] == "bad-output" && server.requests.isEmpty)
  }

  /// By another job, or by a worker that thought this one dead: the very same file is no failure, another is.
  @Test(arguments: [true, false])
  func aFileThatComesMeanwhile(isSame: Bool) async throws {
    let (spool, server, worker, gate) = try await startHalfway("crc32: \(hex8(independentCRC32(halfwayBody)))\n")
    try writeFile(spool.path("files/a"), isSame ? halfwayBody : [1])
    gate.open()
    let result = try await worker.result()
    #expect(result.status == .exited(isSame ? 0 : 1), "\(result)")
    #expect(spool.places(of: "a") == [isSame ? "done/a" : "failed/a"])
    #expect(try spool.payload("a") == (isSame ? halfwayBody : [1]))
    #expect(server.requests.count == 1)
    guard isSame else { return }
    #expect(try spool.lines("done/a").last?["existing"] == "yes" && spool.names("partial") == [])
  }

  /// After `rm cur/a:*` in the middle of a commit, data and payload are one file: that is not what a new job wants to
  /// be fetched.
  @Test func olderDataThatIsTheOutputIsReplaced() async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    try writeFile(spool.path("files/a"), Array("old".utf8))
    try #require(link(spool.path("files/a"), spool.path("partial/a.part")) == 0)
    try spool.drop("a", "url: \(server.url("/a"))\noverwrite: yes\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && server.requests.count == 1, "\(result)")
    #expect(try spool.payload("a") == Array("payload\n".utf8))
  }
}
