import Glibc
import TestSupport
import Testing

/// User information, queries and header values never reach a log, an error or the journal (INTERNALS.md, invariant 12).
@Suite struct SecretTests {
  private static let secrets = ["pa55word", "us3rname", "t0ken-value", "hdr-s3cret", "c00kie"]

  private func job(_ url: String, _ more: String = "") -> String {
    let secret = url.replacing("http://", with: "http://us3rname:pa55word@") + "?token=t0ken-value#frag-t0ken-value"
    return "url: \(secret)\nheader: Authorization: Bearer hdr-s3cret\nheader: Cookie: c00kie=1\n\(more)"
  }

  private func reveals(_ text: String) -> [String] { Self.secrets.filter { text.contains($0) } }

  /// Every way to end, in every form of log.
  @Test(arguments: [["-v"], ["-v", "--log-format", "json"], [], ["--log-format", "json"]])
  func logsAndJournals(flags: [String]) async throws {
    let script: ScriptedServer.Script = { request, reply in
      switch request.target.split(separator: "?")[0] {
      case "/ok": try reply.respond("200 OK", body: [1])
      case "/redirect":
        try reply.respond("302 Found", ["Location: \(request.target.replacing("/redirect", with: "/ok"))"], body: [])
      case "/loop": try reply.respond("302 Found", ["Location: \(request.target)"], body: [])
      case "/file": try reply.respond("302 Found", ["Location: file:///etc/passwd?token=t0ken-value"], body: [])
      case "/away":
        try reply.respond("302 Found", ["Location: http://us3rname:pa55word@127.0.0.1:9/x?token=t0ken-value"], body: [])
      case "/cut":
        try reply.head("200 OK", ["Content-Length: 10"])
        try reply.reset()
      case "/garbage": try reply.send("nonsense t0ken-value\r\n\r\n")
      default: try reply.respond("\(request.target.dropFirst().prefix(3)) No t0ken-value", body: [])
      }
    }
    // The failing one rests after its answers; that must not keep a job waiting that is to be done.
    let (server, failing) = (try ScriptedServer(script), try ScriptedServer(script))
    let spool = try TemporarySpool()
    for name in ["ok", "redirect"] {
      try spool.drop("job-\(name)", job(server.url("/\(name)"), "output: \(name)\n"))
    }
    for name in ["loop", "file", "away", "cut", "garbage", "401", "404", "500", "502"] {
      try spool.drop("job-\(name)", job(failing.url("/\(name)"), "output: \(name)\n"))
    }
    try spool.drop("port", job("http://127.0.0.1:9/x", "output: port\n"))
    try spool.drop("resolve", job("http://host.invalid/x", "output: resolve\n"))
    try spool.drop("badport", job("http://127.0.0.1:99999/x", "output: badport\n"))
    try spool.drop("scheme", job("http://h/x").replacing("http://", with: "gopher://"))
    try spool.drop("expired", job(server.url("/ok"), "expires: 2001-01-01\n"))
    try spool.drop("header", job(server.url("/ok"), "header: Bad Name: hdr-s3cret\n"))
    try spool.drop("control", job(server.url("/ok"), "header: X: hdr-s3cret\u{1}\n"))
    try spool.drop("glued", "url: http://us3rname:pa55word@h/x header: hdr-s3cret\n")
    try spool.drop("nokey", "http://us3rname:pa55word@h/x?token=t0ken-value\nhttp://us3rname:pa55word@h/y\n")
    let result = try await startSpoolrun(["--once"] + flags + [spool.root]).result().exits(1)
    #expect(reveals(result.output + result.errors) == [], "\(result)")
    #expect(spool.names("done").sorted() == ["job-ok", "job-redirect"], "\(result)")
    // The job's own text holds them, of course; what the worker wrote does not.
    let keys: Set = ["requeued", "started", "response", "checkpoint", "interrupted", "failed", "verified", "done"]
    var lines = 0
    for state in ["done", "failed", "partial"] {
      for name in spool.names(state) where !name.hasSuffix(".part") {
        for line in try spool.lines("\(state)/\(name)") where keys.contains(line.key) {
          lines += 1
          #expect(reveals(line.text) == [], "\(state)/\(name): \(line)")
        }
      }
    }
    #expect(lines > 30, "each job has some")
    let first = try #require(server.requests(for: "/ok?token=t0ken-value").first)
    #expect(
      first.value("authorization") == "Bearer hdr-s3cret" && first.value("cookie") == "c00kie=1",
      "they do reach the server")
  }

  /// What other users see of processes, and what hooks and gates are given.
  @Test func processesShowNone() async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    let look =
      "cat /proc/$PPID/cmdline /proc/$$/cmdline | tr '\\0' '\\n'; env; cat /proc/$PPID/environ | tr '\\0' '\\n'"
    for hook in ["verify", "done", "failed"] {
      try spool.install(hook, "(\(look)) >>'\(spool.root)/seen-\(hook)' 2>/dev/null")
    }
    try spool.drop("good", job(server.url("/good"), "output: good\n"))
    try spool.drop("gone", job(server.url("/404"), "output: gone\n"))
    let gate = "(\(look)) >>'\(spool.root)/seen-gate' 2>/dev/null; true"
    let result = try await spoolrun("--once", "--gate", gate, spool.root)
    #expect(result.status == .exited(1) && spool.payloads == ["good"], "\(result)")
    for seen in ["verify", "done", "failed", "gate"] {
      let text = try spool.text("seen-\(seen)")
      #expect(text.contains("--once") && text.contains("PATH="), "\(seen) has looked")
      #expect(reveals(text) == [], "\(seen)")
    }
  }

  /// `status` shows what went wrong, and nothing of the jobs' own lines.
  @Test(arguments: [[], ["--json"]])
  func statusTellsNone(flags: [String]) async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    for (name, path) in [("gone", "/404"), ("busy", "/503")] {
      try spool.drop(name, job(server.url(path), "output: \(name)\n"))
    }
    try spool.drop("bad", job(server.url("/x"), "hdr-s3cret: 1\n").replacing("header: ", with: "haeder: "))
    try await spool.once(exits: 1)
    let result = try await startSpoolrun(["status", "--all"] + flags + [spool.root]).result()
    #expect(result.output.contains("http-404") && result.output.contains("malformed"), "\(result)")
    #expect(reveals(result.output + result.errors) == [], "\(result)")
  }

  @Test func addTellsNone() async throws {
    let spool = try TemporarySpool()
    let bad = [
      ["http://us3rname:pa55word@h:99999/x?token=t0ken-value"], ["gopher://us3rname:pa55word@h/x"],
      ["http://h/x", "--header", "Bad Name: hdr-s3cret"], ["http://h/x", "--header", "X: hdr-s3cret\nY: c00kie"],
      ["http://us3rname:pa55word@h/x y"],
    ]
    for arguments in bad {
      let result = try await startSpoolrun(["add", "--spool", spool.root] + arguments).result()
      #expect(result.exitStatus == 64, "\(arguments): \(result)")
      #expect(reveals(result.output + result.errors) == [], "\(result)")
    }
    let result = try await spoolrun(
      "add", "--spool", spool.root, "http://us3rname:pa55word@h/x?token=t0ken-value", "--header", "X: hdr-s3cret")
    #expect(result.exitStatus == 0 && result.output == "x\n", "\(result)")
    #expect((fileStatus(spool.path("new/x"))?.st_mode ?? 0) & 0o777 == 0o600, "and the job is for its owner only")
  }
}
