import TestSupport
import Testing

@testable import LyingServer

@Suite struct StatusTests {
  @Test("statuses and Retry-After", arguments: statusBehaviours)
  func status(_ behaviour: Behaviour) async throws {
    try await check(behaviour)
  }

  /// The server refuses ranges, and breaks the whole off.
  @Test func whatIsHereStaysUntilTheWholeIsLonger() async throws {
    let server = try ScriptedServer { request, reply in
      if request.rangeStart != nil { return try reply.respond("501 Not Implemented", body: []) }
      try Origin().answerAndCut(request, reply, after: 1000)
    }
    let spool = try TemporarySpool()
    try spool.addPartial(
      "job", job: "url: \(server.url("/data"))\n", facts: .strong, part: Array(payload.prefix(6000)))
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(75) && server.requests.map(\.rangeStart).contains(nil), "\(result)")
    #expect(spool.length("partial/job.part") == 6000, "\(spool.listing(of: "job"))")
  }
}
