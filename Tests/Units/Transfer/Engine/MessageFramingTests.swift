import TestSupport
import Testing

@testable import Transfer

/// How a message ends, and how it only seems to. LyingServerTests have more ways.
@Suite(.timeLimit(.minutes(30))) struct MessageFramingTests {
  private static let payload = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

  /// One way to answer, and the code of the failure that it has to come to; nil for completeness.
  struct Answer: Sendable, CustomTestStringConvertible {
    let name: String
    let code: TransferFailure.Code?
    /// Whether the head comes to the sink.
    var accepted = true
    let script: ScriptedServer.Script
    var testDescription: String { name }
  }

  static let answers: [Answer] = [
    Answer(name: "length met", code: nil) { _, reply in try reply.respond("200 OK", body: payload) },
    Answer(name: "length met, more behind it", code: nil) { _, reply in
      try reply.head("200 OK", ["Content-Length: \(payload.count)"])
      try reply.send(payload + [1, 2, 3])
      try reply.finish()
    },
    Answer(name: "length not met, clean close", code: .shortBody) { _, reply in
      try reply.head("200 OK", ["Content-Length: \(payload.count + 1)"])
      try reply.send(payload)
      try reply.finish()
    },
    Answer(name: "length not met, reset", code: .cut) { _, reply in
      try reply.head("200 OK", ["Content-Length: \(payload.count + 1)"])
      try reply.send(payload)
      try reply.reset()
    },
    Answer(name: "protocol switch", code: .badResponse, accepted: false) { _, reply in
      try reply.head("101 Switching Protocols", ["Upgrade: x", "Connection: upgrade"])
      try reply.finish()
    },
  ]

  @Test(arguments: answers) func answer(_ answer: Answer) async throws {
    let server = try ScriptedServer(answer.script)
    let outcome = await (try Driver()).fetch(server.url("/a?token=hunter2"))
    #expect(outcome.failure?.code == answer.code, "\(outcome.result.end)")
    #expect(outcome.isComplete == (answer.code == nil))
    #expect(outcome.accepts == (answer.accepted ? [200] : []))
    #expect(outcome.result.bytesReceived == UInt64(outcome.body.count))
    #expect(outcome.body.elementsEqual(Self.payload.prefix(outcome.body.count)))
    if answer.code == nil { #expect(outcome.body == Self.payload) }
    if let failure = outcome.failure {
      #expect(failure.message.contains("127.0.0.1") && !failure.message.contains("hunter2"))
    }
    #expect(server.problems.isEmpty)
  }

  @Test(arguments: [
    "200 OK", "204 No Content", "304 Not Modified", "404 Not Found", "302 Found", "416 Range Not Satisfiable",
  ])
  func acceptIsAskedOnceWithoutABody(status: String) async throws {
    let server = try ScriptedServer { _, reply in
      try reply.head("103 Early Hints")
      try reply.head(status, ["Content-Length: 0"])
    }
    let outcome = await (try Driver()).fetch(server.url("/a"))
    #expect(outcome.isComplete)
    #expect(outcome.accepts == [Int(status.prefix(3))])
    #expect(outcome.body.isEmpty)
  }
}
