import Testing

@testable import Transfer

/// Which requests may go over one connection.
@Suite struct HopConnectionTests {
  private let sockets = OpenSockets()
  private let ports = OpenSockets.Connection(localPort: 40_000, remotePort: 443)

  /// libcurl 7.88 may give a request a connection on which another one waits for its answer.
  @Test func noOtherWhileAnAnswerIsComing() {
    let (first, second) = (HopConnection(sockets), HopConnection(sockets))
    #expect(first.send(over: ports, .https) == .goesOut)
    #expect(second.send(over: ports, .https) == .startsAgain)
    #expect(second.mustBeFresh)
    first.leave()
    #expect(HopConnection(sockets).send(over: ports, .https) == .goesOut)
  }

  /// libcurl gives the connection to the next request before it reports the end of the last one.
  @Test func theNextOneOnceAnAnswerIsWhole() {
    let (first, second, third) = (HopConnection(sockets), HopConnection(sockets), HopConnection(sockets))
    #expect(first.send(over: ports, .https) == .goesOut)
    first.noteWholeAnswer()
    #expect(second.send(over: ports, .https) == .goesOut)
    first.leave()
    #expect(third.send(over: ports, .https) == .startsAgain, "the second one's answer is coming")
  }
}
