import Testing

@Suite
struct MatrixTests {
  @Test(.timeLimit(.minutes(20)), arguments: Scenario.chosen)
  func killed(scenario: Scenario) async throws { try await Matrix(scenario: scenario, faults: Fault.kills).sweep() }

  @Test(.timeLimit(.minutes(20)), arguments: Scenario.chosen)
  func failing(scenario: Scenario) async throws { try await Matrix(scenario: scenario, faults: Fault.errors).sweep() }

  @Test(.timeLimit(.minutes(20)), arguments: Scenario.chosen)
  func unnoticed(scenario: Scenario) async throws {
    try await Matrix(scenario: scenario, faults: Fault.harmless).sweep()
  }

  @Test(.timeLimit(.minutes(240))) func struckTwice() async throws { try await Pairs().play() }
}
