import Testing

@Suite(.timeLimit(.minutes(20)))
struct MatrixTests {
  @Test(arguments: Scenario.chosen)
  func killed(scenario: Scenario) async throws { try await Matrix(scenario: scenario, faults: Fault.kills).sweep() }

  @Test(arguments: Scenario.chosen)
  func failing(scenario: Scenario) async throws { try await Matrix(scenario: scenario, faults: Fault.errors).sweep() }

  @Test(arguments: Scenario.chosen)
  func unnoticed(scenario: Scenario) async throws {
    try await Matrix(scenario: scenario, faults: Fault.harmless).sweep()
  }
}
