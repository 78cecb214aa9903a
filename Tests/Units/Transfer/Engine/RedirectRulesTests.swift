import TestSupport
import Testing

@testable import Transfer

@Suite(.timeLimit(.minutes(30))) struct RedirectRulesTests {
  /// Asks for a login, redirects `/N` to `/N-1`, and `/0` is the file.
  private func countdown() throws -> ScriptedServer {
    try ScriptedServer { request, reply in
      if request.value("authorization") == nil {
        return try reply.respond("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"x\""], body: [])
      }
      guard let number = Int(request.target.dropFirst()), number > 0 else {
        return try reply.respond("200 OK", body: Array("payload".utf8))
      }
      try reply.respond("302 Found", ["Location: \(number - 1)"], body: Array("moved".utf8))
    }
  }

  @Test func followsOnOneConnectionAndKeepsRangeAndCredentials() async throws {
    let server = try countdown()
    let outcome = await (try Driver()).fetch("http://user:pw@127.0.0.1:\(server.port)/3") {
      $0.headers = ["X-Token: t", "X-Empty:", "Accept:"]
      $0.rangeStart = 5
      $0.ifRange = "\"e\""
    }
    #expect(outcome.isComplete)
    #expect(outcome.body == Array("payload".utf8))
    #expect(outcome.accepts == [200])
    let hops = server.requests
    #expect(hops.map(\.target) == ["/3", "/3", "/2", "/2", "/1", "/1", "/0", "/0"])
    #expect(Set(hops.map(\.connection)).count == 1)
    for hop in hops {
      #expect(hop.values("range") == ["bytes=5-"])
      #expect(hop.values("if-range") == ["\"e\""])
      #expect(hop.values("accept-encoding") == ["identity"])
      #expect(hop.values("x-token") == ["t"])
      #expect(hop.values("x-empty") == [] && hop.values("accept") == [], "not sent")
    }
    for (number, hop) in hops.enumerated() {
      #expect(hop.values("authorization") == (number % 2 == 0 ? [] : ["Basic dXNlcjpwdw=="]))
    }
  }

  /// What names the browser is for all; the page is for the job's own origin, and its host alone for others.
  @Test func tellsOthersThePagesHostAlone() async throws {
    let away = try ScriptedServer { _, reply in try reply.respond("200 OK", body: []) }
    let home = try ScriptedServer { request, reply in
      try reply.respond("302 Found", ["Location: \(request.target == "/a" ? "/b" : away.url("/c"))"], body: [])
    }
    let driver = try Driver()
    for (page, others) in [("http://me:pw@p.example:81/x?q=1#f", "http://p.example:81/"), ("https://p.example/x", nil)]
    {
      let outcome = await driver.fetch(home.url("/a")) {
        $0.referer = page
        $0.userAgent = "Browser/1 (x)"
      }
      #expect(outcome.isComplete)
      let requests = (home.requests + away.requests).suffix(3)
      #expect(requests.allSatisfy { $0.values("user-agent") == ["Browser/1 (x)"] })
      #expect(away.requests.last?.value("referer") == others)
      #expect(home.requests.last?.value("referer") == others.map { $0 + "x?q=1" })
    }
    for bad in ["http://h:0/", "x\n"] {
      #expect(await driver.fetch(home.url("/a")) { $0.referer = bad }.failure?.code == .badURL)
    }
    #expect(await driver.fetch(home.url("/a")) { $0.userAgent = "a\r\nB: c" }.failure?.code == .badURL)
  }

  @Test(arguments: [
    "file:///etc/passwd", "ftp://127.0.0.1/a", "gopher://127.0.0.1/a", "scp://127.0.0.1/etc/passwd",
    "http://127.0.0.1:0/", "http://a b/?hunter2", "/" + String(repeating: "x", count: 17_000),
  ])
  func refusesPlacesThatAreNotTheWeb(location: String) async throws {
    let server = try ScriptedServer { _, reply in try reply.respond("302 Found", ["Location: \(location)"], body: []) }
    let driver = try Driver(.init(protocols: [.http, .https, .ftp, .sftp]))
    let outcome = await driver.fetch(server.url("/a"))
    #expect(outcome.failure?.code == .redirect)
    #expect(outcome.failure?.message.contains("hunter2") == false)
    #expect(outcome.accepts.isEmpty && outcome.body.isEmpty)
    #expect(outcome.result.response == nil)
  }

  @Test func aRedirectDoesNotEnableAProtocol() async throws {
    let server = try ScriptedServer { _, reply in
      try reply.respond("302 Found", ["Location: https://127.0.0.1:1/"], body: [])
    }
    let outcome = await (try Driver(.init(protocols: [.http]))).fetch(server.url("/a"))
    #expect(outcome.failure?.code == .redirect)
  }

  /// The body of a redirect is of no use: neither its size nor its end matters.
  @Test(arguments: [true, false]) func redirectBodyMayBeEndlessOrCut(endless: Bool) async throws {
    let server = try ScriptedServer { request, reply in
      guard request.target == "/a" else { return try reply.respond("200 OK", body: Array("payload".utf8)) }
      try reply.head("302 Found", ["Location: /b"] + (endless ? [] : ["Content-Length: 9999"]))
      while endless { try reply.send([UInt8](repeating: 0, count: 8192)) }
      try reply.send("short")
      try reply.finish()
    }
    let outcome = await (try Driver()).fetch(server.url("/a"))
    #expect(outcome.isComplete)
    #expect(outcome.body == Array("payload".utf8))
  }
}
