import Glibc
import TestSupport
import Testing

/// Declared digests, and those that a receipt is to have.
@Suite struct DigestTests {
  private static let names = ["crc32", "sha256", "sha512", "sha1", "md5"]

  /// The digest of `bytes` by another program, in the case that receipts have.
  private func digest(_ name: String, _ bytes: some Collection<UInt8>) async throws -> String {
    if name == "crc32" { return hex8(independentCRC32(bytes)) }
    let directory = try TemporaryDirectory()
    try writeFile("\(directory.path)/data", Array(bytes))
    let line = try await runTool(["/usr/bin/\(name)sum", "\(directory.path)/data"]).output
    return String(line.prefix { $0 != " " })
  }

  private func base64(ofHexadecimal text: String) async throws -> String {
    let line = "printf %s \(text) | tr a-f A-F | basenc --base16 -d | base64 -w 0"
    return try await runTool(["/bin/sh", "-c", line]).output
  }

  private func verified(_ spool: TemporarySpool, _ name: String = "a") throws -> JobLine {
    try #require(try spool.lines("done/\(name)").last { $0.key == "verified" })
  }

  @Test func aRightDigestIsInTheReceipt() async throws {
    let scene = try Scene()
    var sums: [String: String] = [:]
    for name in Self.names {
      let sum = try await digest(name, payload)
      sums[name] = sum
      try scene.spool.drop(name, "\(scene.server.url("/\(name)"))\n\(name): \(sum.uppercased())\n")
    }
    try await scene.spool.once(exits: 0)
    for name in Self.names {
      let line = try verified(scene.spool, name)
      #expect(line[name] == sums[name] && line["crc32"] != nil, "\(line)")
      #expect(Self.names.allSatisfy { $0 == name || $0 == "crc32" || line[$0] == nil }, "\(line)")
    }
  }

  @Test(arguments: names)
  func aWrongDigestIsAMismatch(name: String) async throws {
    try await replay {
      let scene = try Scene()
      let wrong = try await digest(name, [1])
      try scene.spool.drop("a", "\(scene.server.url("/a"))\n\(name): \(wrong)\n")
      let result = try await scene.spoolrun("--once")
      if scene.spool.places(of: "a") == ["failed/a"] { return false }
      #expect(result.status == .exited(75), "\(result)")
      let failure = try scene.spool.lastFailure("partial/a")
      #expect(failure["code"] == "mismatch-\(name)" && failure["class"] == "temporary")
      #expect(failure["expected"] == wrong)
      #expect(try await failure["found"] == digest(name, payload))
      #expect(scene.spool.payloads == [] && scene.spool.names("failed") == ["a.part"], "set aside")
      return true
    }
  }

  /// Each of several is enforced: all are right but the last one to be looked at.
  @Test func severalDigests() async throws {
    try await replay {
      let scene = try Scene()
      var sums: [String: String] = [:]
      for name in Self.names { sums[name] = try await digest(name, payload) }
      let lines = Self.names.map { "\($0): \(sums[$0] ?? "")\n" }.joined()
      try scene.spool.drop("a", "\(scene.server.url("/a"))\n\(lines)")
      let wrong = try await digest("md5", [1])
      try scene.spool.drop("b", "\(scene.server.url("/b"))\n\(lines.replacing(sums["md5"] ?? "", with: wrong))")
      let result = try await scene.spoolrun("--once")
      if scene.spool.places(of: "b") == ["failed/b"] { return false }
      #expect(result.status == .exited(75), "\(result)")
      for name in Self.names { #expect(try verified(scene.spool)[name] == sums[name]) }
      #expect(try scene.spool.lastFailure("partial/b")["code"] == "mismatch-md5")
      return true
    }
  }

  /// As lists have it, by the option; and over several connections.
  @Test(arguments: ["1", "3"])
  func addTakesBase64(connections: String) async throws {
    let scene = try Scene()
    let sum = try await digest("sha256", payload)
    let base64 = try await base64(ofHexadecimal: sum)
    #expect(base64.count == 44)
    let added = try await scene.spoolrun(
      "add", "--sha256", base64, "--connections", connections, scene.server.url("/a"))
    #expect(added.status == .exited(0), "\(added)")
    try await scene.spool.once(exits: 0)
    #expect(try verified(scene.spool)["sha256"] == sum)
    try await scene.spoolrun("add", "--sha256", sum + "0", scene.server.url("/a"))
      .exits(64, saying: "64 hexadecimal digits")
  }

  @Test func digestsThatNobodyDeclared() async throws {
    let scene = try Scene()
    try scene.spool.write("defaults", "digests: sha256 md5\n")
    try scene.spool.drop("a", "\(scene.server.url("/a"))\n")
    try scene.spool.drop("b", "\(scene.server.url("/b"))\ndigests: sha1\n")
    try await scene.spool.once(exits: 0)
    let (a, b) = (try verified(scene.spool, "a"), try verified(scene.spool, "b"))
    let sums = try await (digest("sha256", payload), digest("md5", payload), digest("sha1", payload))
    #expect(a["sha256"] == sums.0 && a["md5"] == sums.1 && a["sha1"] == nil)
    #expect(b["sha1"] == sums.2 && b["sha256"] == nil, "the job's own line counts")
  }

  /// Another CRC-32 or size would give a change away as well: here only the digest of the receipt is wrong.
  @Test func verifyChecksEachDigest() async throws {
    let scene = try Scene()
    try scene.spool.drop("a", "\(scene.server.url("/a"))\ndigests: sha256\n")
    try await scene.spool.once(exits: 0)
    let sum = try await digest("sha256", payload)
    try await scene.spoolrun("verify", "-v").exits(0, printing: "sha256=\(sum)")
    let receipt = try scene.spool.text("done/a")
    let wrong = try await digest("sha256", [1])
    try scene.spool.write("done/a", receipt.replacing(sum, with: wrong))
    let changed = try await scene.spoolrun("verify").exits(1)
    #expect(changed.output.contains("expected sha256 \(wrong), found \(sum)"), "\(changed)")
  }

  /// A file that is there is the payload if it has the declared digest, without a CRC-32.
  @Test func anExistingFileIsAccepted() async throws {
    let scene = try Scene()
    try scene.spool.write("files/a", payload)
    try scene.spool.write("files/b", payload.reversed())
    let sum = try await digest("sha512", payload)
    for name in ["a", "b"] { try scene.spool.drop(name, "\(scene.server.url("/\(name)"))\nsha512: \(sum)\n") }
    try await scene.spool.once(exits: 1)
    #expect(try scene.spool.lines("done/a").last?["existing"] == "yes" && scene.server.requests.isEmpty)
    #expect(try verified(scene.spool)["sha512"] == sum)
    #expect(try scene.spool.lastFailure("failed/b")["code"] == "output-exists")
  }

  // MARK: over kills

  private let half = halfwayBody.count / 2

  /// What the worker left when it was killed: half of the data and a checkpoint at its end. Its first byte is then
  /// changed behind the worker's back, so that whoever reads it again computes other digests.
  /// - Parameter edit: what is done to the journal meanwhile.
  private func killed(
    _ lines: String, _ edit: (String) -> String = { $0 }
  ) async throws -> (spool: TemporarySpool, server: ScriptedServer) {
    let (spool, server, worker, gate) = try await startHalfway(lines)
    let half = half
    try await waitUntil("a checkpoint") {
      try spool.lines(spool.claim(of: "a")).contains { $0.key == "checkpoint" && $0.words.first == "\(half)" }
    }
    try await worker.stop(SIGKILL)
    gate.open()
    let descriptor = open(spool.path("partial/a.part"), O_WRONLY)
    defer { close(descriptor) }
    try #require(pwrite(descriptor, [halfwayBody[0] ^ 1], 1, 0) == 1)
    let claim = spool.path(try spool.claim(of: "a"))
    try writeFile(claim, edit(try readText(claim)))
    return (spool, server)
  }

  /// What lies before the checkpoint is not read again: neither digest is of the byte that was changed there.
  @Test func carriedOnFromTheCheckpoint() async throws {
    let (sha256, sha512) = try await (digest("sha256", halfwayBody), digest("sha512", halfwayBody))
    let (spool, server) = try await killed("sha256: \(sha256)\ndigests: sha512\n")
    try await spool.once(exits: 0)
    #expect(server.requests.map(\.rangeStart) == [nil, resumePoint(after: half)])
    let receipt = try verified(spool)
    #expect(receipt["sha256"] == sha256 && receipt["sha512"] == sha512)
    #expect(try spool.payload("a")?[0] == halfwayBody[0] ^ 1, "or this test shows nothing")
  }

  /// Of another version, or missing as in the journal of an older program: all bytes are read again.
  @Test(arguments: ["another version", "no state"])
  func aStateThatCannotBeUsed(what: String) async throws {
    try await replay {
      let (spool, server) = try await killed("sha256: \(try await digest("sha256", halfwayBody))\n") { text in
        what == "no state" ? text.replacing(/\ states=\S+/, with: "") : text.replacing("sha256/1:", with: "sha256/0:")
      }
      let result = try await spoolrun("--once", spool.root)
      if server.requests.count > 2 { return false }
      #expect(result.status == .exited(75), "\(result)\n\(spool.listing(of: "a"))")
      #expect(server.requests.map(\.rangeStart) == [nil, resumePoint(after: half)])
      let failure = try spool.lastFailure("partial/a")
      #expect(failure["code"] == "mismatch-sha256", "the byte that was changed is read")
      let changed = [halfwayBody[0] ^ 1] + halfwayBody.dropFirst()
      #expect(try await failure["found"] == digest("sha256", changed), "and all others are")
      return true
    }
  }

  /// It ends in a mismatch, as data that is wrong does, and the next attempt begins from 0.
  @Test func aStateThatWasTamperedWith() async throws {
    try await replay {
      let sum = try await digest("sha256", halfwayBody)
      let (spool, server) = try await killed("sha256: \(sum)\n") { text in
        text.replacing(/sha256\/1:(.)/) { "sha256/1:\($0.output.1 == "0" ? "1" : "0")" }
      }
      let first = try await spoolrun("--once", spool.root)
      if server.requests.count > 2 { return false }
      #expect(first.status == .exited(75), "\(first)\n\(spool.listing(of: "a"))")
      #expect(try spool.lastFailure("partial/a")["code"] == "mismatch-sha256")
      try spool.makeDue("a")
      try await spool.once(exits: 0)
      #expect(server.requests.map(\.rangeStart) == [nil, resumePoint(after: half), nil])
      #expect(try verified(spool)["sha256"] == sum && spool.payload("a") == halfwayBody)
      return true
    }
  }

  /// SIGTERM leaves `interrupted:`. What is before it is read, and agrees.
  @Test func carriedOnFromAStop() async throws {
    let sum = try await digest("sha1", halfwayBody)
    let (spool, server, worker, gate) = try await startHalfway("sha1: \(sum)\n")
    try await worker.stop().exits(75)
    gate.open()
    let line = try #require(try spool.lines("partial/a").last { $0.key == "interrupted" })
    #expect(line["states"]?.hasPrefix("sha1/1:") == true)
    try await spool.once(exits: 0)
    #expect(server.requests.map(\.rangeStart) == [nil, resumePoint(after: half)])
    #expect(try verified(spool)["sha1"] == sum)
  }

  /// The log and the mails of cron are for people.
  @Test func statesAreNotInTheLog() async throws {
    let server = try ScriptedServer { request, reply in
      guard request.nth == 1 else { return try reply.respond("503 Service Unavailable", body: []) }
      try reply.head("200 OK", ["ETag: \"v1\"", "Content-Length: \(payload.count)"])
      try reply.send(payload[..<1000])
      try reply.finish()
    }
    let spool = try TemporarySpool()
    try spool.drop("a", "\(server.url("/a"))\ndigests: sha256\n")
    let result = try await spoolrun("-v", "--once", spool.root)
    #expect(try spool.lastFailure("partial/a")["states"]?.hasPrefix("sha256/1:") == true)
    #expect(result.errors.contains("503") && !result.errors.contains("sha256/1"), "\(result)")
  }
}
