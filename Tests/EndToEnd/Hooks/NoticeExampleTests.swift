import Glibc
import TestSupport
import Testing

/// The hooks in contrib/hooks that tell a person: by mail, by ntfy, by Healthchecks.
@Suite(.enabled("needs curl") { try await Need.program("curl").isMet() })
struct NoticeExampleTests {
  /// A name that would end a quoted word; and one that would be a second header, which is not valid.
  private static let names = ["bad\"\\", "evil\r\nX-Evil: 1"]

  /// A spool with this example as its hooks of these names.
  private func spool(_ example: String, as hooks: String...) async throws -> TemporarySpool {
    let spool = try TemporarySpool()
    try await runTool(
      [
        "/bin/sh", "-euc", "mkdir -m 700 \"$1/hooks\"; for h in $3; do cp \"$2\" \"$1/hooks/$h\"; done", "sh",
        spool.root,
      ]
        + [SourceTree.contrib("hooks/\(example)"), hooks.joined(separator: " ")])
    return spool
  }

  /// Files under every name but `/404`, and a service under `/notice…` that takes what is posted.
  private func server() throws -> ScriptedServer {
    try ScriptedServer { request, reply in
      guard request.target.hasPrefix("/notice") else {
        let isThere = !request.target.hasPrefix("/404")
        return try reply.respond(isThere ? "200 OK" : "404 Not Found", body: isThere ? Array("payload\n".utf8) : [])
      }
      // The request's body is read as the next request, so the connection ends here.
      try reply.respond("200 OK", ["Connection: close"], body: [])
      try reply.finish()
    }
  }

  private func dropAll(_ spool: TemporarySpool, _ server: ScriptedServer) throws {
    try spool.drop("good", "url: \(server.url("/x"))\noutput: d/good\n")
    for name in Self.names { try spool.drop(name, "url: \(server.url("/404?key=s3cret"))\n") }
  }

  @Test func `healthchecks pings success and failure`() async throws {
    let (server, spool) = (try server(), try await spool("healthchecks", as: "done", "failed"))
    try dropAll(spool, server)
    let result = try await spoolrun(
      "--once", "-v", spool.root, environment: ["HEALTHCHECKS_URL": server.url("/notice/uuid")])
    #expect(result.status == .exited(1) && !result.errors.contains("hook-failed"), "\(result)")
    #expect(server.requests(for: "/notice/uuid").count == 1 && server.requests(for: "/notice/uuid/fail").count == 2)
  }

  @Test func `ntfy gets a title, a priority and the token`() async throws {
    let (server, spool) = (try server(), try await spool("notify-ntfy", as: "done", "failed"))
    try dropAll(spool, server)
    let result = try await spoolrun(
      "--once", "-v", spool.root, environment: ["NTFY_URL": server.url("/notice"), "NTFY_TOKEN": "tk_1"])
    #expect(result.status == .exited(1) && !result.errors.contains("hook-failed"), "\(result)")
    let notices = server.requests(for: "/notice")
    #expect(
      Set(notices.map { $0.value("title") }) == [
        "good is done", "bad'/ failed: http-404", "evil??X-Evil: 1 failed: malformed",
      ], "\(notices)")
    #expect(notices.allSatisfy { $0.value("authorization") == "Bearer tk_1" && $0.value("x-evil") == nil })
    #expect(Set(notices.map { $0.value("priority") }) == ["low", "high"])
  }

  /// Its end is reported, and changes nothing for the job.
  @Test func `a service that is away fails the hook only`() async throws {
    let (server, spool) = (try server(), try await spool("notify-ntfy", as: "done"))
    try spool.drop("good", "\(server.url("/x"))\n")
    let dead = try DeadPort()
    try await spoolrun("--once", spool.root, environment: ["NTFY_URL": "http://127.0.0.1:\(dead.port)/t"])
      .exits(0, saying: "good: hook-failed: hook=done")
  }

  /// Under the units of contrib/systemd sendmail(8) of Postfix waits for ever, and SMTP works.
  @Test(arguments: [true, false])
  func `a failure is mailed by SMTP, or else by sendmail for a limited time`(hasServer: Bool) async throws {
    let (server, spool, mail) = (try server(), try await spool("failed-mail", as: "failed"), try await MailServer())
    try await runTool(
      [
        "/bin/sh", "-euc",
        """
        printf '#!/bin/sh\\n: >"$SPOOLRUN_SPOOL/tried"; sleep 100\\n' >"$1/sendmail"; chmod 755 "$1/sendmail"
        sed -i "s|^PATH=.*|PATH=$1:\\$PATH|; s/timeout 10/timeout 25/; s/max-time 10/max-time 200/" "$1/hooks/failed"
        """, "sh", spool.root,
      ])
    // Exim takes no line of over 998 bytes.
    try spool.drop("a", "url: \(server.url("/404" + String(repeating: "x", count: 2000)))\noutput: a\n")
    let dead = try DeadPort()
    let url = "smtp://127.0.0.1:\(hasServer ? mail.port : dead.port)"
    let result = try await spoolrun(
      "--once", "-v", spool.root, environment: ["MAILTO": "me@example.org, root", "SMTP_URL": url])
    #expect(result.errors.contains("hook-failed") == !hasServer, "\(result)")
    #expect((fileStatus(spool.path("tried")) != nil) == !hasServer)
    guard hasServer else { return }
    let said = try mail.said
    #expect(said.contains("RCPT TO:<me@example.org>") && said.contains { $0.hasPrefix("RCPT TO:<root@") }, "\(said)")
    #expect(said.contains { $0.hasPrefix("To: me@example.org, root@") }, "\(said)")
    #expect(said.contains("Subject: spoolrun: a failed: http-404") && said.contains("code:      http-404"), "\(said)")
    #expect(said.allSatisfy { $0.utf8.count <= 998 } && said.contains { $0.hasSuffix("xxx") }, "\(said)")
  }

  /// `sendmail` or, without it, `mail`: each writes what it gets.
  @Test(arguments: [true, false])
  func `a failure is mailed`(hasSendmail: Bool) async throws {
    let (server, spool, tools) = (try server(), try await spool("failed-mail", as: "failed"), try TemporaryDirectory())
    let program = hasSendmail ? "sendmail" : "mail"
    let script = "#!/bin/sh\n{ echo \"$@\"; cat; } >\"$SPOOLRUN_SPOOL/mailed-$SPOOLRUN_CODE\"\n"
    try writeFile("\(tools.path)/\(program)", script)
    try #require(chmod("\(tools.path)/\(program)", 0o755) == 0)
    // Without the machine's own sendmail.
    try await runTool(
      ["/bin/sh", "-euc", "for p in tr id uname cat sed sh date timeout fold; do ln -s \"$(command -v $p)\" $p; done"],
      directory: tools.path)
    let hook = spool.path("hooks/failed")
    // A busy machine may take longer than the 10 seconds that the hook waits.
    let text = try readText(hook).replacing("timeout 10 ", with: "timeout 200 ")
    try writeFile(hook, text.replacing("PATH=$PATH:/usr/sbin:/usr/lib\n", with: "PATH=\(tools.path)\n"))
    try dropAll(spool, server)
    let result = try await spoolrun("--once", "-v", spool.root, environment: ["MAILTO": "me@example.org"])
    #expect(result.status == .exited(1) && !result.errors.contains("hook-failed"), "\(result)")
    for (code, name) in [("http-404", "bad\"\\"), ("malformed", "evil??X-Evil: 1")] {
      let mail = spool.told("mailed-\(code)")
      let subject = "spoolrun: \(name) failed: \(code)"
      let head =
        hasSendmail ? ["-i -t", "To: me@example.org", "Subject: \(subject)"] : ["-s \(subject) -- me@example.org"]
      #expect(mail.starts(with: head) && mail.contains("job:       \(name)"), "\(mail)")
      #expect(mail.contains { $0.hasSuffix(code == "malformed" ? " --failed" : " -- 'bad\"\\'") }, "\(mail)")
      #expect(!mail.contains { $0.hasPrefix("X-Evil") || $0.contains("s3cret") }, "\(mail)")
      let url = mail.first { $0.hasPrefix("url: ") }
      #expect((url?.hasSuffix("/404") ?? false) == (code == "http-404"), "\(mail)")
    }
  }
}
