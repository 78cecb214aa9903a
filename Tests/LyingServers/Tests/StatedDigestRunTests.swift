import Glibc
import TestSupport
import Testing

@testable import LyingServer

/// Servers that state digests: true ones, false ones, and those of something else than the file.
@Suite struct StatedDigestRunTests {
  /// The digest of `bytes` by another program, in base64 and in hexadecimal digits.
  private func sum(_ name: String, _ bytes: some Collection<UInt8>) async throws -> (base64: String, hex: String) {
    let directory = try TemporaryDirectory()
    try writeFile("\(directory.path)/data", Array(bytes))
    if name == "crc32" {
      let hex = hex8(independentCRC32(bytes))
      return (try await runTool(["/bin/sh", "-c", "printf \(hex) | basenc --base16 -d | base64"]).output.trimmed, hex)
    }
    let hex = try await runTool(["/usr/bin/\(name)sum", "\(directory.path)/data"]).output.prefix { $0 != " " }
    let line = "printf \(hex.uppercased()) | basenc --base16 -d | base64 -w 0"
    return (try await runTool(["/bin/sh", "-c", line]).output.trimmed, String(hex))
  }

  /// A job that states nothing itself, run once against this server.
  private func run(_ origin: Origin, _ lines: String = "") async throws -> (
    spool: TemporarySpool, server: ScriptedServer, status: CommandResult
  ) {
    let server = try ScriptedServer { try origin.answer($0, $1) }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\n\(lines)")
    return (spool, server, try await spoolrun("--once", spool.root))
  }

  private func verified(_ spool: TemporarySpool) throws -> JobLine {
    try #require(try spool.lines("done/job").last { $0.key == "verified" }, "\(spool.listing(of: "job"))")
  }

  /// How each server spells it; `%` is the digest.
  static let spellings = [
    ("sha256", "Repr-Digest: sha-256=:%:"), ("sha512", "Repr-Digest: sha-512=:%:"),
    ("sha256", "Content-Digest: sha-256=:%:"), ("sha256", "Digest: SHA-256=%"), ("sha1", "Digest: SHA=%"),
    ("md5", "Content-MD5: %"), ("md5", "x-goog-hash: crc32c=AAAAAA==,md5=%"), ("sha256", "x-amz-checksum-sha256: %"),
    ("sha1", "x-amz-checksum-sha1: %"), ("crc32", "x-amz-checksum-crc32: %"),
  ]

  @Test(arguments: spellings)
  func aTrueOneIsInTheReceipt(name: String, spelling: String) async throws {
    let sum = try await sum(name, payload)
    let (spool, _, result) = try await run(Origin(fields: [spelling.replacing("%", with: sum.base64)]))
    #expect(result.status == .exited(0), "\(result)\n\(spool.listing(of: "job"))")
    #expect(try verified(spool)[name] == sum.hex)
    #expect(try spool.lines("done/job").first { $0.key == "response" }?[name] == sum.hex)
  }

  /// Fetched again from 0; then the job is given up, as the file was the same.
  @Test(arguments: spellings)
  func aFalseOneIsAMismatch(name: String, spelling: String) async throws {
    // A first mismatch is looked at again after 4 s: in the same run, where the machine stood still for so long.
    for play in 1...5 {
      let (right, wrong) = (try await sum(name, payload), try await sum(name, previous))
      let (spool, server, first) = try await run(Origin(fields: [spelling.replacing("%", with: wrong.base64)]))
      if play < 5, server.requests.count > 1 { continue }
      #expect(first.status == .exited(75), "\(first)\n\(spool.listing(of: "job"))")
      let failure = try spool.lastFailure("partial/job")
      #expect(failure["code"] == "mismatch-\(name)" && failure["class"] == "temporary")
      #expect(failure["expected"] == wrong.hex && failure["found"] == right.hex)
      #expect(failure["reason"]?.contains("server states") == true, "\(failure)")
      #expect(digest(try readFile(spool.path("failed/job.part"))) == digest(payload), "the data is set aside")
      try spool.makeDue("job")
      #expect(try await spoolrun("--once", spool.root).status == .exited(1))
      #expect(try spool.lastFailure("failed/job")["code"] == "mismatch" && spool.payloads == [])
      #expect(server.requests.map(ask) == ["plain", "plain"])
      return
    }
  }

  /// What is not of the file says nothing of it.
  @Test(arguments: [
    "x-amz-checksum-sha256: %-3", "x-amz-checksum-sha256: %;x-amz-checksum-type: COMPOSITE",
    "Repr-Digest: sha-256=%", "ETag: \"%\"", "Repr-Digest: sha-256=:%:;Digest: SHA-256=AAAA%",
    "x-goog-stored-content-encoding: gzip;x-goog-hash: md5=1B2M2Y8AsgTpgAmY7PhCfg==",
  ])
  func ofSomethingElse(fields: String) async throws {
    let wrong = try await sum("sha256", previous).base64
    let short = String(wrong.dropFirst(4))
    let fields = fields.replacing("AAAA%", with: "AAAA\(short)").replacing("%", with: wrong).split(separator: ";")
    let (spool, _, result) = try await run(Origin(etag: nil, fields: fields.map(String.init)))
    #expect(result.status == .exited(0), "\(result)\n\(spool.listing(of: "job"))")
    #expect(try verified(spool)["sha256"] == nil && verified(spool)["md5"] == nil)
  }

  /// Whatever the server says of an encoded file, it was not asked for.
  @Test func withAnEncoding() async throws {
    let wrong = try await sum("sha256", previous).base64
    let (spool, _, _) = try await run(Origin(fields: ["Content-Encoding: gzip", "Repr-Digest: sha-256=:\(wrong):"]))
    #expect(try spool.lastFailure("failed/job")["code"] == "encoded")
  }

  /// A weaker one beside the strongest may be stale.
  @Test func theStrongestAloneCounts() async throws {
    let (right, wrong) = (try await sum("sha512", payload), try await sum("sha256", previous).base64)
    let stale = try await sum("crc32", previous).base64
    let fields = ["Repr-Digest: sha-256=:\(wrong):, sha-512=:\(right.base64):", "x-amz-checksum-crc32: \(stale)"]
    let (spool, _, result) = try await run(Origin(fields: fields))
    #expect(result.status == .exited(0), "\(result)\n\(spool.listing(of: "job"))")
    #expect(try verified(spool)["sha512"] == right.hex)
  }

  /// The job's word counts more than the server's.
  @Test func besideADeclaredDigest() async throws {
    let wrong = try await sum("sha256", previous).base64
    let (spool, _, result) = try await run(
      Origin(fields: ["Repr-Digest: sha-256=:\(wrong):"]), "crc32: \(hex8(independentCRC32(payload)))\n")
    #expect(result.status == .exited(0), "\(result)\n\(spool.listing(of: "job"))")
  }

  /// The first server's statement is not the second's.
  @Test func anotherMirrorMayBeRight() async throws {
    let wrong = try await sum("md5", previous).base64
    let first = try ScriptedServer { try Origin(fields: ["Content-MD5: \(wrong)"]).answer($0, $1) }
    let second = try ScriptedServer { try Origin().answer($0, $1) }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(first.url("/data"))\nurl: \(second.url("/data"))\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0), "\(result)\n\(spool.listing(of: "job"))")
    #expect(second.requests.map(ask) == ["plain"])
  }

  // MARK: parts

  /// The first answer is cut; the rest is asked for with the validator.
  /// - Parameter fields: what the answer to the request of this number states.
  private func cut(_ fields: @escaping @Sendable (Int) -> [String], _ lines: String = "") async throws -> (
    spool: TemporarySpool, server: ScriptedServer, status: CommandResult
  ) {
    let server = try ScriptedServer { request, reply in
      try Origin(fields: fields(request.nth)).answerAndCut(request, reply, after: request.nth == 1 ? 4000 : n)
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\n\(lines)")
    return (spool, server, try await spoolrun("--once", spool.root))
  }

  /// Content-MD5 and Content-Digest of a 206 are of the part.
  @Test func ofThePart() async throws {
    let whole = try await sum("md5", payload)
    let part = try await (sum("md5", payload[4000...]).base64, sum("sha256", payload[4000...]).base64)
    let (spool, server, result) = try await cut { nth in
      nth == 1
        ? ["Content-MD5: \(whole.base64)"] : ["Content-MD5: \(part.0)", "Content-Digest: sha-256=:\(part.1):"]
    }
    #expect(result.status == .exited(0), "\(result)\n\(spool.listing(of: "job"))")
    #expect(try verified(spool)["md5"] == whole.hex && verified(spool)["sha256"] == nil)
    #expect(server.requests.map(ask) == ["plain", "range 2000 if \(v1)"])
  }

  /// Known only from the second answer on: the data is read once for it.
  @Test(arguments: [true, false])
  func statedOnlyWithTheRest(isRight: Bool) async throws {
    // A first mismatch is looked at again after 4 s: in the same run, where the machine stood still for so long.
    for play in 1...5 {
      let sum = try await sum("sha256", isRight ? payload : previous)
      let (spool, server, result) = try await cut { $0 == 1 ? [] : ["Repr-Digest: sha-256=:\(sum.base64):"] }
      if play < 5, !isRight, server.requests.count > 2 { continue }
      #expect(server.requests.map(ask) == ["plain", "range 2000 if \(v1)"])
      if isRight {
        #expect(result.status == .exited(0), "\(result)\n\(spool.listing(of: "job"))")
        #expect(try verified(spool)["sha256"] == sum.hex)
      } else {
        #expect(result.status == .exited(75), "\(result)\n\(spool.listing(of: "job"))")
        #expect(try spool.lastFailure("partial/job")["code"] == "mismatch-sha256")
      }
      return
    }
  }

  /// Two versions under one ETag: the server's own digest shows it, before a byte is joined.
  @Test func anotherDigestIsAnotherVersion() async throws {
    let (old, new) = (try await sum("sha256", previous).base64, try await sum("sha256", payload))
    let server = try ScriptedServer { request, reply in
      if request.nth == 1 {
        let first = Origin(bytes: previous, fields: ["Repr-Digest: sha-256=:\(old):"])
        return try first.answerAndCut(request, reply, after: 4000)
      }
      try Origin(fields: ["Repr-Digest: sha-256=:\(new.base64):"]).answer(request, reply)
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0), "\(result)\n\(spool.listing(of: "job"))")
    #expect(digest(try spool.payload("data")) == digest(payload))
    #expect(try verified(spool)["sha256"] == new.hex)
    #expect(server.requests.map(ask) == ["plain", "range 2000 if \(v1)", "plain"])
  }

  /// Over attempts: the digest is in the journal, and its state in the marks.
  @Test func carriedOnByTheNextAttempt() async throws {
    let sum = try await sum("sha1", payload)
    let server = try ScriptedServer { request, reply in
      switch request.nth {
      case 1: try Origin(fields: ["Digest: SHA=\(sum.base64)"]).answerAndCut(request, reply, after: 4000)
      case 2: try reply.respond("425 Too Early", body: [])
      default: try Origin().answer(request, reply)
      }
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\n")
    #expect(try await spoolrun("--once", spool.root).status == .exited(75))
    #expect(try spool.lastFailure("partial/job")["states"]?.hasPrefix("sha1/1:") == true, "\(spool.listing(of: "job"))")
    try spool.makeDue("job")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0), "\(result)\n\(spool.listing(of: "job"))")
    #expect(try verified(spool)["sha1"] == sum.hex)
    #expect(server.requests.map(ask) == ["plain", "range 2000 if \(v1)", "range 2000 if \(v1)"])
  }

  /// The first small piece states it, for the pieces of several connections.
  @Test(arguments: [true, false])
  func overSeveralConnections(isRight: Bool) async throws {
    // A first mismatch is looked at again after 4 s: in the same run, where the machine stood still for so long.
    for play in 1...5 {
      let bytes = large(payload, count: 200)
      let sum = try await sum("sha256", isRight ? bytes : payload)
      let server = try ScriptedServer {
        _ = try Origin(bytes: bytes, fields: ["Repr-Digest: sha-256=:\(sum.base64):"]).answer($0, $1)
      }
      let spool = try TemporarySpool()
      try spool.drop("job", "url: \(server.url("/data"))\nconnections: 3\n")
      let result = try await spoolrun("--once", "--chunk-size", "100k", spool.root)
      if play < 5, !isRight, spool.places(of: "job") == ["failed/job"] { continue }
      #expect(server.requests.count > 3)
      #expect(result.status == .exited(isRight ? 0 : 75), "\(result)\n\(spool.listing(of: "job"))")
      if isRight { #expect(try verified(spool)["sha256"] == sum.hex) }
      return
    }
  }

  /// A body that ends with the connection is proven by what the server states of it.
  @Test func provesTheLength() async throws {
    let sum = try await sum("sha256", payload)
    let server = try ScriptedServer { _, reply in
      try reply.head("200 OK", ["Connection: close", "Repr-Digest: sha-256=:\(sum.base64):"])
      try reply.send(payload)
      try reply.finish()
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/data"))\n")
    #expect(try await spoolrun("--once", spool.root).status == .exited(0))
    #expect(try verified(spool)["unproven"] == nil && verified(spool)["sha256"] == sum.hex)
  }
}

extension String {
  fileprivate var trimmed: String { String(split(separator: "\n").first ?? "") }
}
