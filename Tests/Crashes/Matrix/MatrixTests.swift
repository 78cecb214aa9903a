import Testing

@Suite
struct MatrixTests {
  @Test(.timeLimit(.minutes(120)), arguments: Scenario.chosen)
  func killed(scenario: Scenario) async throws { try await Matrix(scenario: scenario, faults: Fault.kills).sweep() }

  @Test(.timeLimit(.minutes(120)), arguments: Scenario.chosen)
  func failing(scenario: Scenario) async throws { try await Matrix(scenario: scenario, faults: Fault.errors).sweep() }

  @Test(.timeLimit(.minutes(120)), arguments: Scenario.chosen)
  func unnoticed(scenario: Scenario) async throws {
    try await Matrix(scenario: scenario, faults: Fault.harmless).sweep()
  }

  @Test(.timeLimit(.minutes(240))) func struckTwice() async throws { try await Pairs().play() }

  /// A commit is cut after `verified:`, and the data's fsync fails for whoever goes on with it: what was verified is
  /// not published from that inode.
  @Test(.timeLimit(.minutes(120))) func theFsyncOfACutCommitFails() async throws {
    let scenario = try #require(Scenario.all.first { $0.name == "fresh" })
    var faults: [Fault] = []
    /// Strikes the first call that `isWanted` after those that were struck already.
    func strike(_ fault: Fault, _ isWanted: (CallEvent) -> Bool) async throws {
      let events = try await MatrixCase(scenario: scenario, faults: faults).play().events
      let struck = events.lastIndex { $0.phase == .struck } ?? -1
      let call = try #require(
        events.indices.first { $0 > struck && events[$0].phase == .begun && isWanted(events[$0]) })
      faults.append(fault.at(fault.counted.count(in: Array(events[...call]))))
    }
    try await strike(Fault(action: "kill-before", counted: .state)) { $0.kind == "link" }
    try await strike(Fault(action: "fail", counted: .state, argument: "ENOSPC")) {
      $0.isSync && $0.path == "partial/a.part"
    }
    let outcome = try await MatrixCase(scenario: scenario, faults: faults).play()
    #expect(outcome.problems == [])
    let failed = try #require(outcome.strikes[1])
    let published = try #require(outcome.events.last { $0.phase == .begun && $0.kind == "link" })
    #expect(published.target == "a.bin" && published.inode != failed.inode)
  }
}
