import Testing
import TestSupport

@testable import LyingServer

@Suite struct RedirectTests {
  @Test("redirects", arguments: redirectBehaviours)
  func redirect(_ behaviour: Behaviour) async throws {
    try await check(behaviour)
  }

  /// The job's own fields and the URL's user go along within the origin, and to no other: not even back.
  @Test func credentialsStayWithinTheOrigin() async throws {
    let foreign = try ScriptedServer { request, reply in
      let home = request.target.split(separator: "=").last ?? ""
      try reply.respond("302 Found", ["Location: http://\(home)/final"], body: [])
    }
    let home = try ScriptedServer { request, reply in
      switch request.target {
      case _ where request.target != "/final" && request.value("authorization") == nil:
        try reply.respond("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"x\""], body: [])
      case "/data": try reply.respond("302 Found", ["Location: /moved"], body: [])
      case "/moved":
        let back = "back=\(request.value("host") ?? "")"
        try reply.respond("302 Found", ["Location: \(foreign.url("/away?\(back)"))"], body: [])
      default: try Origin().answer(request, reply)
      }
    }
    let spool = try TemporarySpool()
    try spool.drop(
      "job", "url: http://user:secret@127.0.0.1:\(home.port)/data\nheader: X-Token: hidden\nheader: X-Other: too\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0), "\(result)")
    #expect(home.requests.map(\.target) == ["/data", "/data", "/moved", "/moved", "/final"])
    #expect(foreign.requests.count == 1)
    for (number, request) in home.requests.prefix(4).enumerated() {
      let login = number % 2 == 0 ? nil : "Basic dXNlcjpzZWNyZXQ="
      #expect(request.value("authorization") == login, "\(request)")
      #expect(request.value("x-token") == "hidden" && request.value("x-other") == "too")
    }
    for request in foreign.requests + home.requests.dropFirst(4) {
      for secret in ["authorization", "x-token", "x-other"] {
        #expect(request.value(secret) == nil, "\(secret) sent to \(request.target)")
      }
    }
    for text in [result.output, result.errors, spool.listing(of: "job")] {
      let journal = text.split(separator: "\n").filter { !$0.hasPrefix("url:") && !$0.hasPrefix("header:") }
      #expect(!journal.contains { $0.contains("secret") || $0.contains("hidden") }, "\(text)")
    }
  }

  /// An `Authorization` that the job gives itself is no different.
  @Test func authorizationFieldIsDroppedAcrossOrigins() async throws {
    let foreign = try ScriptedServer { try Origin().answer($0, $1) }
    let home = try ScriptedServer { _, reply in
      try reply.respond("307 Temporary Redirect", ["Location: \(foreign.url("/there"))"], body: [])
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(home.url("/data"))\nheader: Authorization: Bearer hidden\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0), "\(result)")
    #expect(home.requests.map { $0.value("authorization") } == ["Bearer hidden"])
    #expect(foreign.requests.map { $0.value("authorization") } == [nil])
    #expect(spool.payloads == ["data"], "named by the job's URL, not by the redirect's")
  }

  /// Each redirect leads further, and the body of each never ends; neither is followed for long.
  @Test func tenThousandRedirects() async throws {
    let server = try ScriptedServer { request, reply in
      let hop = Int(request.target.dropFirst()) ?? 0
      if hop == 10_000 {
        try Origin().answer(request, reply)
        return
      }
      try reply.head("302 Found", ["Location: /\(hop + 1)", "Transfer-Encoding: chunked"])
      while hop % 2 == 1 { try reply.send("1000\r\n\(String(repeating: "x", count: 0x1000))\r\n") }
      try reply.send("0\r\n\r\n")
    }
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(server.url("/0"))\noutput: x\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(1), "\(result)")
    #expect(server.requests.map(\.target) == (0...20).map { "/\($0)" })
    #expect(spool.places(of: "job") == ["failed/job"] && spool.names("partial") == [])
  }

  /// A lone CR ends a line for some servers: what one server says must not become a line of a request to another.
  @Test func noHeaderSplitting() async throws {
    let inner = try ScriptedServer { try Origin().answer($0, $1) }
    let server = try ScriptedServer { request, reply in
      switch request.target {
      case "/etag" where request.rangeStart ?? 0 > 0 && request.value("if-range") != nil:
        try reply.respond("307 Temporary Redirect", ["Location: \(inner.url("/etag"))"], body: [])
      case "/etag":
        try Origin(etag: "\"a\rX-Injected: etag\"").answerAndCut(request, reply, after: request.nth == 1 ? 4000 : n)
      case "/cr": try reply.respond("302 Found", ["Location: \(inner.url("/cr"))\rX-Injected: location"], body: [])
      default:
        try reply.respond("302 Found", ["Location: \(inner.url("/coded"))?%0d%0aX-Injected:%20query"], body: [])
      }
    }
    let spool = try TemporarySpool()
    for name in ["etag", "cr", "coded"] { try spool.drop(name, "url: \(server.url("/\(name)"))\n") }
    let result = try await spoolrun("--once", spool.root)
    #expect(server.problems == [] && inner.problems == [])
    for request in server.requests + inner.requests {
      #expect(!"\(request)".contains("X-Injected:") || request.target.contains("%0d%0a"), "\(request)")
      #expect(request.value("x-injected") == nil)
    }
    #expect(spool.names("done").contains("coded") && spool.places(of: "etag") != ["failed/etag"], "\(result)")
  }

  /// A resumed request keeps its Range on every hop, and data of the old place is not joined with the new one's.
  @Test func rangeGoesAlong() async throws {
    let server = try ScriptedServer { request, reply in
      if request.target == "/data" {
        try reply.respond("302 Found", ["Location: /moved", "ETag: \(v2)"], body: [])
      } else {
        try Origin().answer(request, reply)
      }
    }
    let spool = try TemporarySpool()
    try spool.addPartial(
      "job", job: "url: \(server.url("/data"))\n", facts: .strong, part: Array(payload.prefix(4096)))
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0), "\(result)")
    #expect(server.requests.map(ask) == Array(repeating: "range 4096 if \(v1)", count: 2))
    #expect(digest(try spool.payload("data")) == digest(payload))
  }
}

private let page = Array("moved".utf8)

/// Redirects within one server, and to where none may lead.
private let redirectBehaviours: [Behaviour] =
  ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"].map { status in
    chain("\(status), once", hops: 1, status: status, outcome: .done)
  }
  + [
    chain("three hops", hops: 3, status: "302 Found", outcome: .done),
    chain("twenty hops", hops: 20, status: "302 Found", outcome: .done),
    chain("twenty-one hops", hops: 21, status: "302 Found", outcome: .givenUp("redirect")),
    location("to itself", .givenUp("redirect")) { $0.target },
    location("to a longer query each time", .givenUp("redirect")) {
      $0.target + ($0.target.contains("?") ? "x" : "?x")
    },
    location("file:", .givenUp("redirect")) { _ in "file:///etc/hostname" },
    location("file: with host", .givenUp("redirect")) { _ in "file://localhost/etc/hostname" },
    location("FILE:", .givenUp("redirect")) { _ in "FILE:/etc/hostname" },
    location("ftp:", .givenUp("redirect")) { _ in "ftp://127.0.0.1/x" },
    location("gopher:", .givenUp("redirect")) { _ in "gopher://127.0.0.1:1/_GET" },
    location("dict:", .givenUp("redirect")) { _ in "dict://127.0.0.1:1/x" },
    location("data:", .givenUp("redirect")) { _ in "data:,payload" },
    location("javascript:", .givenUp("redirect")) { _ in "javascript:alert(1)" },
    location("scp:", .givenUp("redirect")) { _ in "scp://127.0.0.1/etc/hostname" },
    location("port out of range", .either(.givenUp("redirect"), .waits("bad-response"))) { _ in
      "http://127.0.0.1:99999/x"
    },
    location("host is broken", .either(.givenUp("redirect"), .waits("bad-response"))) { _ in "http://[::1/x" },
    location("blank within", .either(.givenUp("redirect"), .either(.waits("bad-response"), .waits("resolve")))) { _ in
      "http://no host/x"
    },
    location("empty", .either(.givenUp("redirect"), .waits("bad-response"))) { _ in "" },
    location("to a port that is closed", .waits("connect")) { _ in "http://127.0.0.1:1/x" },
    location("to a name that doesn't exist", .waits("resolve")) { _ in "http://nowhere.invalid/x" },
  ]

/// Redirects each job's URL `hops` times, then answers right.
private func chain(_ name: String, hops: Int, status: String, outcome: Outcome) -> Behaviour {
  Behaviour(name, outcomes: .all(outcome)) { request, reply in
    let parts = request.target.split(separator: "/")
    let hop = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
    if hop == hops {
      try Origin().answer(request, reply)
    } else {
      // The body of a redirect must not be taken for data.
      try reply.respond(status, ["Location: /\(parts[0])/\(hop + 1)", "ETag: \(v2)"], body: page)
    }
  }
}

private func location(
  _ name: String, _ outcome: Outcome, _ target: @escaping @Sendable (ServerRequest) -> String
) -> Behaviour {
  Behaviour("redirect: \(name)", outcomes: .all(outcome)) { request, reply in
    try reply.respond("302 Found", ["Location: \(target(request))"], body: page)
  }
}
