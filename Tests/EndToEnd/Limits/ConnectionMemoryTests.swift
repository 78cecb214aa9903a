import TestSupport
import Testing

/// How many connections a job gets, by what it may have and what memory allows.
@Suite struct ConnectionMemoryTests {
  /// How many chunks a server has to answer at a time.
  private func mostAtOnce(_ job: String, _ arguments: [String]) async throws -> (most: Int, log: String) {
    let gauge = Gauge()
    let body = [UInt8](repeating: 3, count: 3_000_000)
    let server = try ScriptedServer { request, reply in
      guard let start = request.rangeStart else {
        gauge.hold {}
        return try reply.respond("200 OK", ["ETag: \"v\""], body: body)
      }
      let end = min(body.count, (request.rangeEnd ?? body.count - 1) + 1)
      try gauge.hold {
        try reply.head(
          "206 Partial Content",
          ["ETag: \"v\"", "Content-Range: bytes \(start)-\(end - 1)/\(body.count)", "Content-Length: \(end - start)"])
        // So that others come meanwhile, where there are any.
        if start > 0 { try reply.pause(milliseconds: 50) }
      }
      try reply.send(body[start..<end])
    }
    let spool = try TemporarySpool()
    try spool.drop("a", "\(server.url("/a"))\n\(job)")
    let result = try await startSpoolrun(["--once", "-v", "--chunk-size", "64k"] + arguments + [spool.root]).result()
      .exits(0)
    #expect(try spool.payload("a") == body)
    return (gauge.most, result.errors)
  }

  @Test func aJobHasNoMoreConnectionsThanAllowed() async throws {
    #expect(try await mostAtOnce("connections: 8\n", []).most > 3)
    var capped: [Int] = []
    // A server's thread that stands still counts a request that the worker has given up for another one.
    for _ in 1...2 where capped.allSatisfy({ !(2...3).contains($0) }) {
      capped.append(try await mostAtOnce("connections: 8\n", ["--max-connections", "3"]).most)
    }
    #expect(capped.contains { (2...3).contains($0) }, "\(capped)")
    #expect(try await mostAtOnce("connections: 8\n", ["--max-connections", "1"]).most == 1)
  }

  @Test func withoutMemoryThereIsOneConnection() async throws {
    let (most, log) = try await mostAtOnce("connections: 8\n", ["--max-memory", "1M"])
    #expect(most == 1 && log.contains("--max-memory"), "\(log)")
  }
}
