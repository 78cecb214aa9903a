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
    var faults: [Fault] = []
    try await strike(&faults, Fault(action: "kill-before", counted: .state)) { $0.kind == "link" }
    try await strike(&faults, Fault(action: "fail", counted: .state, argument: "ENOSPC")) {
      $0.isSync && $0.path == "partial/a.part"
    }
    let outcome = try await MatrixCase(scenario: try Self.fresh, faults: faults).play()
    #expect(outcome.problems == [])
    let failed = try #require(outcome.strikes[1])
    let published = try #require(outcome.events.last { $0.phase == .begun && $0.kind == "link" })
    #expect(published.target == "a.bin" && published.inode != failed.inode)
  }

  /// The receipt's fsync fails, with all that the worker does after it. The next worker's disk is full, so that it can
  /// neither copy the job nor note its doubt.
  @Test(.timeLimit(.minutes(120))) func theFsyncOfAReceiptFailsAndTheDiskIsFull() async throws {
    var faults: [Fault] = []
    let events = try await MatrixCase(scenario: try Self.fresh, faults: []).play().events
    let receipt = try #require(
      events.lastIndex { $0.phase == .begun && $0.isSync && $0.path.hasPrefix("cur/a:") })
    let fault = Fault(action: "fail-from", counted: .any, argument: "ESTALE")
    faults.append(fault.at(fault.counted.count(in: Array(events[...receipt]))))
    try await strike(&faults, Fault(action: "fail-from", counted: .room, argument: "EDQUOT")) {
      $0.kind == "create" && $0.path.hasPrefix("tmp/a:")
    }
    let outcome = try await MatrixCase(scenario: try Self.fresh, faults: faults).play()
    #expect(outcome.problems == [])
    #expect(outcome.strikes.count == 2)
  }

  private static var fresh: Scenario {
    get throws { try #require(Scenario.all.first { $0.name == "fresh" }) }
  }

  /// Adds a fault that strikes the first call which `isWanted`, after those that the others strike.
  private func strike(_ faults: inout [Fault], _ fault: Fault, _ isWanted: (CallEvent) -> Bool) async throws {
    let events = try await MatrixCase(scenario: try Self.fresh, faults: faults).play().events
    let struck = events.lastIndex { $0.phase == .struck } ?? -1
    let call = try #require(events.indices.first { $0 > struck && events[$0].phase == .begun && isWanted(events[$0]) })
    faults.append(fault.at(fault.counted.count(in: Array(events[...call]))))
  }
}
