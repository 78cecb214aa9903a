import Testing
import TestSupport

@testable import LyingServer

@Suite struct FramingTests {
  @Test("framing, cuts and stalls", arguments: framingBehaviours)
  func framing(_ behaviour: Behaviour) async throws {
    try await check(behaviour)
  }

  /// Each continues where the last one ended, and compares half of what that one brought. Nothing waits for another
  /// attempt.
  @Test func aServerThatCutsEachAnswerIsGoneOnWith() async throws {
    let server = try ScriptedServer { try Origin().answerAndCut($0, $1, after: 1000) }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0), "\(result)")
    #expect(
      server.requests.map(ask) == ["plain"] + stride(from: 500, to: n - 500, by: 500).map { "range \($0) if \(v1)" })
    let receipt = try spool.lines("done/job").last { $0.key == "done" }
    #expect(receipt?["bytes-fetched"] == "\(2 * n - 1000)")
    #expect(receipt?["attempts"] == "1")
  }
}
