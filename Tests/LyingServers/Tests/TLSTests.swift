import Testing
import TestSupport

@testable import LyingServer

/// What TLS adds: an authenticated end, and certificates.
@Suite(.enabled("needs openssl and python3") { try await Need.tls.isMet() })
struct TLSTests {
  /// A body that ends with the connection, over TLS that ends with or without close_notify.
  @Test(arguments: [true, false])
  func closeDelimited(announcesEnd: Bool) async throws {
    let server = try ScriptedServer { _, reply in
      try reply.head("200 OK", ["Connection: close"])
      try reply.send(payload)
      try reply.finish()
    }
    let authority = try await CertificateAuthority()
    let front = try await TLSFront(to: server, authority: authority, announcesEnd: announcesEnd)
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(front.url("/data"))\n")
    let result = try await spoolrun("--once", "--cacert", authority.authority, spool.root)
    if announcesEnd {
      #expect(result.status == .exited(0), "\(result)")
      #expect(digest(try spool.payload("data")) == digest(payload))
    } else {
      #expect(result.status == .exited(75), "\(result)")
      #expect(try spool.lines("partial/job").last { $0.key == "failed" }?["code"] == "cut")
      #expect(spool.payloads == [])
    }
  }

  /// A libcurl that was built with a directory of authorities, as Debian's, trusts these as well (CURLOPT_CAPATH(3)).
  @Test(.enabled("needs mounts") { try await Need.mounts.isMet() })
  func cacertIsInsteadOfTheSystems() async throws {
    let (authority, other) = (try await CertificateAuthority(), try await CertificateAuthority())
    let scene = try TemporaryDirectory()
    let server = try ScriptedServer { try Origin().answer($0, $1) }
    let front = try await TLSFront(to: server, authority: authority, announcesEnd: true)
    try writeFile("\(scene.path)/ca.pem", readFile(authority.authority))
    try await runTool(["/usr/bin/openssl", "rehash", scene.path])
    let mount = #"mount --bind "$0" /etc/ssl/certs; exec "$@""#
    for (file, status) in [(other.authority, CommandResult.Status.exited(75)), (authority.authority, .exited(0))] {
      let spool = try TemporarySpool()
      try spool.drop("job", "url: \(front.url("/data"))\n")
      let result = try await spoolrun(
        "--once", "--cacert", file, spool.root,
        prefix: ["/usr/bin/unshare", "--mount", "sh", "-euc", mount, scene.path])
      #expect(result.status == status, "\(result)")
    }
  }

  /// What no plain connection could tell from a whole body.
  @Test(arguments: tlsBehaviours)
  func cutWithoutCloseNotify(_ behaviour: Behaviour) async throws {
    let server = try ScriptedServer(behaviour.script)
    let authority = try await CertificateAuthority()
    let front = try await TLSFront(to: server, authority: authority, announcesEnd: false)
    let spool = try TemporarySpool()
    let lengths = [0, 1, 5000, n - 1, n + 1]
    for length in lengths {
      let job = jobText(behaviour, url: front.url("/\(length)"))
      try spool.addPartial("\(length)", job: job, facts: behaviour.facts, part: behaviour.data(length))
    }
    let result = try await spoolrun("--once", "--cacert", authority.authority, spool.root)
    #expect(result.status == .exited(75), "\(result)")
    #expect(spool.payloads == [])
    for length in lengths {
      #expect(try spool.lines("partial/\(length)").last { $0.key == "failed" }?["code"] == "cut")
    }
  }

  /// With a Content-Length the missing close_notify is of no account, and a cut body is continued.
  @Test(arguments: [true, false])
  func cutEachThreeThousand(announcesEnd: Bool) async throws {
    let server = try ScriptedServer { try Origin().answerAndCut($0, $1, after: 3000) }
    let authority = try await CertificateAuthority()
    let front = try await TLSFront(to: server, authority: authority, announcesEnd: announcesEnd)
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(front.url("/data"))\n")
    let result = try await spoolrun("--once", "--cacert", authority.authority, spool.root)
    #expect(result.status == .exited(0), "\(result)")
    #expect(digest(try spool.payload("data")) == digest(payload))
    #expect(
      server.requests.map(ask) == ["plain"] + stride(from: 1500, to: 8500, by: 1500).map { "range \($0) if \(v1)" })
  }

  @Test func unknownAuthority() async throws {
    let server = try ScriptedServer { try Origin().answer($0, $1) }
    let authority = try await CertificateAuthority()
    let front = try await TLSFront(to: server, authority: authority, announcesEnd: true)
    let spool = try TemporarySpool()
    try spool.drop("job", "url: \(front.url("/data"))\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(75), "\(result)")
    #expect(try spool.lines("partial/job").last { $0.key == "failed" }?["code"] == "tls")
    #expect(server.requests.isEmpty)
  }
}
