import Glibc
import TestSupport
import Testing

/// The hook `resolve`, which says where a job's file is at the moment.
@Suite struct ResolveTests {
  private static let secrets = ["p4th", "qu3ry", "t0ken", "us3r"]
  private static let etag = "ETag: \"1\""

  /// The hook prints `lines`, and what it was asked with is in the file `asked`.
  private func spool(_ lines: String, _ more: String = "") throws -> TemporarySpool {
    let spool = try TemporarySpool()
    try spool.install(
      "resolve",
      """
      env | grep ^SPOOLRUN_ | sort >>"$SPOOLRUN_SPOOL/asked"; n=$(grep -c SPOOLRUN_HOOK "$SPOOLRUN_SPOOL/asked")
      \(more)
      cat <<END
      \(lines)
      END
      """)
    return spool
  }

  private func times(_ spool: TemporarySpool) -> Int { spool.told("asked").count { $0.hasPrefix("SPOOLRUN_HOOK=") } }

  /// Serves a part of `bytes` from the start that is asked for, and then drops the connection.
  private static func answer(
    _ request: ServerRequest, _ reply: Reply, _ bytes: [UInt8], cutAfter limit: Int = .max
  ) throws {
    let start = request.rangeStart ?? 0
    let end = min(bytes.count, (request.rangeEnd ?? bytes.count - 1) + 1)
    let isPart = request.rangeStart != nil
    let range = isPart ? ["Content-Range: bytes \(start)-\(end - 1)/\(bytes.count)"] : []
    try reply.head(isPart ? "206 Partial Content" : "200 OK", [etag, "Content-Length: \(end - start)"] + range)
    try reply.send(bytes[start..<start + min(end - start, limit)])
    if end - start > limit { try reply.reset() }
  }

  // MARK: what it says

  @Test(arguments: [["-v"], ["-v", "--log-format", "json"]])
  func theLinksAreOfTheAttemptAlone(flags: [String]) async throws {
    let server = try ScriptedServer { request, reply in
      switch request.target {
      case "/p4th/a?qu3ry=1": try reply.respond("302 Found", ["Location: /p4th/b?qu3ry=2"], body: [])
      case "/p4th/b?qu3ry=2" where request.value("X-Key") == "t0ken": try Self.answer(request, reply, payload)
      default: try reply.respond("418 Teapot", body: [])
      }
    }
    let link = server.url("/p4th/a?qu3ry=1").replacing("http://", with: "http://us3r:t0ken@")
    let spool = try spool("# of today\nurl: \(link)\nheader: X-Key: t0ken\nsize: \(payload.count)")
    // Nothing of a job is a command. One attempt: after a mismatch the next one is due in 4 seconds, perhaps before the
    // run has ended.
    let wrong = "attempts: 1\nsha1: \(String(repeating: "0", count: 40))\n"
    try spool.drop("a", "resolve: the  text $(touch x)\noutput: d/a\n\(wrong)")
    try spool.drop("b", "resolve: b\noutput: b\nheader: x-key: old\nurl: http://127.0.0.1:9/own\n")
    let result = try await spoolrun(["--once"] + flags + [spool.root])
    #expect(result.status == .exited(1) && spool.payloads == ["b"], "\(result)")
    let asked = spool.told("asked")
    for fact in [
      "HOOK=resolve", "JOB=a", "RESOLVE=the  text $(touch x)", "OUTPUT=d/a", "ATTEMPT=1", "STATUS=", "URL=",
      "URL=http://127.0.0.1:9/own", "SHA1=\(String(repeating: "0", count: 40))",
    ] {
      #expect(asked.contains("SPOOLRUN_\(fact)"), "\(fact): \(asked)")
    }
    #expect(try spool.lastFailure("failed/a")["code"] == "mismatch-sha1")
    let response = try #require(try spool.lines("done/b").last { $0.key == "response" })
    #expect(response["resource"]?.hasPrefix(server.url("/#")) == true, "\(response)")
    #expect(try spool.lines("done/b").first { $0.key == "started" }?["url"] == server.url(""))
    #expect(try spool.files(with: Self.secrets, except: ["asked"]) == [])
    let status = try await spoolrun("status", "--json", "--all", spool.root)
    for text in [result.output, result.errors, status.output] {
      #expect(Self.secrets.filter { text.contains($0) } == [], "\(text)")
    }
  }

  /// What the hook says of the payload counts as what the job says.
  @Test func aDigestOfTheHookIsChecked() async throws {
    let server = try simpleServer()
    let sum = independentCRC32(Array("payload\n".utf8))
    for (lines, code) in [
      ("crc32: \(hex8(sum))", nil), ("crc32: \(hex8(sum ^ 1))", "mismatch-crc32"), ("size: 9", "mismatch-size"),
    ] {
      let spool = try spool("\(server.url("/x"))\n\(lines)")
      try spool.drop("a", "resolve: x\noutput: a\nattempts: 1\n")
      let result = try await spoolrun("--once", spool.root)
      #expect(spool.payloads == (code == nil ? ["a"] : []), "\(result)")
      if let code { #expect(try spool.lastFailure("failed/a")["code"] == code) }
    }
  }

  /// A header for the job's own URL goes to the host that it names.
  @Test func aHeaderIsForItsHost() async throws {
    let server = try simpleServer()
    let spool = try spool("header@127.0.0.1: Authorization: Bearer t0ken\nheader@other.example: X-Other: t0ken")
    try spool.drop("a", "url: \(server.url("/a"))\nresolve: x\nheader: authorization: own\nheader: X-Own: 1\n")
    try await spool.once(exits: 0)
    let request = try #require(server.requests.first)
    #expect(request.values("authorization") == ["Bearer t0ken"] && request.value("x-own") == "1")
    #expect(request.value("x-other") == nil)
  }

  // MARK: links that expire

  @Test(arguments: [400, 401, 403, 410])
  func anExpiredLinkIsAskedForAgain(status: Int) async throws {
    let server = try ScriptedServer { request, reply in
      if request.target == "/1" { return try reply.respond("\(status) Expired", body: []) }
      try Self.answer(request, reply, payload)
    }
    let spool = try spool("url: \(server.url("/$n"))")
    try spool.drop("a", "resolve: x\noutput: a\nattempts: 1\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && times(spool) == 2, "\(result)\n\(spool.listing(of: "a"))")
    #expect(
      spool.told("asked").filter { $0.hasPrefix("SPOOLRUN_STATUS=") } == [
        "SPOOLRUN_STATUS=", "SPOOLRUN_STATUS=\(status)",
      ])
    #expect(try spool.lines("done/a").count { $0.key == "failed" } == 0)
    #expect(try spool.lines("done/a").last { $0.key == "done" }?["attempts"] == "1")
  }

  /// Once without progress. A link may expire, so the first two refusals are temporary.
  @Test(arguments: [(403, 2), (404, 1)])
  func itIsAskedOnceMoreAndNotForEver(status: Int, asked: Int) async throws {
    let server = try ScriptedServer { _, reply in try reply.respond("\(status) No", body: []) }
    let spool = try spool("url: \(server.url("/$n"))")
    try spool.drop("a", "resolve: x\noutput: a\n")
    for attempt in 1...3 {
      if attempt > 1 { try spool.makeDue("a") }
      let result = try await spoolrun("--once", spool.root)
      #expect(result.status == .exited(attempt == 3 ? 1 : 75) && times(spool) == attempt * asked, "\(result)")
    }
    #expect(try spool.lastFailure("failed/a")["code"] == "http-\(status)")
  }

  /// Each link is for so few requests that it expires several times on the way, over one connection and over several.
  @Test(arguments: [1, 4])
  func aDownloadGoesOnOverLinksThatExpire(connections: Int) async throws {
    let server = try ScriptedServer { request, reply in
      guard request.nth <= connections else { return try reply.respond("403 Expired", body: []) }
      try Self.answer(request, reply, payload, cutAfter: 100_000)
    }
    let spool = try spool("url: \(server.url("/file?signature=$n"))")
    try spool.drop("a", "resolve: x\noutput: a\nattempts: 1\nconnections: \(connections)\n")
    try await spool.once("--chunk-size", "200k", exits: 0)
    #expect(try spool.payload("a") == payload && times(spool) > 2)
    let fetched = try spool.lines("done/a").last { $0.key == "done" }?["bytes-fetched"].flatMap { Int($0) }
    #expect(connections > 1 || fetched.map { $0 < 3 * payload.count } == true, "\(String(describing: fetched))")
  }

  /// A server that gives a byte for each link is not asked for ever.
  @Test func aByteALinkIsNoProgress() async throws {
    let server = try ScriptedServer { request, reply in
      if request.nth > 1 { return try reply.respond("403 Expired", body: []) }
      try Self.answer(request, reply, payload, cutAfter: 1)
    }
    let spool = try spool("url: \(server.url("/file?signature=$n"))")
    try spool.drop("a", "resolve: x\noutput: a\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(75) && (2...110).contains(times(spool)), "\(times(spool)) \(result)")
    #expect(try spool.lastFailure("partial/a")["code"] == "http-403")
  }

  // MARK: what is joined

  /// Links with another path may lead to another file, whatever the text that the hook was asked with and the ETag:
  /// what is there goes on only if a digest proves the whole in the end.
  @Test(arguments: [false, true])
  func filesOfTwoLinksAreNotJoined(hasDigest: Bool) async throws {
    let other = payload.map { $0 ^ 0xFF }
    let digest = hasDigest ? "\ncrc32: \(hex8(independentCRC32(payload)))" : ""
    // The first link is refused after it was cut, so that the second is asked for.
    let server = try ScriptedServer { request, reply in
      if request.target == "/1/a", request.nth > 1 { return try reply.respond("403 Expired", body: []) }
      if request.target == "/1/a" { return try Self.answer(request, reply, payload, cutAfter: 500_000) }
      try Self.answer(request, reply, hasDigest ? payload : other)
    }
    let spool = try spool("url: \(server.url("/$n/a"))\(digest)")
    try spool.drop("a", "resolve: same\noutput: a\n")
    try await spool.once(exits: 0)
    #expect(try spool.payload("a") == (hasDigest ? payload : other), "no splice")
    let starts = server.requests(for: "/2/a").map { $0.rangeStart ?? 0 }
    #expect(starts.contains(resumePoint(after: 500_000)) && starts.contains(0) != hasDigest, "\(starts)")
  }

  // MARK: when it fails

  @Test(arguments: [
    ("exit 100", "unresolvable", "no such file"), ("echo gone >&2; exit 100", "unresolvable", "gone"),
    ("echo why >&2; exit 1", "resolve-hook", "exit status 1: why"),
    ("kill -KILL $$", "resolve-hook", "killed by signal 9"),
    ("exit 0", "resolve-hook", "no `url:` line"),
    ("echo; echo 'url: t0ken'", "resolve-hook", "line 2: url: no scheme"),
    ("echo http://t0ken; echo t0ken: 1", "resolve-hook", "line 2: neither a URL nor"),
    ("echo http://h/; echo attempts: 1", "resolve-hook", "line 2: neither a URL nor"),
    ("echo http://h/; echo 'header: t0ken'", "resolve-hook", "line 2: header: needs a name"),
    ("echo http://h/; echo 'header: Range: bytes=0-'", "resolve-hook", "line 2: header: range is set by the worker"),
    ("echo http://h/; echo 'size: t0ken'", "resolve-hook", "line 2: size: must be"),
    ("echo http://h/; echo 'size: 8'", "resolve-hook", "another size than the job declares"),
    ("echo http://h/; printf 'md5: \\001'", "resolve-hook", "line 2: control bytes"),
    ("echo ftp://h/t0ken", "protocol", "not enabled"),
    ("echo http://h/t0ken; head -c 70000 /dev/zero", "resolve-hook", "more than 64 KiB"),
  ])
  func itsFailureIsOfTheJob(script: String, code: String, reason: String) async throws {
    let spool = try TemporarySpool()
    try spool.install("resolve", script)
    try spool.drop("a", "resolve: x\noutput: a\nsize: 7\n")
    let result = try await spoolrun("--once", spool.root)
    let isTemporary = code == "resolve-hook"
    #expect(result.status == .exited(isTemporary ? 75 : 1), "\(result)")
    let record = try spool.lastFailure(isTemporary ? "partial/a" : "failed/a")
    #expect(record["code"] == code && record["reason"]?.contains(reason) == true, "\(record)")
    #expect(try spool.files(with: ["t0ken"], except: []) == [] && !result.errors.contains("t0ken"), "\(result)")
  }

  @Test func withoutTheHookTheJobIsGivenUp() async throws {
    let spool = try TemporarySpool()
    try spool.drop("a", "output: a\nresolve: x\n")
    try await spoolrun("--once", spool.root).exits(1, saying: "hooks/resolve")
    #expect(try spool.lastFailure("failed/a")["line"] == "2")
    try spool.install("resolve", "echo http://h/")
    try #require(chmod(spool.path("hooks/resolve"), 0o722) == 0)
    try await runTool([productPath("spoolrun"), "retry", "--spool", spool.root, "a"])
    try await spool.once(exits: 75)
    #expect(try spool.lastFailure("partial/a")["reason"]?.contains("chmod go-w") == true)
  }

  /// A plain header could go to any host that a dropper names.
  @Test func aHeaderWithoutAHostIsRefused() async throws {
    let server = try simpleServer()
    let spool = try spool("header: Authorization: Bearer t0ken")
    try spool.drop("a", "url: \(server.url("/a"))\nresolve: x\n")
    try await spool.once(exits: 75)
    #expect(try spool.lastFailure("partial/a")["reason"]?.contains("header@") == true && server.requests.isEmpty)
  }

  @Test(arguments: ["resolve: x\n", "resolve: x\noutput: d/\n", "resolve: x\nresolve: y\noutput: a\n"])
  func aJobWithoutAURLNamesItsFile(job: String) async throws {
    let spool = try TemporarySpool()
    try spool.drop("a", job)
    try await spool.once(exits: 1)
    #expect(try spool.lastFailure("failed/a")["code"] == "malformed")
  }

  @Test(arguments: [true, false])
  func aStopEndsIt(isByGesture: Bool) async throws {
    let spool = try TemporarySpool()
    try spool.install("resolve", "echo $$ >\"$SPOOLRUN_SPOOL/pid\"; exec sleep 600")
    try spool.drop("a", "resolve: x\noutput: a\n")
    let worker = try startSpoolrun(["--once", spool.root])
    try await waitUntil("the hook runs") { spool.told("pid").count == 1 }
    if isByGesture { try spool.move(try spool.claim(of: "a"), "hold/a") } else { worker.send(signal: SIGTERM) }
    let result = try await worker.result()
    #expect(result.status == .exited(isByGesture ? 0 : 75) && result.errors == "", "\(result)")
    let pid = try #require(spool.told("pid").first.flatMap { pid_t($0) })
    try await waitUntil("it is gone") { try isProcessGroupGone(pid) }
    let place = isByGesture ? "hold/a" : "partial/a"
    #expect(try spool.lines(place).count { $0.key == "failed" } == 0)
  }

  @Test func addTakesIt() async throws {
    let spool = try TemporarySpool()
    func add(_ arguments: String...) async throws -> CommandResult {
      try await spoolrun(["add", "--spool", spool.root] + arguments)
    }
    #expect(try await add("--resolve", "s3 bucket/key", "-o", "d/key").output == "key\n")
    #expect(try spool.lines("new/key").map(\.text) == ["resolve: s3 bucket/key", "output: d/key"])
    #expect(try await add("--new", "--resolve", "s3 bucket/key", "-o", "d/key", "--name", "k").output == "key\n")
    try await add("--resolve", "x").exits(64)
    try await add("--remote-name", "--resolve", "x", "-o", "a").exits(64)
  }
}
