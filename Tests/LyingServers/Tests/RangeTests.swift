import Testing

@testable import LyingServer

@Suite struct RangeTests {
  @Test("206 and 416", arguments: rangeBehaviours)
  func range(_ behaviour: Behaviour) async throws {
    try await check(behaviour)
  }
}
