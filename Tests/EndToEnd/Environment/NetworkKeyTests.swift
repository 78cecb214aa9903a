import Glibc
import TestSupport
import Testing

/// The other keys that `defaults` alone may have, through real runs.
@Suite struct NetworkKeyTests {
  private func setDefaults(_ spool: TemporarySpool, _ text: String) throws {
    try spool.write("defaults", text)
  }

  /// `localhost` has addresses of both kinds, and the server listens at one.
  @Test(arguments: [4, 6]) func ip(version: Int) async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    try setDefaults(spool, "ip: \(version)\n")
    try spool.drop("a", "url: \(server.url("/a").replacing("127.0.0.1", with: "localhost"))\nattempts: 1\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.exitStatus == (version == 4 ? 0 : 75), "\(result)")
    #expect(server.requests.count == (version == 4 ? 1 : 0))
  }

  /// A key with a password is not asked for on the terminal, where all transfers would wait.
  @Test(.enabled("needs openssl, nginx and script") { try await Need.areMet(.nginx, .terminal) })
  func aClientCertificate() async throws {
    let authority = try await CertificateAuthority()
    let nginx = try await NginxRig(authority: authority)
    try nginx.publish("a", Array("payload".utf8))
    let spool = try TemporarySpool()
    func write(_ name: String, from path: String) throws { try spool.write(name, try readFile(path)) }
    try write("ca.pem", from: authority.authority)
    try write("client.pem", from: authority.certificate)
    try write("client.key", from: authority.key)
    try await runTool(
      [
        "/usr/bin/openssl", "pkey", "-in", authority.key, "-aes256", "-passout", "pass:x", "-out",
        spool.path("locked.key"),
      ])
    let job = "url: \(nginx.url(.https, "/client/a"))\nattempts: 1\n"
    let cases = [
      ("none", "", "http-403"), ("locked", "cert: client.pem\nkey: locked.key\n", "tls"),
      ("good", "cert: client.pem\nkey: client.key\n", nil),
    ]
    for (name, keys, code) in cases {
      try setDefaults(spool, "cacert: ca.pem\n\(keys)")
      try spool.drop(name, job + "output: \(name)\n")
      let result = try await runInTerminal("'\(try productPath("spoolrun"))' --once '\(spool.root)'")
      if let code {
        let failure = try spool.lastFailure("failed/\(name)")
        #expect(result.exitStatus == 1 && failure["code"] == code, "\(result) \(failure)")
      } else {
        let payload = try spool.payload(name)
        #expect(result.exitStatus == 0 && payload == Array("payload".utf8), "\(result)")
      }
    }
    // The option comes before the key.
    try setDefaults(spool, "cacert: ca.pem\n")
    try spool.drop("other", "url: \(nginx.url(.https, "/a"))\nattempts: 1\noutput: other\n")
    let result = try await spoolrun("--once", "--cacert", "/etc/passwd", spool.root)
    let failure = try spool.lastFailure("failed/other")
    #expect(result.exitStatus == 1 && failure["code"] == "tls", "\(result) \(failure)")
  }

  /// They are the worker's: a job that has one is none.
  @Test func noneIsAJobs() async throws {
    let lines = ["netrc: yes", "cookies: /etc/passwd", "proxy: http://evil.example:1", "cert: /etc/passwd"]
    let spool = try TemporarySpool()
    for (number, line) in lines.enumerated() { try spool.drop("\(number)", "http://127.0.0.1:9/a\n\(line)\n") }
    try await spool.once(exits: 1)
    for (number, line) in lines.enumerated() {
      let record = try spool.lastFailure("failed/\(number)")
      #expect(record["code"] == "malformed" && record["line"] == "2", "\(line): \(record)")
    }
  }
}
