import TestSupport
import Testing

@testable import Transfer

/// How a message ends, and how it only seems to.
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

  private static func chunk(_ bytes: some Collection<UInt8>) -> [UInt8] {
    Array((String(bytes.count, radix: 16) + "\r\n").utf8) + bytes + Array("\r\n".utf8)
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
    Answer(name: "closed, HTTP/1.0", code: nil) { _, reply in
      try reply.head("200 OK", version: "HTTP/1.0")
      try reply.send(payload)
      try reply.finish()
    },
    Answer(name: "reset where the close is the end", code: .cut) { _, reply in
      try reply.head("200 OK")
      try reply.send(payload)
      try reply.reset()
    },
    Answer(name: "chunks", code: nil) { _, reply in
      try reply.head("200 OK", ["Transfer-Encoding: chunked"])
      try reply.send(chunk(payload.prefix(7)) + chunk(payload.dropFirst(7)))
      try reply.send("0\r\nX-Trailer: 1\r\n\r\n")
    },
    Answer(name: "no last chunk", code: .cut) { _, reply in
      try reply.head("200 OK", ["Transfer-Encoding: chunked"])
      try reply.send(chunk(payload))
      try reply.finish()
    },
    Answer(name: "cut within a chunk", code: .cut) { _, reply in
      try reply.head("200 OK", ["Transfer-Encoding: chunked"])
      try reply.send(chunk(payload).dropLast(9))
      try reply.finish()
    },
    Answer(name: "no chunk size", code: .badResponse) { _, reply in
      try reply.head("200 OK", ["Transfer-Encoding: chunked"])
      try reply.send(chunk(payload))
      try reply.send("zzz\r\n")
      try reply.finish()
    },
    Answer(name: "contradictory lengths", code: .badResponse, accepted: false) { _, reply in
      try reply.respond("200 OK", ["Content-Length: 7"], body: payload)
    },
    Answer(name: "length beyond 63 bits", code: .badResponse, accepted: false) { _, reply in
      try reply.head("200 OK", ["Content-Length: 9223372036854775808"])
      try reply.send(payload)
      try reply.finish()
    },
    Answer(name: "negative length", code: .badResponse, accepted: false) { _, reply in
      try reply.head("200 OK", ["Content-Length: -1"])
      try reply.finish()
    },
    Answer(name: "no answer", code: .cut, accepted: false) { _, reply in try reply.finish() },
    Answer(name: "reset instead of an answer", code: .cut, accepted: false) { _, reply in try reply.reset() },
    Answer(name: "cut within the head", code: .cut, accepted: false) { _, reply in
      try reply.send("HTTP/1.1 200 OK\r\nA: b\r\n")
      try reply.finish()
    },
    Answer(name: "HTTP/0.9", code: .badResponse, accepted: false) { _, reply in
      try reply.send("payload without a head")
      try reply.finish()
    },
    Answer(name: "one header line of 300 KiB", code: .badResponse, accepted: false) { _, reply in
      try reply.head("200 OK", ["X: " + String(repeating: "x", count: 300 * 1024)])
      try reply.finish()
    },
    Answer(name: "300 KiB of header lines", code: .badResponse, accepted: false) { _, reply in
      try reply.head("200 OK", (0..<300).map { "X-\($0): " + String(repeating: "x", count: 1024) })
      try reply.finish()
    },
    Answer(name: "endless interim responses", code: .badResponse, accepted: false) { _, reply in
      for _ in 0..<20_000 { try reply.head("100 Continue") }
      try reply.finish()
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

  /// With a TLS close the end is authentic, without one it is anybody's guess: a cut (RFC 9112, 9.8).
  @Test(.enabled("needs openssl and python3") { try await Need.tls.isMet() }, arguments: [true, false])
  func tlsClose(announced: Bool) async throws {
    let server = try ScriptedServer { _, reply in
      try reply.head("200 OK", ["Connection: close"])
      try reply.send(Self.payload)
      try reply.finish()
    }
    let authority = try await CertificateAuthority()
    let front = try await TLSFront(to: server, authority: authority, announcesEnd: announced)
    var network = NetworkOptions()
    network.authorities = authority.authority
    let driver = try Driver(.init(network: network))
    let outcome = await driver.fetch(front.url("/a"))
    #expect(outcome.body == Self.payload)
    #expect(outcome.failure?.code == (announced ? nil : .cut))

    let stranger = await (try Driver()).fetch(front.url("/a?token=hunter2"))
    #expect(stranger.failure?.code == .tls)
    #expect(stranger.failure?.message.contains("certificate") == true)
    #expect(stranger.failure?.message.contains("hunter2") == false)
  }
}
