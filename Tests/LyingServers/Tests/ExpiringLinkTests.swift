import Glibc
import Testing
import TestSupport

@testable import LyingServer

/// Links of the hook `resolve` that expire, and what lies behind the next one: whatever that is, no wrong byte is
/// published.
@Suite struct ExpiringLinkTests {
  private static let half = n / 2
  private static let text = "the same text each time"

  /// What the links lead to from the second on: ``Behaviour``'s that could be taken for the rest of the first one.
  static let behaviours = rangeBehaviours + validatorBehaviours

  /// A spool whose hook prints a link with another signature each time.
  private func spool(_ server: ScriptedServer, _ lines: String = "", path: String = "/data") throws -> TemporarySpool {
    let spool = try TemporarySpool()
    try spool.drop("job", "resolve: \(Self.text)\noutput: data\n\(lines)")
    guard mkdir(spool.path("hooks"), 0o700) == 0 else { throw TestSupportError("mkdir", "hooks", errno: errno) }
    let hook = """
      #!/bin/sh
      n=$(($(cat "$SPOOLRUN_SPOOL/n" 2>/dev/null) + 1)); echo $n >"$SPOOLRUN_SPOOL/n"
      echo "url: \(server.url(path))?signature=$n"

      """
    try writeFile(spool.path("hooks/resolve"), Array(hook.utf8))
    guard chmod(spool.path("hooks/resolve"), 0o700) == 0 else { throw TestSupportError("chmod", "hooks", errno: errno) }
    return spool
  }

  private func comment(_ spool: TemporarySpool, _ result: CommandResult) -> Comment {
    "\(result)\n\(spool.listing(of: "job"))"
  }

  /// The first link gives half of the file, and has expired then.
  private static func expiring(_ request: ServerRequest, _ reply: Reply, then script: ScriptedServer.Script) throws {
    guard request.target.hasSuffix("=1") else { return try script(request, reply) }
    if request.nth > 1 { return try reply.respond("403 Forbidden", body: Array("<Error/>".utf8)) }
    try Origin().answerAndCut(request, reply, after: half)
  }

  @Test(arguments: behaviours)
  func whatTheNextLinkLeadsTo(behaviour: Behaviour) async throws {
    try await slots.withSlot {
      let server = try ScriptedServer { request, reply in
        try Self.expiring(request, reply, then: behaviour.script)
      }
      let lines =
        (behaviour.declares.contains(.size) ? "size: \(behaviour.final.count)\n" : "")
        + (behaviour.declares.contains(.checksum) ? "crc32: \(hex8(independentCRC32(behaviour.final)))\n" : "")
      let spool = try spool(server, lines)
      let result = try await spoolrun("--once", spool.root)
      let published = try spool.payload("data")
      #expect(published == nil || published == behaviour.final, comment(spool, result))
      #expect((published != nil) == (spool.places(of: "job") == ["done/job"]), comment(spool, result))
    }
  }

  /// The same version behind another signature goes on where it was.
  @Test func theSameFile() async throws {
    let server = try ScriptedServer { request, reply in
      try Self.expiring(request, reply) { try Origin().answer($0, $1) }
    }
    let spool = try spool(server)
    let result = try await spoolrun("--once", spool.root)
    #expect(digest(try spool.payload("data")) == digest(payload), comment(spool, result))
    #expect(server.requests.map(ask).last == "range \(resumePoint(after: Self.half)) if \(v1)", comment(spool, result))
  }

  /// A login page is no file, whatever its status, and what is there stays.
  @Test(arguments: ["200 OK", "302 Found"])
  func aLoginPage(status: String) async throws {
    let server = try ScriptedServer { request, reply in
      try Self.expiring(request, reply) { request, reply in
        if request.target.hasPrefix("/data"), status == "302 Found" {
          return try reply.respond(status, ["Location: /login"], body: [])
        }
        try reply.respond("200 OK", ["Content-Type: text/html"], body: Array("<html>log in".utf8))
      }
    }
    let spool = try spool(server)
    let result = try await spoolrun("--once", spool.root)
    #expect(try spool.lastFailure("partial/job")["code"] == "other-kind", comment(spool, result))
    #expect(try readFile(spool.path("partial/job.part")) == Array(payload[..<Self.half]))
  }

  /// Another file with the same ETag behind another path.
  @Test func anotherPath() async throws {
    let server = try ScriptedServer { request, reply in
      switch request.target {
      case "/1/data" where request.nth == 1:
        try Origin().answerAndCut(request, reply, after: Self.half)
      case "/1/data": try reply.respond("410 Gone", body: [])
      default: try Origin(bytes: previous).answer(request, reply)
      }
    }
    let spool = try spool(server)
    let hook = String(decoding: try readFile(spool.path("hooks/resolve")), as: UTF8.self)
      .replacing("/data?signature=$n", with: "/$n/data")
    try writeFile(spool.path("hooks/resolve"), Array(hook.utf8))
    let result = try await spoolrun("--once", spool.root)
    #expect(digest(try spool.payload("data")) == digest(previous), comment(spool, result))
  }
}
