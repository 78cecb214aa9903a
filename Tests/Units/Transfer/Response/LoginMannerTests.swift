import TestSupport
import Testing

@testable import Transfer

/// How a login is presented (RFC 9110, 11; RFC 7616).
@Suite(.timeLimit(.minutes(30))) struct LoginMannerTests {
  private static let basic = "Basic dXNlcjpwdw=="

  /// Refuses whoever has no login, and names these schemes.
  /// - Parameter isStale: it calls every answer to its challenge stale.
  private static func server(
    _ challenges: [String], status: String = "401 Unauthorized", isStale: Bool = false
  ) throws -> ScriptedServer {
    try ScriptedServer { request, reply in
      let login = request.value("authorization")
      let isRight = login == basic || login?.hasPrefix("Digest username=\"user\"") == true && !isStale
      guard isRight, request.target != "/wrong" else {
        let nonce = "nonce=\"n\(request.nth)\"" + (isStale ? ", stale=true" : "")
        return try reply.respond(
          status, challenges.map { "WWW-Authenticate: " + $0.replacing("NONCE", with: nonce) },
          body: [UInt8](repeating: 0x78, count: 5000))
      }
      try reply.respond("200 OK", body: Array("payload".utf8))
    }
  }

  private static let digest = "Digest realm=\"a, b\", qop=\"auth\", NONCE, algorithm=SHA-256"

  private func told(_ server: ScriptedServer) -> [String] {
    server.requests.map { $0.value("authorization")?.prefix { $0 != " " }.description ?? "" }
  }

  private func login(_ server: ScriptedServer, _ path: String = "/a") -> String {
    "http://user:pw@127.0.0.1:\(server.port)\(path)"
  }

  @Test func nothingBeforeTheServerAsksAndDigestWhereItIsOffered() async throws {
    for challenges in [[Self.digest], ["Basic realm=\"x\"", Self.digest], [Self.digest + ", Basic realm=\"x\""]] {
      let server = try Self.server(challenges)
      let outcome = await (try Driver()).fetch(login(server)) {
        $0.rangeStart = 5
        $0.ifRange = "\"e\""
      }
      #expect(outcome.isComplete && outcome.body == Array("payload".utf8), "\(outcome.result)")
      #expect(told(server) == ["", "Digest"] && outcome.accepts == [200])
      #expect(server.requests.allSatisfy { $0.value("range") == "bytes=5-" && $0.value("if-range") == "\"e\"" })
      let sent = try #require(server.requests.last?.value("authorization"))
      #expect(sent.contains("realm=\"a, b\"") && sent.contains("uri=\"/a\"") && !sent.contains("pw"), "\(sent)")
    }
  }

  /// Sloppy servers name no scheme, or hide what is there.
  @Test(arguments: [
    ("401 Unauthorized", ["Basic realm=\"x\""]), ("401 Unauthorized", []), ("403 Forbidden", []), ("404 Not Found", []),
  ])
  func basicWhereNoOtherIsAskedFor(status: String, challenges: [String]) async throws {
    let server = try Self.server(challenges, status: status)
    let outcome = await (try Driver()).fetch(login(server))
    #expect(outcome.isComplete, "\(outcome.result)")
    #expect(told(server) == ["", "Basic"])
  }

  /// A file of logins has none for most hosts.
  @Test(arguments: [
    ("machine 127.0.0.1 login user password pw", 2), ("machine \"127.0.0.1\" login user password pw", 2),
    ("DEFAULT login user password pw", 2), ("machine 127.0.0.11 login user password pw", 1), ("", 1),
  ])
  func askedOnceWhereThereIsNoLogin(netrc: String, requests: Int) async throws {
    let server = try Self.server([], status: "404 Not Found")
    let directory = try TemporaryDirectory()
    try writeFile("\(directory.path)/netrc", Array("machine a login b password c\n\(netrc)\n".utf8))
    var network = NetworkOptions()
    network.netrc = "\(directory.path)/netrc"
    _ = await (try Driver(.init(network: network))).fetch("http://127.0.0.1:\(server.port)/a")
    #expect(server.requests.count == requests)
  }

  @Test func neverBasicWhereTheServerHasDigest() async throws {
    let server = try Self.server([Self.digest, "Basic realm=\"x\""])
    let outcome = await (try Driver()).fetch(login(server, "/wrong"))
    #expect(outcome.accepts == [401], "the wrong password is an answer")
    #expect(!told(server).contains("Basic"), "\(told(server))")
  }

  /// Nor for a file that has gone, or is not for this user.
  @Test(arguments: ["404 Not Found", "403 Forbidden"])
  func neverBasicAfterDigest(status: String) async throws {
    let server = try ScriptedServer { request, reply in
      if request.value("authorization") != nil { return try reply.respond(status, body: Array("no".utf8)) }
      let challenge = "WWW-Authenticate: " + Self.digest.replacing("NONCE", with: "nonce=\"n\"")
      try reply.respond("401 Unauthorized", [challenge], body: [])
    }
    let outcome = await (try Driver()).fetch(login(server))
    #expect(told(server) == ["", "Digest"] && outcome.accepts == [Int(status.prefix(3))!], "\(outcome.result)")
  }

  @Test func theServersSchemesAreInTheAnswer() async throws {
    let server = try Self.server(["Negotiate, NTLM"])
    let outcome = await (try Driver()).fetch(login(server), accepting: { _ in false })
    #expect(outcome.isRefused && told(server) == [""])
    #expect(
      outcome.result.response?.content == .refused(.http(status: 401, logins: ["Negotiate", "NTLM"])),
      "\(outcome.result)")
  }

  /// One that never takes an answer asks a few times.
  @Test func aServerThatCallsEveryAnswerStale() async throws {
    let server = try Self.server([Self.digest], isStale: true)
    let outcome = await (try Driver()).fetch(login(server))
    #expect(outcome.accepts == [401] && server.requests.count < 10)
  }

  @Test func noLoginForAnotherOrigin() async throws {
    let other = try Self.server([Self.digest])
    let home = try ScriptedServer { _, reply in
      try reply.respond("302 Found", ["Location: http://eve:x@127.0.0.1:\(other.port)/b"], body: [])
    }
    let outcome = await (try Driver()).fetch(login(home))
    #expect(outcome.accepts == [401])
    #expect(told(home) == [""] && told(other) == [""])
  }

  @Test func theJobsOwnFieldTakesItsPlace() async throws {
    let server = try Self.server([Self.digest])
    let outcome = await (try Driver()).fetch(login(server)) { $0.headers = ["Authorization: Bearer x"] }
    #expect(outcome.accepts == [401] && told(server) == ["Bearer"])
  }

  /// Nobody else reads it, and some servers show a page to whoever has no login.
  @Test(.enabled("needs \(Need.tls.name)") { try await Need.tls.isMet() })
  func overTLSAtOnce() async throws {
    let server = try Self.server([Self.digest])
    let plain = try Self.server(["Basic realm=\"x\""])
    let authority = try await CertificateAuthority()
    let front = try await TLSFront(to: [plain, server], authority: authority, announcesEnd: true)
    var network = NetworkOptions()
    network.authorities = authority.authority
    let driver = try Driver(.init(network: network))
    for (port, path) in [(front.ports[0], "/a"), (front.ports[1], "/wrong")] {
      _ = await driver.fetch("https://user:pw@127.0.0.1:\(port)\(path)")
    }
    #expect(told(plain) == ["Basic"])
    #expect(told(server).prefix(3) == ["Basic", "", "Digest"], "\(told(server))")
  }

  @Test(arguments: [
    (["Basic realm=\"x\""], ["Basic"]), (["Negotiate", "NTLM TlRM=="], ["Negotiate", "NTLM"]),
    (["Digest realm=\"a, Basic b\", qop=auth, Basic realm=x"], ["Digest", "Basic"]),
    (["Digest realm=\"a\\\", NTLM\", nonce=x"], ["Digest"]), (["Digest realm = x, nonce = \"y\""], ["Digest"]),
    (["", ","], []), (["Basic, Basic"], ["Basic"]), (["\u{1b}[2J"], []),
    (["a, b, c, d, e, f"], ["a", "b", "c", "d", "e"]), ([String(repeating: "x", count: 100)], []),
  ])
  func schemes(fields: [String], expected: [String]) {
    let head = ResponseHead(status: 401, fields: fields.map { ("www-authenticate", $0) })
    #expect(head.loginSchemes == expected)
  }
}
