import Testing
import TestSupport

@testable import LyingServer

/// Servers that are never silent and never through.
@Suite struct SlowServerTests {
  private static let data = large(payload, count: 30)

  /// Sends as much of the answer as `limit` says, and then a byte now and then.
  private static func drip(_ request: ServerRequest, _ reply: Reply, after limit: Int) throws {
    let start = request.rangeStart ?? 0
    if try Origin(bytes: data).answer(request, reply, limit: limit) == 0 { return }
    try reply.drip(data[(start + limit)...], piece: 1, milliseconds: 100)
  }

  /// Plays again, up to five times, where something is wrong: a machine that stands still for a second or two makes any
  /// server slow.
  /// - Parameter play: returns what is wrong.
  private func expect(_ play: () async throws -> String?) async throws {
    var problem = try await play()
    for _ in 1...4 where problem != nil { problem = try await play() }
    #expect(problem == nil)
  }

  /// Another connection to the same server brings the rest, within the same attempt.
  @Test func aFreshConnection() async throws { try await expect(freshConnection) }

  private func freshConnection() async throws -> String? {
    let server = try ScriptedServer { request, reply in
      if request.connection > 1 {
        try Origin(bytes: Self.data).answer(request, reply)
      } else {
        try Self.drip(request, reply, after: 100_000)
      }
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\nmin-rate: 20k over 2s\nattempts: 1\n")
    let result = try await spoolrun("--once", spool.root)
    guard spool.payloads == ["data"] else { return "\(result)" }
    #expect(try spool.payload("data") == Self.data, "\(result)")
    let isRight = server.requests.map(\.connection) == [1, 2]
    return isRight && server.requests.last?.rangeStart ?? 0 > 50_000 ? nil : "\(result)\n\(server.requests)"
  }

  /// One that drips each time is left for the next mirror.
  @Test func theNextMirror() async throws { try await expect(nextMirror) }

  private func nextMirror() async throws -> String? {
    let slow = try ScriptedServer { try Self.drip($0, $1, after: 10) }
    let good = try ScriptedServer { try Origin(bytes: Self.data).answer($0, $1) }
    let spool = try TemporarySpool()
    try spool.drop(
      "job", "url: \(slow.url("/data"))\nurl: \(good.url("/data"))\nmin-rate: 1k over 1s\nattempts: 1\n")
    let result = try await spoolrun("-v", "--once", spool.root)
    guard spool.payloads == ["data"] else { return "\(result)" }
    #expect(try spool.payload("data") == Self.data, "\(result)")
    let isRight = slow.requests.count == 3 && good.requests.count == 2
    let isTold = result.errors.contains("mirror-failed") && result.errors.contains("code=stalled")
    return isRight && isTold ? nil : "\(result)\n\(slow.requests)\n\(good.requests)"
  }

  /// With no other server the attempt comes to its end, and says why.
  @Test func noOther() async throws {
    let slow = try ScriptedServer { try Self.drip($0, $1, after: 10) }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(slow.url("/data"))\nmin-rate: 1k over 1s\nattempts: 1\n")
    let result = try await spoolrun("--once", spool.root)
    let record = try #require(try spool.lines("failed/job").last { $0.key == "failed" }, "\(result)")
    #expect(record["code"] == "stalled" && record["class"] == "temporary", "\(record)")
    #expect(record["reason"]?.contains("min-rate is 1024") == true, "\(record)")
  }

  /// Over several connections each of them is held to it, though none of its pieces takes that long.
  @Test func piecesAreAddedUp() async throws {
    let server = try ScriptedServer { request, reply in
      let rest = try Origin(bytes: Self.data).answer(request, reply, limit: 1000)
      guard rest > 0 else { return }
      let start = (request.rangeStart ?? 0) + 1000
      try reply.drip(Self.data[start..<start + rest], piece: 2048, milliseconds: 40)
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\nmin-rate: 1M over 1s\nconnections: 2\n")
    let result = try await spoolrun("--once", "--chunk-size", "16k", spool.root)
    #expect(try spool.payload("data") == Self.data, "\(result)")
    #expect(Set(server.requests.map(\.connection)).count > 2, "\(server.requests)")
  }

  /// A rate of our own that is lower makes nobody too slow.
  @Test(arguments: [1, 2]) func ownLimits(connections: Int) async throws {
    try await expect { try await problem(ofOwnLimits: connections) }
  }

  private func problem(ofOwnLimits connections: Int) async throws -> String? {
    let server = try ScriptedServer { try Origin(bytes: Self.data).answer($0, $1) }
    let spool = try TemporarySpool()
    try spool.drop(
      "job", "url: \(server.url("/data"))\nmin-rate: 10M over 1s\nlimit-rate: 100k\nconnections: \(connections)\n")
    let result = try await spoolrun("-v", "--once", "--chunk-size", "64k", spool.root)
    #expect(try spool.payload("data") == Self.data, "\(result)")
    let isRight = !result.errors.contains("min-rate")
    let count = Set(server.requests.map(\.connection)).count
    return isRight && count == connections ? nil : "\(count) connections: \(result)"
  }
}
