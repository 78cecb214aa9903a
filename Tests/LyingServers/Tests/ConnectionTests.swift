import Testing
import TestSupport

@testable import LyingServer

/// What jobs of one host have to do with each other: the connections that they share.
@Suite struct ConnectionTests {
  /// Bytes after a body must not become the answer to the next request on the connection.
  @Test(arguments: ["garbage", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"])
  func excessBytesReachNoOtherJob(excess: String) async throws {
    // Larger than a client's buffer: the last read takes the body's rest and leaves what follows it.
    let body = large(payload, count: 100)
    let server = try ScriptedServer { request, reply in
      try reply.head("200 OK", ["Content-Length: \(body.count)"])
      try reply.send(request.target == "/a" ? body + Array(excess.utf8) : body)
    }
    let spool = try TemporarySpool()
    for name in ["a", "b", "c"] { try spool.drop(name, "url: \(server.url("/\(name)"))\n") }
    let result = try await spoolrun("--once", "--jobs", "1", spool.root)
    #expect(result.status == .exited(0), "\(result)\n\(spool.listing(of: "a"))\n\(spool.listing(of: "b"))")
    for name in ["a", "b", "c"] {
      let isBody = try spool.payload(name) == body
      #expect(isBody, "\(spool.listing(of: name))")
    }
  }

  /// `--per-host` jobs of one host run side by side: none waits for another's first byte, or for its last.
  @Test(.enabled("needs openssl and python3") { try await Need.tls.isMet() }, arguments: [false, true])
  func perHostMeansAtOnce(overTLS: Bool) async throws {
    let width = 4
    let all = try Gate()
    let server = try ScriptedServer { request, reply in
      try reply.head("200 OK", ["ETag: \(v1)", "Content-Length: \(n)"])
      try reply.send(payload.prefix(5000))
      if request.connection == width { all.open() }
      if !all.isOpen { try reply.stall(until: all) }
      try reply.send(payload.dropFirst(5000))
    }
    let authority = try await CertificateAuthority()
    let front = try await TLSFront(to: server, authority: authority, announcesEnd: true)
    let spool = try TemporarySpool()
    for number in 1...width {
      let path = "/data\(number)"
      try spool.drop("job\(number)", "url: \(overTLS ? front.url(path) : server.url(path))\ntimeout: 2m\n")
    }
    let result = try await spoolrun(
      "--once", "--per-host", "\(width)", "--cacert", authority.authority, spool.root)
    #expect(result.status == .exited(0), "\(result)\n\(spool.listing(of: "job1"))")
    #expect(server.requests.count == width, "each waited for the others, and none had to ask again")
    #expect(spool.payloads.count == width)
  }

  /// No more than `--per-host` at a time, though many more are due.
  @Test func perHostIsALimit() async throws {
    let server = try ScriptedServer { request, reply in
      try Origin().answer(request, reply)
    }
    let spool = try TemporarySpool()
    for number in 1...20 { try spool.drop("job\(number)", "url: \(server.url("/data\(number)"))\n") }
    let result = try await spoolrun("--once", "--jobs", "8", "--per-host", "2", spool.root)
    #expect(result.status == .exited(0), "\(result)")
    #expect(spool.payloads.count == 20)
    #expect(server.requests.count == 20)
    #expect(Set(server.requests.map(\.connection)).count <= 2, "connections are used again")
  }
}
