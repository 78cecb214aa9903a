import Testing

@testable import LyingServer

@Suite struct StatusTests {
  @Test("statuses and Retry-After", arguments: statusBehaviours)
  func status(_ behaviour: Behaviour) async throws {
    try await check(behaviour)
  }
}
