import Glibc
import Synchronization
import TestSupport
import Testing

/// A server that asks for a pause, or cannot be reached, is left alone by all jobs, and costs none of them an attempt.
@Suite struct RestingServerTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  /// Answers so many requests, and 429 from then on.
  private func server(_ served: Int, retryAfter: String) throws -> ScriptedServer {
    let count = Atomic<Int>(0)
    return try ScriptedServer { _, reply in
      if count.add(1, ordering: .relaxed).newValue <= served {
        return try reply.respond("200 OK", ["ETag: \"1\""], body: Array("data".utf8))
      }
      try reply.respond("429 Too Many Requests", ["Retry-After: \(retryAfter)"], body: [])
    }
  }

  private func lostAttempts(_ spool: TemporarySpool) throws -> [String] {
    try spool.names("partial").filter { name in
      try spool.lines("partial/\(name)").contains { $0.key == "failed" && $0.fields["burned"] != "no" }
    }
  }

  @Test func `the jobs of the server wait, and those of others do not`() async throws {
    let (busy, other) = (try server(5, retryAfter: "600"), try simpleServer())
    for number in 0..<60 { try spool.drop("busy-\(number)", "\(busy.url("/\(number)"))\n") }
    for number in 0..<20 { try spool.drop("other-\(number)", "\(other.url("/o\(number)"))\n") }
    let result = try await spool.once("-v", exits: 75)
    // Those that were under way when the first 429 came.
    #expect(busy.requests.count <= 9, "\(busy.requests.count)")
    #expect(spool.names("done").count == 25 && spool.names("new").count >= 51)
    #expect(try lostAttempts(spool) == [])
    #expect(result.errors.contains("server-rests") && result.errors.contains("waiting"), "\(result.errors)")
  }

  @Test func `a quota is used, and no attempt is lost to it`() async throws {
    let quota = Mutex((second: 0, left: 0))
    let refused = Atomic<Int>(0)
    let server = try ScriptedServer { _, reply in
      let isServed = quota.withLock { quota in
        if quota.second != time(nil) / 2 { quota = (time(nil) / 2, 20) }
        quota.left -= 1
        return quota.left >= 0
      }
      if isServed { return try reply.respond("200 OK", ["ETag: \"1\""], body: Array("data".utf8)) }
      refused.add(1, ordering: .relaxed)
      try reply.respond("429 Too Many Requests", ["Retry-After: \(2 - time(nil) % 2)"], body: [])
    }
    for number in 0..<100 { try spool.drop("job-\(number)", "\(server.url("/\(number)"))\nattempts: 1\n") }
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && spool.names("done").count == 100, "\(result)")
    let count = refused.load(ordering: .relaxed)
    #expect(count <= 20, "\(count)")
    #expect(result.errors.split(separator: "\n").count == 1, "one line: \(result.errors)")
  }

  @Test func `a server that cannot be reached is tried by few`() async throws {
    let dead = try DeadPort()
    let other = try simpleServer()
    for number in 0..<50 { try spool.drop("dead-\(number)", "http://127.0.0.1:\(dead.port)/\(number)\nattempts: 1\n") }
    for number in 0..<20 { try spool.drop("other-\(number)", "\(other.url("/o\(number)"))\n") }
    let result = try await spool.once(exits: 75)
    #expect(spool.names("done").count == 20 && spool.names("failed") == [])
    #expect(spool.names("new").count >= 45, "they were not touched")
    #expect(try lostAttempts(spool) == [])
    #expect(result.errors.split(separator: "\n").count == 1, "one line: \(result.errors)")
  }

  /// The job that asks first has much of the file, and the server begins anew.
  @Test func `a probe that starts over keeps nobody`() async throws {
    let (body, gate) = ([UInt8](repeating: 7, count: 300_000), try Gate())
    let server = try ScriptedServer { request, reply in
      if request.target == "/small" { return try reply.respond("200 OK", body: Array("data".utf8)) }
      let count = request.nth == 1 ? 200_000 : 50_000
      try reply.head("200 OK", ["ETag: \"\(request.nth)\"", "Content-Length: \(body.count)"])
      try reply.send(body[..<count])
      try reply.stall(until: gate)
      try reply.send(body[count...])
    }
    try spool.drop("big", "\(server.url("/big"))\n\(patient)")
    let first = try startSpoolrun([spool.root])
    try await waitUntil("much has come") { fileStatus(spool.path("partial/big.part"))?.st_size == 200_000 }
    try await first.stop()
    let now = try await runTool(["/usr/bin/date", "-u", "+%FT%TZ"]).output.filter { $0 != "\n" }
    mkdir(spool.path("servers"), 0o700)
    let rest = "rests: \(now) failed=\(now) until=\(now) cause=unreachable code=connect failures=1 reason=x"
    try spool.write(file(server), "server: http://127.0.0.1:\(server.port)\n\(rest)\n")
    let worker = try startSpoolrun([spool.root])
    try await waitUntil("it probes") { server.requests(for: "/big").count == 2 }
    try spool.drop("small", "\(server.url("/small"))\n")
    try await waitUntil("another job is served") { spool.names("done") == ["small"] }
    #expect(server.requests(for: "/big").count == 2, "the probe is under way")
    gate.open()
    try await waitUntil("both are done") { spool.names("done").count == 2 }
    try await worker.stop()
  }

  /// Its data is complete, so its server is not asked, and has not answered.
  @Test func `a job that makes no request ends no rest`() async throws {
    let dead = try DeadPort()
    try spool.install("verify", "exit 1")
    let job = "url: http://127.0.0.1:\(dead.port)/a\ncrc32: \(hex8(independentCRC32(payload)))\n"
    try spool.addPartial("job", job: job, facts: PartialFacts(size: payload.count), part: payload)
    let now = try await runTool(["/usr/bin/date", "-u", "+%FT%TZ"]).output.filter { $0 != "\n" }
    mkdir(spool.path("servers"), 0o700)
    let path = spool.path("servers/http-127.0.0.1-\(dead.port)")
    let rest = "rests: \(now) failed=\(now) until=\(now) cause=unreachable code=connect failures=1 reason=x"
    try writeFile(path, "server: http://127.0.0.1:\(dead.port)\n\(rest)\n")
    let result = try await spoolrun("--once", "-v", spool.root)
    #expect(try spool.lastFailure("partial/job")["code"] == "rejected", "\(result)")
    #expect(!result.errors.contains("server-back"), "\(result)")
    #expect(try readText(path).contains("rests: "))
  }

  /// A job of two mirrors, over several connections, and the server of the first.
  /// - Parameter gate: the other one waits for it before its second answer.
  private func dropForBoth(
    _ spool: TemporarySpool, _ busy: ScriptedServer, gate: Gate? = nil
  ) async throws -> ScriptedServer {
    let other = try ScriptedServer { request, reply in
      if request.nth > 1, let gate, !gate.isOpen { try reply.stall(until: gate) }
      let (start, end) = (request.rangeStart ?? 0, request.rangeEnd ?? halfwayBody.count - 1)
      let range = "Content-Range: bytes \(start)-\(end)/\(halfwayBody.count)"
      try reply.respond("206 Partial Content", ["ETag: \"1\"", range], body: halfwayBody[start...end])
    }
    try spool.write("data", halfwayBody)
    let sum = try await runTool(["/usr/bin/sha256sum", spool.path("data")]).output.prefix { $0 != " " }
    let urls = [other, busy].map { "url: \($0.url("/a"))\n" }.joined()
    try spool.drop("job", "\(urls)connections: 4\nsha256: \(sum)\n")
    return other
  }

  /// Not by a job either that has begun elsewhere and has connections for all of its mirrors.
  @Test func `several connections leave out a mirror that rests`() async throws {
    let busy = try server(0, retryAfter: "600")
    try spool.drop("first", "\(busy.url("/first"))\n")
    try await spool.once(exits: 75)
    let other = try await dropForBoth(spool, busy)
    let result = try await spoolrun("--once", "--chunk-size", "50k", spool.root)
    #expect(spool.names("done") == ["job"] && busy.requests.count == 1, "\(result)")
    #expect(other.requests.count > 4)
  }

  /// One that refuses its last connection rests, and the job goes on with the others.
  @Test func `a mirror that refuses its last connection rests`() async throws {
    // Else the other one might bring all before this one is heard.
    let isHeard = try Gate()
    let busy = try ScriptedServer { _, reply in
      try reply.respond("429 Too Many Requests", ["Retry-After: 600"], body: [])
      isHeard.open()
    }
    let other = try await dropForBoth(spool, busy, gate: isHeard)
    let result = try await spoolrun("--once", "-v", "--chunk-size", "50k", spool.root)
    #expect(other.requests.count > 4)
    #expect(spool.names("done") == ["job"] && (1...2).contains(busy.requests.count), "\(result)")
    #expect(try spool.text(file(busy)).contains("cause=asked"), "\(result)")
  }

  @Test func `jobs with another mirror go there`() async throws {
    let (busy, other) = (try server(0, retryAfter: "600"), try simpleServer())
    for number in 0..<40 {
      try spool.drop("job-\(number)", "url: \(busy.url("/\(number)"))\nurl: \(other.url("/\(number)"))\n")
    }
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && spool.names("done").count == 40, "\(result)")
    #expect(busy.requests.count <= 5, "\(busy.requests.count)")
  }

  /// A redirect may lead anywhere, so one that leads to a dead server stops nobody else, and costs no attempt either.
  @Test func `a redirect to a dead server`() async throws {
    let dead = try DeadPort()
    let target = "Location: http://127.0.0.1:\(dead.port)/x"
    let server = try ScriptedServer { request, reply in
      if request.target.hasPrefix("/away") { return try reply.respond("302 Found", [target], body: []) }
      try reply.respond("200 OK", ["ETag: \"1\""], body: Array("data".utf8))
    }
    for number in 0..<20 { try spool.drop("job-\(number)", "\(server.url("/\(number)"))\n") }
    try spool.drop("away", "url: \(server.url("/away"))\nattempts: 1\n")
    let result = try await spoolrun("--once", "-v", spool.root)
    #expect(result.status == .exited(75) && !result.errors.contains("server-rests"), "\(result)")
    #expect(spool.names("done").count == 20)
    let record = try spool.lastFailure("partial/away")
    #expect(record["code"] == "connect" && record["burned"] == "no", "\(record)")
    // Several in a row do.
    for number in 0..<20 { try spool.drop("away-\(number)", "\(server.url("/away/x\(number)"))\n") }
    try await spoolrun("--once", "-v", spool.root).exits(75, saying: "server-rests")
    #expect(server.requests.count <= 30 && spool.names("new").count >= 12, "\(server.requests.count)")
  }

  /// What another mirror says for good does not end a job whose server only rests.
  @Test func `a job waits for the server that rests`() async throws {
    let (busy, other) = (try server(0, retryAfter: "600"), try simpleServer())
    for number in 0..<9 {
      try spool.drop("job-\(number)", "url: \(busy.url("/\(number)"))\nurl: \(other.url("/404"))\noutput: \(number)\n")
    }
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(75) && spool.names("failed") == [], "\(result)")
    #expect(try lostAttempts(spool) == [])
  }

  @Test func `a dead worker's claim is taken over, and waits`() async throws {
    let busy = try server(0, retryAfter: "600")
    for number in 0..<9 { try spool.drop("job-\(number)", "\(busy.url("/\(number)"))\n") }
    try spool.write("cur/dead:elsewhere.1.00000000", "\(busy.url("/dead"))\n")
    try setModificationTime(spool.path("cur/dead:elsewhere.1.00000000"), secondsFromNow: -1000)
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(75) && spool.names("cur") == [], "\(result)")
  }

  // MARK: servers are files

  private func file(_ server: ScriptedServer) -> String { "servers/http-127.0.0.1-\(server.port)" }

  /// A later run does not ask before the time; a touch or an rm lets it. Nothing makes the rest longer.
  @Test(arguments: ["touch", "rm", "mv", "longer", "junk", "retry --server", "retry NAME"])
  func `a later run knows that the server rests`(gesture: String) async throws {
    let busy = try server(1, retryAfter: "600")
    for number in 0..<20 { try spool.drop("job-\(number)", "\(busy.url("/\(number)"))\n") }
    try await spool.once(exits: 75)
    let asked = busy.requests.count
    let path = spool.path(file(busy))
    let text = try readText(path)
    #expect(text.contains("server: http://127.0.0.1:\(busy.port)\nrests: ") && text.contains("cause=asked"), "\(text)")
    let end = Int(try #require(fileStatus(path)).st_mtim.tv_sec)
    #expect((60...700).contains(end - time(nil)), "its time is the end: \(text)")
    let later = try await spoolrun("--once", spool.root)
    #expect(later.status == .exited(75) && later.errors == "" && busy.requests.count == asked, "\(later)")
    switch gesture {
    case "touch": try setModificationTime(path, secondsFromNow: -1)
    case "rm": try await runTool(["/usr/bin/rm", path])
    case "mv": try await runTool(["/usr/bin/mv", path, path + "-old"])
    case "junk": try writeFile(path, "junk\n")
    case "retry --server":
      try await spoolrun("retry", "--spool", spool.root, "--server", "127.0.0.1").exits(0)
    case "retry NAME":
      let name = try #require(spool.names("partial").first)
      try await spoolrun("retry", "--spool", spool.root, name).exits(0)
    default: try setModificationTime(path, secondsFromNow: 100_000)
    }
    let last = try await spool.once(exits: 75)
    let more = busy.requests.count - asked
    // Those that were made due within a second of the failure ask, too.
    #expect(gesture == "longer" ? more == 0 : (1...8).contains(more), "\(more)")
    #expect((gesture == "mv" || gesture == "junk") == last.errors.contains("no file of a worker"), "\(last)")
    #expect(try readText(path).hasPrefix("server: "), "it is there again")
  }

  @Test func `a job whose time is over does not wait`() async throws {
    let busy = try server(0, retryAfter: "600")
    try spool.drop("first", "\(busy.url("/first"))\n")
    try await spool.once(exits: 75)
    try spool.drop("late", "url: \(busy.url("/late"))\nexpires: 2001-01-01\n")
    try await spool.once(exits: 1)
    #expect(try spool.lastFailure("failed/late")["code"] == "expired" && busy.requests.count == 1)
  }

  /// Another host may have a route that this one lacks.
  @Test func `what one host cannot reach says nothing about another`() async throws {
    let dead = try DeadPort()
    for number in 0..<9 { try spool.drop("job-\(number)", "http://127.0.0.1:\(dead.port)/\(number)\n") }
    for (host, isAsked) in [("a", true), ("a", false), ("b", true)] {
      let result = try await spoolrun("--once", "--host-id", host, spool.root)
      #expect(result.status == .exited(75) && result.errors.isEmpty == !isAsked, "\(host): \(result)")
      let path = spool.path("servers/http-127.0.0.1-\(dead.port)")
      let text = try readText(path)
      #expect(text.contains("cause=unreachable") && text.contains(" host=\(host) "), "\(text)")
      // However long this test takes.
      try writeFile(path, text.replacing(/until=[^ ]+/, with: "until=2099-01-01T00:00:00Z"))
      try setModificationTime(path, secondsFromNow: 1000)
    }
  }

  /// What one worker has heard holds for the other, and so does that the server is back.
  @Test func `two workers leave it alone together`() async throws {
    let served = Mutex(false)
    let busy = try ScriptedServer { _, reply in
      if served.withLock({ $0 }) { return try reply.respond("200 OK", ["ETag: \"1\""], body: Array("data".utf8)) }
      try reply.respond("429 Too Many Requests", ["Retry-After: 60"], body: [])
    }
    let workers = try (0..<2).map { _ in try startSpoolrun([spool.root]) }
    try spool.drop("first", "\(busy.url("/first"))\n")
    try await waitUntil("it rests") { spool.names("servers").count == 1 }
    for number in 0..<30 { try spool.drop("job-\(number)", "\(busy.url("/\(number)"))\n") }
    // Each may have sent what it had begun.
    try await Task.sleep(for: .seconds(3))
    #expect(busy.requests.count <= 9, "\(busy.requests.count)")
    served.withLock { $0 = true }
    try setModificationTime(spool.path(file(busy)), secondsFromNow: -1)
    try await waitUntil("all are done") { spool.names("done").count >= 30 }
    for worker in workers { worker.send(signal: SIGTERM) }
    for worker in workers { _ = try await worker.result() }
  }

  @Test func `status groups what waits by server`() async throws {
    let busy = try server(1, retryAfter: "600")
    for number in 0..<20 { try spool.drop("job-\(number)", "\(busy.url("/\(number)"))\n") }
    try await spool.once(exits: 75)
    let table = try await spoolrun("status", spool.root).output
    let line = table.split(separator: "\n").first { $0.contains(" has rested ") } ?? ""
    #expect(
      line.contains(
        /^127.0.0.1:\d+ has rested for [0-9ms]+, and is asked again in [0-9ms]+ \(429, asked by the server\): 19 jobs$/
      ),
      "\(table)")
    let json = try await spoolrun("status", "--json", spool.root).output
    #expect(
      json.contains(#""servers":[{"server":"http:"#) && json.contains(/"since":"[-0-9T:]*Z",.*"jobs":19/), "\(json)")
  }

  // MARK: patience

  @Test func `the server of a job's signature is waited for as long as the job's own`() async throws {
    let server = try ScriptedServer { try $1.respond("200 OK", body: payload) }
    let dead = try DeadPort()
    let since = try await runTool(["/usr/bin/date", "-u", "-d", "-3 days", "+%FT%TZ"]).output.filter { $0 != "\n" }
    try spool.write(
      "partial/job",
      """
      url: \(server.url("/data"))
      signature: http://127.0.0.1:\(dead.port)/data.sig
      patience: 2d
      failed: \(since) attempt=1 class=temporary code=connect at=0 retry=\(since) burned=no reason=x

      """)
    try await spool.once(exits: 1)
    #expect(try spool.lastFailure("failed/job")["code"] == "server-away")
  }

  /// A check without its end would count as the death of a worker, and the job that kills three is given up.
  @Test func `a subscription that waits for the server of its signature has ended its check`() async throws {
    let server = try simpleServer(Array("\(String(repeating: "a", count: 64))  x\n".utf8))
    let busy = try self.server(0, retryAfter: "600")
    try spool.drop("busy", "\(busy.url("/busy"))\n")
    _ = try await spoolrun("--once", spool.root)
    try spool.order("list", "url: \(server.url("/SHA256SUMS"))\nsignature: \(busy.url("/sig"))\nevery: 1h\n")
    for _ in 1...2 {
      try spool.makeOrderDue("list")
      let result = try await spoolrun("--once", spool.root)
      #expect(spool.names("standing") == ["list"] && busy.requests.map(\.target) == ["/busy"], "\(result)")
    }
    let lines = try spool.lines("standing/list").map(\.key)
    #expect(lines.suffix(4) == ["started", "interrupted", "started", "interrupted"], "\(lines)")
  }

  /// As if the server had been away for three days: its jobs are given up together, and a person hears it once.
  @Test(arguments: [("", 0), ("patience: 2d\n", 20)])
  func `a server that is away for too long`(text: String, failed: Int) async throws {
    let dead = try DeadPort()
    try spool.write("defaults", text)
    let since = try await runTool(["/usr/bin/date", "-u", "-d", "-3 days", "+%FT%TZ"]).output.filter { $0 != "\n" }
    let url = "http://127.0.0.1:\(dead.port)"
    for number in 0..<20 {
      try spool.write(
        "partial/job-\(number)",
        """
        url: \(url)/\(number)
        failed: \(since) attempt=1 class=temporary code=connect at=0 retry=\(since) burned=no reason=x

        """)
    }
    try spool.install("failed", "echo x >>$SPOOLRUN_SPOOL/told")
    let result = try await spool.once(exits: failed > 0 ? 1 : 75)
    #expect(spool.names("failed").count == failed, "\(result)")
    if failed == 0 { return }
    #expect(try spool.lastFailure("failed/job-7")["code"] == "server-away")
    #expect(result.errors.split(separator: "\n").count == 2, "the rest and the end: \(result.errors)")
    #expect(result.errors.contains("has answered nobody since \(since)"), "\(result.errors)")
    #expect(try readFile(spool.path("told")) == Array("x\n".utf8), "one call of the hook")
  }
}
