import TestSupport
import Testing

/// Files that servers send in a Content-Encoding, although none is asked for.
@Suite struct EncodedTests {
  /// The payload as gzip(1) packs it, and a server that sends that.
  private struct Packed {
    let bytes: [UInt8]
    let server: ScriptedServer

    /// - Parameters:
    ///   - hasLength: a server that packs while it sends has none.
    ///   - cuts: the first answer ends too early.
    init(hasLength: Bool = true, cuts: Bool = false) async throws {
      let directory = try TemporaryDirectory()
      try writeFile("\(directory.path)/file", payload)
      try await runTool(["/bin/gzip", "-1n", "\(directory.path)/file"])
      let packed = try readFile("\(directory.path)/file.gz")
      bytes = packed
      server = try ScriptedServer { request, reply in
        let start = request.rangeStart ?? 0
        let body = packed[start...]
        let range = start > 0 ? ["Content-Range: bytes \(start)-\(packed.count - 1)/\(packed.count)"] : []
        let length = hasLength ? ["Content-Length: \(body.count)"] : ["Transfer-Encoding: chunked"]
        try reply.head(
          start > 0 ? "206 Partial Content" : "200 OK", ["ETag: \"1\"", "Content-Encoding: gzip"] + range + length)
        if hasLength {
          try reply.send(cuts && request.nth == 1 ? body.prefix(body.count / 2) : body)
          if cuts, request.nth == 1 { try reply.finish() }
        } else {
          try reply.send("\(String(body.count, radix: 16))\r\n")
          try reply.send(body)
          try reply.send("\r\n0\r\n\r\n")
        }
      }
    }
  }

  private func run(_ packed: Packed, _ lines: String = "", path: String = "data") async throws -> (
    TemporarySpool, CommandResult
  ) {
    let spool = try TemporarySpool()
    try spool.drop("a", "url: \(packed.server.url("/\(path)"))\n\(lines)")
    return (spool, try await spoolrun("--once", spool.root))
  }

  @Test(arguments: [true, false]) func oneAttemptShowsItAndNamesTheKey(hasLength: Bool) async throws {
    let packed = try await Packed(hasLength: hasLength)
    let (spool, result) = try await run(packed)
    #expect(result.status == .exited(1) && packed.server.requests.count == 1, "\(result)")
    let failure = try spool.lastFailure("failed/a")
    #expect(failure["code"] == "encoded" && failure["reason"]?.contains("`encoded: keep`") == true, "\(failure)")
    #expect(spool.payloads == [])
  }

  @Test(arguments: [true, false], ["", "connections: 4\n"])
  func keptAsItComes(hasLength: Bool, connections: String) async throws {
    let packed = try await Packed(hasLength: hasLength)
    let (spool, result) = try await run(packed, "encoded: keep\n\(connections)")
    #expect(result.status == .exited(0), "\(result)\n\(spool.listing(of: "a"))")
    #expect(try spool.payload("data") == packed.bytes)
  }

  /// The same bytes under the same validator.
  @Test func keptAndResumed() async throws {
    let packed = try await Packed(cuts: true)
    let (spool, result) = try await run(packed, "encoded: keep\n")
    #expect(result.status == .exited(0), "\(result)\n\(spool.listing(of: "a"))")
    #expect(try spool.payload("data") == packed.bytes)
    #expect(packed.server.requests.map(\.rangeStart) == [nil, resumePoint(after: packed.bytes.count / 2)])
    #expect(try spool.lines("done/a").first { $0.key == "response" }?["coding"] == "gzip")
  }

  /// Nothing but a declared digest or size shows that the decoder had all.
  @Test(arguments: [true, false], ["", "connections: 4\n", "size: \(payload.count)\n"])
  func decoded(hasLength: Bool, lines: String) async throws {
    let packed = try await Packed(hasLength: hasLength)
    let (spool, result) = try await run(packed, "encoded: decode\n\(lines)")
    #expect(result.status == .exited(0), "\(result)\n\(spool.listing(of: "a"))")
    #expect(try spool.payload("data") == payload)
    #expect((try spool.lines("done/a").last?["unproven"] == "length") == !lines.hasPrefix("size"))
    #expect(packed.server.requests.allSatisfy { $0.values("accept-encoding") == ["identity"] })
  }

  @Test func decodedFromItsStartAfterACut() async throws {
    let packed = try await Packed()
    let count = packed.bytes.count
    let server = try ScriptedServer { [bytes = packed.bytes] request, reply in
      try reply.head("200 OK", ["ETag: \"1\"", "Content-Encoding: gzip", "Content-Length: \(count)"])
      try reply.send(request.nth == 2 ? bytes.prefix(count / 2) : bytes[...])
      if request.nth == 2 { try reply.finish() }
    }
    let spool = try TemporarySpool()
    try spool.drop("a", "url: \(server.url("/data"))\nencoded: decode\n")
    try await spool.once(exits: 0)
    #expect(try spool.payload("data") == payload)
    #expect(server.requests.allSatisfy { $0.rangeStart == nil })
  }

  /// An object that is stored packed: what the job declares is of what is stored.
  @Test func aDeclaredDigestOrSizeDecides() async throws {
    let packed = try await Packed()
    let sum = hex8(independentCRC32(packed.bytes))
    for lines in ["crc32: \(sum)\n", "size: \(packed.bytes.count)\n", "crc32: \(sum)\nsize: \(packed.bytes.count)\n"] {
      let (spool, result) = try await run(packed, lines)
      #expect(result.status == .exited(0), "\(result)\n\(spool.listing(of: "a"))")
      #expect(try spool.payload("data") == packed.bytes)
    }
    try await replay {
      let (spool, _) = try await run(packed, "crc32: \(hex8(independentCRC32(payload)))\n")
      if spool.places(of: "a") == ["failed/a"] { return false }
      let failure = try spool.lastFailure("partial/a")
      #expect(failure["code"] == "mismatch-crc32" && failure["reason"]?.contains("`encoded: decode`") == true)
      #expect(spool.payloads == [])
      return true
    }
  }

  /// A coding that this libcurl does not have, or a body that is in none.
  @Test(arguments: ["exi", "gzip"]) func whatCannotBeDecoded(coding: String) async throws {
    let server = try ScriptedServer { _, reply in
      try reply.respond("200 OK", ["Content-Encoding: \(coding)"], body: payload.prefix(5000))
    }
    let spool = try TemporarySpool()
    try spool.drop("a", "url: \(server.url("/data"))\nencoded: decode\n")
    try await spool.once(exits: 1)
    #expect(try spool.lastFailure("failed/a")["code"] == "encoded" && spool.payloads == [])
  }
}
