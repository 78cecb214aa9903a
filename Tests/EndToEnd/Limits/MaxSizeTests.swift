import TestSupport
import Testing

/// `--max-size` and `max-size:`: nothing larger is fetched, whatever a server or a job says.
@Suite struct MaxSizeTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  private static let body = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 3) }

  /// `/told` says the length; `/untold` ends with its last chunk; `/endless` never does.
  private func server(_ body: [UInt8] = body) throws -> ScriptedServer {
    try ScriptedServer { request, reply in
      let start = request.rangeStart ?? 0
      switch request.target {
      case "/told" where start > 0 || request.rangeEnd != nil:
        let end = min(request.rangeEnd ?? body.count - 1, body.count - 1)
        let range = "Content-Range: bytes \(start)-\(end)/\(body.count)"
        try reply.respond("206 Partial Content", ["ETag: \"v1\"", range], body: body[start...end])
      case "/told": try reply.respond("200 OK", ["ETag: \"v1\""], body: body)
      default:
        try reply.head("200 OK", ["Transfer-Encoding: chunked"])
        repeat {
          try reply.send("\(String(body.count, radix: 16))\r\n")
          try reply.send(body)
          try reply.send("\r\n")
        } while request.target == "/endless"
        try reply.send("0\r\n\r\n")
      }
    }
  }

  private func expectTooLarge(_ spool: TemporarySpool, _ job: String, most: Int, _ found: String) throws {
    let record = try spool.lastFailure("failed/\(job)")
    #expect(record["code"] == "too-large" && record["class"] == "permanent" && record["retry"] == nil, "\(record)")
    #expect(record["expected"] == "at most \(most)" && record["found"]?.hasPrefix(found) == true, "\(record)")
    #expect(
      spool.names("partial") == [] && spool.names("failed") == [job], "no data is kept: \(spool.listing(of: job))")
    #expect(spool.payloads == [])
  }

  @Test(arguments: ["/told", "/untold"])
  func asLargeAsAllowed(path: String) async throws {
    let server = try server()
    try spool.drop("job", "url: \(server.url(path))\n")
    try await spoolrun("--once", "--max-size", "\(Self.body.count)", spool.root).exits(0)
    #expect(try spool.payload(String(path.dropFirst())) == Self.body)
  }

  /// Where the length is told, no byte of the body is taken.
  @Test(arguments: [("/told", "100000"), ("/untold", "at least "), ("/endless", "at least ")], [1, 4])
  func oneByteTooMany(answer: (path: String, found: String), connections: Int) async throws {
    let server = try server()
    try spool.drop("job", "url: \(server.url(answer.path))\nconnections: \(connections)\n")
    try await spoolrun("--once", "--max-size", "\(Self.body.count - 1)", spool.root)
      .exits(1, saying: "job: too-large: ")
    try expectTooLarge(spool, "job", most: Self.body.count - 1, answer.found)
    if answer.path == "/told" { #expect(try spool.lastFailure("failed/job")["fetched"] == nil) }
  }

  /// A job can ask for less than the worker allows, and not for more; `defaults` stand in for it.
  @Test(arguments: [
    (option: "1M", job: "max-size: 99999\n", defaults: "", most: 99_999),
    (option: "99999", job: "max-size: 1T\n", defaults: "max-size: 2T\n", most: 99_999),
    (option: "1M", job: "", defaults: "max-size: 50k\n", most: 51_200),
  ])
  func theLeastCounts(option: String, job: String, defaults: String, most: Int) async throws {
    let server = try server()
    try spool.write("defaults", defaults)
    try spool.drop("job", "url: \(server.url("/told"))\n\(job)")
    try await spoolrun("--once", "--max-size", option, spool.root).exits(1)
    try expectTooLarge(spool, "job", most: most, "100000")
  }

  @Test(arguments: [nil, 5000])
  func aJobThatSaysSoItselfIsNotAskedFor(begun: Int?) async throws {
    let server = try server()
    let job = "url: \(server.url("/told"))\nsize: 100000\n"
    if let begun {
      try spool.addPartial(
        "job", job: job, facts: PartialFacts(size: 100_000, etag: "\"v1\""), part: Array(Self.body.prefix(begun)))
    } else {
      try spool.drop("job", job)
    }
    try await spool.once("--max-size", "99999", exits: 1)
    try expectTooLarge(spool, "job", most: 99_999, "100000")
    #expect(server.requests.isEmpty)
  }

  /// Data of an attempt that was made when more was allowed: in part, and all of it.
  @Test(arguments: [60_000, 100_000])
  func lessIsAllowedNow(length: Int) async throws {
    let server = try server()
    try spool.addPartial(
      "job", job: "url: \(server.url("/told"))\n", facts: PartialFacts(size: 100_000, etag: "\"v1\""),
      part: Array(Self.body.prefix(length)))
    try await spool.once("--max-size", "50k", exits: 1)
    try expectTooLarge(spool, "job", most: 51_200, "100000")
  }

  /// The mirror that has the right one is still asked, and gets none of the other's data.
  @Test func anotherMirror() async throws {
    let large = try server()
    let right = try server(Array(Self.body.prefix(1000)))
    try spool.drop("job", "url: \(large.url("/endless"))\nurl: \(right.url("/told"))\noutput: x\n")
    try await spool.once("--max-size", "50k", exits: 0)
    #expect(try spool.payload("x") == Array(Self.body.prefix(1000)))
    #expect(right.requests.map(\.rangeStart) == [nil])
  }

  @Test func badValues() async throws {
    for value in ["0", "x", "-1", "1.5M", "9999999T"] {
      try await spoolrun("--once", "--max-size", value, spool.root).exits(64)
      try spool.drop("job\(value)", "url: http://127.0.0.1:9/x\nmax-size: \(value)\n")
    }
    try await spool.once(exits: 1)
    for name in spool.names("failed") {
      #expect(try spool.lastFailure("failed/\(name)")["reason"]?.hasPrefix("max-size: must be ") == true)
    }
  }
}
