import Glibc
import TestSupport
import Testing

/// What a person does with mv, rm and touch (INTERNALS.md, "Gestures").
@Suite struct GestureTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  private let half = halfwayBody.count / 2

  /// A worker that holds half of job `a`.
  private func halfway(_ body: @Sendable (TemporarySpool, ScriptedServer, RunningCommand, Gate) async throws -> Void)
    async throws
  {
    let (spool, server, worker, gate) = try await startHalfway()
    try await body(spool, server, worker, gate)
  }

  @Test func touchMakesDue() async throws {
    let server = try ScriptedServer { request, reply in
      if request.nth == 1 {
        try reply.respond("503 Busy", ["Retry-After: 3600"], body: [])
      } else {
        try reply.respond("200 OK", body: [1])
      }
    }
    try spool.drop("a", "\(server.url("/a"))\n")
    try await spool.once(exits: 75)
    let due = Int(try #require(fileStatus(spool.path("partial/a"))).st_mtim.tv_sec)
    let record = try spool.lastFailure("partial/a")
    #expect(secondsSinceEpoch(rfc3339: record["retry"] ?? "") == due, "the mtime repeats the record")
    let said = try #require(secondsSinceEpoch(rfc3339: record.words.first ?? ""))
    #expect(due - said == 3600)
    try await spool.once(exits: 0)
    #expect(server.requests.count == 1)

    try await runTool(["/usr/bin/touch", spool.path("partial/a")])
    try await spool.once(exits: 0)
    #expect(server.requests.count == 2 && spool.places(of: "a") == ["done/a"])
    #expect(try spool.lines("done/a").last?["attempts"] == "1", "a server that is busy costs none")
  }

  /// A worker that is killed between a failed fsync and its record tells nobody; wherever a person moves its claim,
  /// what it wrote stays in doubt.
  @Test(arguments: ["new", "partial"], [true, false])
  func aDeadWorkersClaimIsDoubtedWhereverItIsMoved(to place: String, isEnded: Bool) async throws {
    let worker = "\(try hostName()).1.0000000a"
    let time = "2026-11-21T03:00:00Z"
    var text = "url: http://127.0.0.1:9/a\nexpires: \(time)\n"
    text += "started: \(time) attempt=1 worker=\(worker) boot=b mirror=1 url=http://127.0.0.1:9/a\n"
    if isEnded { text += "interrupted: \(time) attempt=1 at=0 crc32=00000000 fetched=0 reason=stopped\n" }
    try spool.write("cur/a:\(worker)", text)
    try await runTool(["/bin/mv", spool.path("cur/a:\(worker)"), spool.path("\(place)/a")])
    try await runTool(["/usr/bin/touch", "-d", "@0", spool.path("\(place)/a")])
    let inode = try #require(fileStatus(spool.path("\(place)/a"))).st_ino
    try await spool.once(exits: 1)
    let record = try spool.lastFailure("failed/a")
    #expect(record["code"] == "expired" && record["doubt"] == (isEnded ? nil : "yes"))
    #expect(
      try #require(fileStatus(spool.path("failed/a"))).st_ino != inode || isEnded, "a journal in an inode of its own")
  }

  /// A fresh budget, and the data that is still there.
  @Test func failedToNewTriesAgain() async throws {
    let body = halfwayBody
    let half = half
    let server = try ScriptedServer { request, reply in
      switch request.nth {
      case 1:
        try reply.head("200 OK", ["ETag: \"v1\"", "Content-Length: \(body.count)"])
        try reply.send(body[..<half])
        try reply.reset()
      case 2: try reply.respond("404 Gone for now", body: [])
      default:
        let start = request.rangeStart ?? 0
        try reply.head(
          "206 Partial Content",
          [
            "ETag: \"v1\"", "Content-Length: \(body.count - start)",
            "Content-Range: bytes \(start)-\(body.count - 1)/\(body.count)",
          ])
        try reply.send(body[start...])
      }
    }
    try spool.drop("a", "url: \(server.url("/a"))\nattempts: 1\n")
    try await spool.once(exits: 1)
    #expect(spool.places(of: "a") == ["failed/a"] && spool.length("partial/a.part") == half)

    try spool.move("failed/a", "new/a")
    try await spool.once(exits: 0)
    #expect(server.requests.map(\.rangeStart) == [nil, resumePoint(after: half), resumePoint(after: half)])
    let lines = try spool.lines("done/a")
    #expect(lines.contains { $0.key == "requeued" })
    #expect(lines.last?["attempts"] == "1", "counted anew")
    #expect(lines.last?["bytes-fetched"] == "\(body.count - resumePoint(after: half))", "since it came anew")
    #expect(try spool.payload("a") == body)
  }

  @Test func holdPausesWithItsData() async throws {
    let half = half
    try await halfway { spool, server, worker, gate in
      try spool.move(try spool.claim(of: "a"), "hold/a")
      // With nothing left to do it ends, long before the transfer's time-out.
      let result = try await worker.result()
      #expect(result.status == .exited(0) && result.errors == "", "\(result)")
      #expect(spool.places(of: "a") == ["hold/a"] && spool.length("partial/a.part") == half)
      let line = try #require(try spool.lines("hold/a").last)
      #expect(line.key == "interrupted" && line["at"] == "\(half)")
      try await spool.once(exits: 0)
      #expect(server.requests.count == 1, "what is held is left alone")

      try spool.move("hold/a", "new/a")
      try await spool.once(exits: 0)
      #expect(server.requests.map(\.rangeStart) == [nil, resumePoint(after: half)])
      #expect(try spool.payload("a") == halfwayBody)
    }
  }

  /// A glob that leaves the claim's suffix on, as in `mv cur/a:* hold/`: it is the same job still, and goes on.
  @Test func heldUnderTheClaimsName() async throws {
    let half = half
    try await halfway { spool, server, worker, _ in
      let claim = try spool.claim(of: "a")
      let name = String(claim.dropFirst("cur/".count))
      try spool.move(claim, "hold/\(name)")
      try await worker.result().exits(0)
      #expect(spool.names("hold") == [name] && spool.names("cur") == [])
      try spool.move("hold/\(name)", "new/\(name)")
      try await spool.once(exits: 0)
      #expect(server.requests.map(\.rangeStart) == [nil, resumePoint(after: half)])
      #expect(spool.names("done") == ["a"])
    }
  }

  /// An editor that saves a running job in place takes its journal away: the job begins again as it is now, and no
  /// other job is harmed.
  @Test func savedInPlace() async throws {
    try await halfway { spool, server, worker, gate in
      let claim = try spool.path(spool.claim(of: "a"))
      // It sees the file before or after, and never empty.
      worker.send(signal: SIGSTOP)
      try writeFile(claim, "url: \(server.url("/a"))\noutput: edited\n")
      worker.send(signal: SIGCONT)
      gate.open()
      let result = try await worker.result().exits(0)
      #expect(spool.places(of: "a") == ["done/a"] && result.errors.contains("its file was changed"), "\(result)")
      #expect(try spool.payload("edited") == halfwayBody)
    }
  }

  @Test func removingCancels() async throws {
    try await halfway { spool, server, worker, _ in
      #expect(unlink(spool.path(try spool.claim(of: "a"))) == 0)
      let result = try await worker.result()
      #expect(result.status == .exited(0) && result.errors == "", "\(result)")
      for state in TemporarySpool.states + ["tmp", "files"] { #expect(spool.names(state) == [], "\(state)") }
      #expect(server.requests.count == 1)
    }
  }

  /// One is taken away, the others go on.
  @Test func aGestureConcernsOneJob() async throws {
    let gate = try Gate()
    let server = try halfwayServer(halfwayBody, gate: gate)
    for name in ["a", "b", "c"] { try spool.drop(name, "\(server.url("/\(name)"))\n\(patient)") }
    let worker = try startSpoolrun(["--once", spool.root])
    try await waitUntil("all are half there") {
      ["a", "b", "c"].allSatisfy { spool.length("partial/\($0).part") == half }
    }
    try spool.move(try spool.claim(of: "a"), "hold/a")
    #expect(unlink(spool.path(try spool.claim(of: "b"))) == 0)
    try await waitUntil("the worker sees both") {
      spool.length("partial/b.part") < 0 && (try? spool.lines("hold/a").last?.key) == "interrupted"
    }
    gate.open()
    try await worker.result().exits(0)
    #expect(spool.names("done") == ["c"] && spool.payloads == ["c"] && spool.names("hold") == ["a"])
  }

  /// A done job that is dropped again gets a receipt of its own, for what it says now.
  @Test func doneToNewRunsAgain() async throws {
    let server = try simpleServer()
    try spool.drop("a", "url: \(server.url("/a"))\noutput: first\n")
    try await spool.once(exits: 0)
    let text = try spool.text("done/a")
    try spool.write("tmp/a", text.replacing("output: first", with: "output: second"))
    try spool.move("tmp/a", "new/a")
    #expect(unlink(spool.path("done/a")) == 0)
    try await spool.once(exits: 0)
    #expect(spool.payloads == ["first", "second"])
    #expect(try spool.lines("done/a").last?["output"] == "second")
    try await spoolrun("verify", "--spool", spool.root).exits(0)
  }

  @Test func editedAndTriedAgain() async throws {
    let server = try simpleServer()
    try spool.drop("a", "url: \(server.url("/404"))\noutput: x\n")
    try await spool.once(exits: 1)
    let text = try spool.text("failed/a")
    try spool.write("tmp/a", text.replacing("/404", with: "/good"))
    try spool.move("tmp/a", "new/a")
    #expect(unlink(spool.path("failed/a")) == 0)
    try await spool.once(exits: 0)
    #expect(spool.payloads == ["x"])
  }
}
