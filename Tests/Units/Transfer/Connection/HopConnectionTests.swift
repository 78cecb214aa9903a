import Testing

@testable import Transfer

/// Which requests may go over one connection.
@Suite struct HopConnectionTests {
  /// A reused connection may turn out to be dead when the request was sent already: libcurl would send it again there.
  @Test func aRepeatedRequestGoesOverAConnectionOfItsOwnOnce() {
    let hop = HopConnection(OpenSockets())
    #expect(hop.send(over: .init(localPort: 40_000, remotePort: 443), .https) == .goesOut)
    #expect(hop.sendAgain(hasAnswer: false) == .startsAgain)
    #expect(hop.mustBeFresh)
    #expect(hop.sendAgain(hasAnswer: false) == .isCut)
  }

  @Test func nothingIsRepeatedBehindAnAnswer() {
    #expect(HopConnection(OpenSockets()).sendAgain(hasAnswer: true) == .isCut)
  }
}
