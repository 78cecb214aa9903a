import Testing
import TestSupport

@testable import LyingServer

/// The same lies told to several connections at once: whatever comes of a job, no wrong byte is published and no data
/// is spliced.
@Suite struct LiesToSeveralTests {
  /// A job that has some data, and how soon the server begins to lie to it.
  private struct Case: Sendable {
    let name: String
    let data: [UInt8]
    /// Requests that an honest server answers: four get the connections under way.
    var honest = 0
  }

  @Test(arguments: rangeBehaviours + statusBehaviours + validatorBehaviours + framingBehaviours + encodingBehaviours)
  func liesToAll(_ behaviour: Behaviour) async throws {
    let cases =
      [0, 1, 4095, n - 1].map { Case(name: "lies-\($0)", data: behaviour.data($0)) }
      + [0, 4095].map { Case(name: "turns-\($0)", data: Array(payload.prefix($0)), honest: 4) }
    try await slots.withSlot {
      let server = try ScriptedServer { request, reply in
        let isHonest = cases.contains { request.target == "/\($0.name)" && request.nth <= $0.honest }
        if isHonest { try Origin().answer(request, reply) } else { try behaviour.script(request, reply) }
      }
      let spool = try TemporarySpool()
      for one in cases {
        let job = jobText(behaviour, url: server.url("/\(one.name)"))
        try spool.addPartial(one.name, job: job, facts: behaviour.facts, part: one.data)
      }
      // Small enough for ten requests to each payload.
      let result = try await spoolrun(
        "--once", "--jobs", "8", "--per-host", "8", "--connections", "4", "--chunk-size", "1k", spool.root)
      server.stop()
      for one in cases {
        let asked = server.requests(for: "/\(one.name)").map(ask)
        try judge(
          one, spool, versions: [behaviour.final, payload, behaviour.holds],
          "\(behaviour.name): \(asked)\n\(spool.listing(of: one.name))\n\(result)")
      }
      #expect(server.problems == [] && server.requests.allSatisfy(isLawful), "\(behaviour.name)")
    }
  }

  private func judge(_ one: Case, _ spool: TemporarySpool, versions: [[UInt8]], _ report: Comment) throws {
    let places = spool.places(of: one.name)
    #expect(places.count == 1, report)
    let published = try spool.payload(one.name)
    #expect((published != nil) == (places == ["done/\(one.name)"]), report)
    if let published { #expect(versions.contains(published), "WRONG BYTES of \(report)") }
    let path = spool.path("partial/\(one.name).part")
    guard fileStatus(path) != nil else { return }
    let left = try readFile(path)
    let isSound = left == one.data || versions.contains { $0.starts(with: left) }
    #expect(isSound, "SPLICED: \(report)")
  }
}
