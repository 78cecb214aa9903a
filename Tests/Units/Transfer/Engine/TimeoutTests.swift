import TestSupport
import Testing

@testable import Transfer

/// Servers that keep a client waiting, each in its own way.
@Suite(.timeLimit(.minutes(10))) struct TimeoutTests {
  /// Never idle, and never through: here the head is what drips.
  @Test func aDripOfFieldsIsAStall() async throws {
    let server = try ScriptedServer { _, reply in
      try reply.send("HTTP/1.1 200 OK\r\n")
      for number in 0... {
        try reply.pause(milliseconds: 50)
        try reply.send("X-\(number): y\r\n")
      }
    }
    let outcome = await (try Driver()).fetch(server.url("/a")) { $0.floor = RateFloor(bytesPerSecond: 1, seconds: 1) }
    #expect(outcome.failure?.code == .stalled && outcome.accepts == [])
  }

  /// The time before an answer begins is the idle time's affair.
  @Test func aLateAnswerIsNoStall() async throws {
    let server = try ScriptedServer { _, reply in
      try reply.pause(milliseconds: 1500)
      try reply.respond("200 OK", body: [1])
    }
    let outcome = await (try Driver()).fetch(server.url("/a")) {
      $0.floor = RateFloor(bytesPerSecond: 1_000_000, seconds: 1)
    }
    #expect(outcome.isComplete)
  }

  /// Our own limits, of the fetch or of all, are not the server's fault.
  @Test(arguments: [true, false]) func aLimitIsNoStall(isOwn: Bool) async throws {
    let body = [UInt8](repeating: 7, count: 70_000)
    let server = try ScriptedServer { _, reply in try reply.respond("200 OK", body: body) }
    let driver = try Driver()
    if isOwn { await driver.limit(1, to: 20_000) } else { await driver.share(20_000) }
    let outcome = await driver.fetch(server.url("/a")) {
      $0.group = 1
      $0.floor = RateFloor(bytesPerSecond: 1_000_000, seconds: 1)
    }
    #expect(outcome.isComplete && outcome.body == body, "\(outcome.result)")
    #expect(outcome.result.seconds > 2)
  }

  /// It takes the connection, and then says nothing at all: no TLS is ever spoken.
  @Test func muteBeforeTLS() async throws {
    let server = try ScriptedServer { _, reply in try reply.stall() }
    let outcome = await (try Driver()).fetch(server.url("/a").replacing("http:", with: "https:")) {
      $0.idleTimeoutSeconds = 1
    }
    #expect(outcome.failure?.code == .connect)
    #expect(outcome.failure?.message.hasSuffix("within 1 s") == true)
  }

  /// Where to go is known, so the body of a redirect is not waited for, nor is its connection used again.
  @Test(arguments: ["nothing", "drip", "half a chunk"]) func redirectBodyNeverComes(body: String) async throws {
    let server = try ScriptedServer { request, reply in
      guard request.target == "/a" else { return try reply.respond("200 OK", body: Array("payload".utf8)) }
      try reply.head(
        "302 Found", ["Location: /b", body == "half a chunk" ? "Transfer-Encoding: chunked" : "Content-Length: 1000"])
      if body == "half a chunk" { try reply.send("40\r\nabc") }
      while body == "drip" { try reply.drip([1, 2], piece: 1, milliseconds: 50) }
      try reply.stall()
    }
    let outcome = await (try Driver()).fetch(server.url("/a"))
    #expect(outcome.isComplete && outcome.body == Array("payload".utf8), "\(outcome.result)")
    #expect(server.requests.map(\.connection) == [1, 2])
  }

  /// A job's rate, and that of all jobs, hold over all requests, however many and small, and not only within each: what
  /// one took too much is paid by those that come after it.
  @Test(arguments: [true, false]) func theRateHoldsForManyRequests(isOwn: Bool) async throws {
    let server = try ScriptedServer { _, reply in
      try reply.respond("200 OK", body: [UInt8](repeating: 1, count: 16_000))
    }
    let driver = try Driver()
    // A fetch of no group pays, too, for what those before it took of what all share.
    let group: FetchRequest.ID? = isOwn ? 1 : nil
    if isOwn { await driver.limit(1, to: 100_000) } else { await driver.share(100_000) }
    let began = monotonicMilliseconds()
    for _ in 1...20 { #expect(await driver.fetch(server.url("/x")) { $0.group = group }.isComplete) }
    // The last one's share is not waited for.
    #expect(monotonicMilliseconds() - began >= 19 * 160 - 200)
    guard isOwn else { return }
    // What one group owes, 16 seconds by now, is no other's.
    await driver.limit(1, to: 1000)
    #expect(await driver.fetch(server.url("/x")) { $0.group = 1 }.isComplete)
    await driver.limit(2, to: 10_000)
    let next = await driver.fetch(server.url("/x")) { $0.group = 2 }
    #expect(next.isComplete && next.result.seconds < 14)
  }
}
