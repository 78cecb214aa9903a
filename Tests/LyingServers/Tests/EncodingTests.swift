import Testing

@testable import LyingServer

@Suite struct EncodingTests {
  @Test("encodings and heads", arguments: encodingBehaviours)
  func encoding(_ behaviour: Behaviour) async throws {
    try await check(behaviour)
  }
}
