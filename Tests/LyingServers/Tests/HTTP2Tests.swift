import Glibc
import Testing
import TestSupport

@testable import LyingServer

/// What HTTP/2 adds: many answers on one connection, ends that are no ends, and heads that announce no length.
@Suite(.enabled("needs openssl, python3 and python3-hpack") { try await Need.http2.isMet() })
struct HTTP2Tests {
  @Test("HTTP/2, streams", arguments: http2Behaviours)
  func streams(_ behaviour: Behaviour) async throws {
    try await checkOverHTTP2(behaviour, jobs: 8)
  }

  /// One job at a time: what one does to the connection would befall another before it has a byte.
  @Test("HTTP/2, connections", arguments: resetHTTP2Behaviours + http2ConnectionBehaviours)
  func connections(_ behaviour: Behaviour) async throws {
    try await checkOverHTTP2(behaviour, jobs: 1)
  }

  /// Only what says how much it will send is taken over HTTP/2; else HTTP/1.1 has to frame the body.
  @Test(arguments: [
    ("", false, ["HTTP/2", "HTTP/1.1"]), ("", true, ["HTTP/2"]), ("size: \(n)\n", false, ["HTTP/2"]),
    ("crc32: \(hex8(independentCRC32(payload)))\n", false, ["HTTP/2"]),
  ])
  func askedAgainOverHTTP1(declared: String, announcesLength: Bool, versions: [String]) async throws {
    let server = try ScriptedServer { request, reply in
      guard let stream = HTTP2Stream(request, reply) else {
        try Origin().answer(request, reply)
        return
      }
      try Origin().answer(request, stream, announcesLength: announcesLength)
    }
    let scene = try await HTTP2Scene(server)
    try scene.spool.drop("job", "url: \(scene.front.url("/data"))\n\(declared)")
    let result = try await scene.run()
    #expect(result.status == .exited(0), "\(result)\n\(scene.spool.listing(of: "job"))")
    #expect(digest(try scene.spool.payload("data")) == digest(payload))
    #expect(server.requests.map(\.version) == versions)
    #expect(try scene.receipt?["unproven"] == nil)
  }

  /// A body that ends with the connection is taken, and the receipt says what is not known of it.
  @Test func untilCloseOverHTTP1() async throws {
    let server = try ScriptedServer { request, reply in
      guard let stream = HTTP2Stream(request, reply) else {
        try reply.head("200 OK", ["Connection: close"])
        try reply.send(payload)
        return try reply.finish()
      }
      try Origin().answer(request, stream, announcesLength: false)
    }
    let scene = try await HTTP2Scene(server)
    try scene.spool.drop("job", "url: \(scene.front.url("/data"))\n")
    let result = try await scene.run()
    #expect(result.status == .exited(0), "\(result)\n\(scene.spool.listing(of: "job"))")
    #expect(digest(try scene.spool.payload("data")) == digest(payload))
    #expect(server.requests.map(\.version) == ["HTTP/2", "HTTP/1.1"])
    #expect(try scene.receipt?["unproven"] == "length")
  }

  /// Where there is no HTTP/1.1, the job waits, and its record says what would help.
  @Test func noHTTP1() async throws {
    let server = try ScriptedServer { request, reply in
      guard let stream = HTTP2Stream(request, reply) else { return try reply.finish() }
      try Origin().answer(request, stream, announcesLength: false)
    }
    let scene = try await HTTP2Scene(server, speaksHTTP1: false)
    try scene.spool.drop("job", "url: \(scene.front.url("/data"))\n")
    let result = try await scene.run()
    #expect(result.status == .exited(75), "\(result)\n\(scene.spool.listing(of: "job"))")
    #expect(scene.spool.payloads == [])
    let failure = try scene.spool.lines("partial/job").last { $0.key == "failed" }
    #expect(failure?["class"] == "temporary")
    #expect(failure?["reason"]?.contains("size:") == true, "\(scene.spool.listing(of: "job"))")
  }

  /// Of several jobs on one connection one is reset: the others don't notice.
  @Test(arguments: [HTTP2Stream.ErrorCode.noError, .internalError, .cancel])
  func oneOfSeveral(code: HTTP2Stream.ErrorCode) async throws {
    let width = 4
    let all = try Gate()
    let isReset = try Gate()
    let server = try ScriptedServer { request, reply in
      guard let stream = HTTP2Stream(request, reply) else { throw TestSupportError("HTTP/1.1: \(request)") }
      if request.nth > 1 {
        try Origin().answer(request, stream)
      } else if request.target == "/reset" {
        try Origin().answerAndEnd(request, stream, after: 5000) { stream in
          if !all.isOpen { try reply.stall(until: all) }
          try stream.resetStream(code)
          isReset.open()
        }
      } else {
        try Origin().answerAndEnd(request, stream, after: 5000) { stream in
          if !isReset.isOpen { try reply.stall(until: isReset) }
          try stream.data(payload.dropFirst(5000), end: true)
        }
      }
    }
    let scene = try await HTTP2Scene(server)
    let names = ["reset"] + (2...width).map { "data\($0)" }
    for name in names { try scene.spool.drop(name, "url: \(scene.front.url("/\(name)"))\ntimeout: 10s\n") }
    async let running = scene.run("--per-host", "\(width)")
    // libcurl drops what comes together with a reset.
    let part = scene.spool.path("partial/reset.part")
    try await waitUntil("all have begun, and its bytes are there") {
      server.requests.count >= width && fileStatus(part)?.st_size == 5000
    }
    all.open()
    let result = try await running
    #expect(result.status == .exited(0), "\(result)")
    for name in names {
      #expect(digest(try scene.spool.payload(name)) == digest(payload), "\(scene.spool.listing(of: name))")
    }
    #expect(
      server.requests.map { "\($0.target) \(ask($0))" }.sorted()
        == (["/reset range 2500 if \(v1)"] + names.map { "/\($0) plain" }).sorted())
    #expect(server.problems == [])
  }

  /// A server that wants HTTP/1.1 for some of its answers gets it, and no job another's bytes.
  @Test func http11RequiredOfSeveral() async throws {
    let bodies = (0..<40).map { number in
      large(Array(payload.reversed()) + Array("\(number)".utf8), count: 1 + number % 8)
    }
    let server = try ScriptedServer { request, reply in
      let number = Int(request.target.dropFirst()) ?? 0
      let origin = Origin(bytes: bodies[number], etag: "\"\(number)\"")
      guard let stream = HTTP2Stream(request, reply) else {
        try origin.answer(request, reply)
        return
      }
      if number % 3 == 0 { return try stream.resetStream(.http11Required) }
      try origin.answer(request, stream, piece: 16_384)
    }
    let scene = try await HTTP2Scene(server)
    for number in bodies.indices { try scene.spool.drop("\(number)", "url: \(scene.front.url("/\(number)"))\n") }
    let result = try await scene.run("--jobs", "8", "--per-host", "8")
    #expect(result.status == .exited(0), "\(result)")
    for (number, body) in bodies.enumerated() {
      #expect(digest(try scene.spool.payload("\(number)")) == digest(body), "\(scene.spool.listing(of: "\(number)"))")
    }
  }

  /// Jobs of both protocols at one host, where a connection of HTTP/2 never stays: no job gets onto another's
  /// connection of HTTP/1.1.
  @Test func bothProtocolsAtOnce() async throws {
    let bodies = (0..<40).map { number in large(Array("\(number)".utf8) + payload, count: 1 + number % 8) }
    let server = try ScriptedServer { request, reply in
      let number = Int(request.target.dropFirst()) ?? 0
      let origin = Origin(bytes: bodies[number], etag: "\"\(number)\"")
      guard let stream = HTTP2Stream(request, reply) else {
        try reply.pause(milliseconds: 300)
        try origin.answer(request, reply)
        return
      }
      try origin.answer(request, stream, piece: 16_384)
      try stream.goAway(.noError, lastStream: stream.number)
      try reply.finish()
    }
    let scene = try await HTTP2Scene(server)
    for number in bodies.indices {
      let connections = number % 3 == 0 ? "connections: 2\n" : ""
      try scene.spool.drop("\(number)", "url: \(scene.front.url("/\(number)"))\n\(connections)")
    }
    let result = try await scene.run("--jobs", "8", "--per-host", "8")
    for (number, body) in bodies.enumerated() where scene.spool.places(of: "\(number)") == ["done/\(number)"] {
      #expect(digest(try scene.spool.payload("\(number)")) == digest(body), "\(scene.spool.listing(of: "\(number)"))")
    }
    #expect(server.problems == [], "\(result)")
  }
}

/// A spool and a server of HTTP/2 before a script.
private struct HTTP2Scene {
  let spool: TemporarySpool
  let front: HTTP2Front
  private let authority: CertificateAuthority

  init(_ server: ScriptedServer, speaksHTTP1: Bool = true) async throws {
    spool = try TemporarySpool()
    authority = try await CertificateAuthority()
    front = try await HTTP2Front(to: [server], authority: authority, speaksHTTP1: speaksHTTP1)
  }

  func run(_ options: String...) async throws -> CommandResult {
    try await spoolrun(["--once", "--cacert", authority.authority] + options + [spool.root])
  }

  /// The `done:` line of the job that is named so.
  var receipt: JobLine? {
    get throws { try spool.lines("done/job").last { $0.key == "done" } }
  }
}
