import Glibc
import TestSupport
import Testing

/// Interruption: by signals that ask, and by one that does not.
@Suite struct StopTests {
  /// It stops within a second. The transfer would stall for the hour of its idle time-out, so the margin for a busy
  /// machine still tells the two apart.
  private static let limit = untilItHangs

  @Test(arguments: [SIGTERM, SIGINT, SIGHUP])
  func aStopParksTheJob(signal: Int32) async throws {
    let (spool, server, worker, _) = try await startHalfway()
    let before = ContinuousClock.now
    let result = try await worker.stop(signal)
    #expect(ContinuousClock.now - before < Self.limit)
    #expect(result.status == .exited(75), "\(result)")
    #expect(result.output == "" && result.errors == "", "a stop is no failure: \(result)")

    #expect(spool.places(of: "a") == ["partial/a"])
    let line = try #require(try spool.lines("partial/a").last)
    #expect(line.key == "interrupted" && line["attempt"] == "1")
    #expect(line["at"] == "\(halfwayBody.count / 2)")
    #expect(line["crc32"] == hex8(independentCRC32(halfwayBody[..<(halfwayBody.count / 2)])))

    let again = resumePoint(after: halfwayBody.count / 2)
    // It is due at once, goes on from there, and the stop cost no attempt.
    try await spool.once(exits: 0)
    #expect(server.requests.map(\.rangeStart) == [nil, again])
    #expect(try spool.payload("a") == halfwayBody)
    let done = try #require(try spool.lines("done/a").last)
    let fetched = halfwayBody.count + halfwayBody.count / 2 - again
    #expect(done["attempts"] == "1" && done["bytes-fetched"] == "\(fetched)")
  }

  /// A write that fails after the stop leaves other bytes on the disk, and perhaps nobody hears of it. No digest is
  /// declared.
  @Test(.enabled("needs a disk") { try await Need.disk.isMet() })
  func whatTheDiskLostIsFetchedAgain() async throws {
    let (spool, server, worker, gate) = try await startHalfway()
    try await worker.stop().exits(75)
    gate.open()
    // On a busy machine there was time for a checkpoint, and what is on the disk is believed.
    let job = try spool.text("partial/a")
    let lines = job.split(separator: "\n").filter { !$0.hasPrefix("checkpoint: ") }
    try spool.write("partial/a", lines.joined(separator: "\n") + "\n")
    let data = open(spool.path("partial/a.part"), O_WRONLY | O_CLOEXEC)
    defer { close(data) }
    try #require(pwrite(data, [halfwayBody[100] ^ 1], 1, 100) == 1)
    try #require(fsync(data) == 0)
    // What is in the cache is what was written. Pages that the kernel is using stay (posix_fadvise(2)).
    try await waitUntil("the data has left the page cache") {
      try #require(posix_fadvise(data, 0, 0, POSIX_FADV_DONTNEED) == 0)
      return try cachedBytes(of: spool.path("partial/a.part")) == 0
    }

    let result = try await spool.once(exits: 0)
    #expect(result.errors.contains("a: data-lost: the data is not what was written"), "\(result)")
    #expect(server.requests.map(\.rangeStart) == [nil, nil])
    #expect(try spool.payload("a") == halfwayBody)
  }

  /// As nohup(1) leaves it, and a shell that puts a command into the background.
  @Test(arguments: [(SIGHUP, "HUP"), (SIGINT, "INT")])
  func whatIsIgnoredAtTheStartIsIgnored(signal: Int32, name: String) async throws {
    let (spool, server, worker, gate) = try await startHalfway(
      prefix: ["/bin/sh", "-c", "trap '' \(name); exec \"$@\"", "sh"])
    defer { withExtendedLifetime(server) {} }
    worker.send(signal: signal)
    gate.open()
    try await worker.result().exits(0)
    #expect(try spool.payload("a") == halfwayBody)
  }

  /// Jobs that were not begun stay where they are.
  @Test func aStopBeginsNothingNew() async throws {
    let gate = try Gate()
    let server = try halfwayServer(halfwayBody, gate: gate)
    let spool = try TemporarySpool()
    for number in 0..<10 { try spool.drop("job-\(number)", "\(server.url("/\(number)"))\n\(patient)") }
    let worker = try startSpoolrun(["--once", "--jobs", "2", spool.root])
    try await waitUntil("two are under way") { server.requests.count == 2 && spool.names("cur").count == 2 }
    try await worker.stop().exits(75)
    #expect(spool.names("new").count == 8 && spool.names("cur") == [])
    #expect(spool.names("partial").filter { !$0.hasSuffix(".part") }.count == 2)
    #expect(server.requests.count == 2)
  }

  @Test func killedAndResumed() async throws {
    let (spool, server, worker, _) = try await startHalfway()
    #expect(try await worker.stop(SIGKILL).status == .killed(signal: SIGKILL))
    #expect(spool.places(of: "a").first?.hasPrefix("cur/a:") == true)
    #expect(spool.payloads == [])

    try await spool.once(exits: 0)
    #expect(server.requests.map(\.rangeStart) == [nil, resumePoint(after: halfwayBody.count / 2)])
    #expect(server.requests[1].value("if-range") == "\"v1\"")
    #expect(try spool.payload("a") == halfwayBody)
    #expect(spool.names("partial") == [] && spool.names("cur") == [] && spool.names("tmp") == [])
    let verified = try #require(try spool.lines("done/a").last { $0.key == "verified" })
    #expect(verified["crc32"] == hex8(independentCRC32(halfwayBody)) && verified["size"] == "\(halfwayBody.count)")
  }

  /// Killed again and again, it still gets there, and what is fetched in all stays bounded.
  @Test func killedManyTimes() async throws {
    let step = 200_000
    let body = halfwayBody
    let server = try ScriptedServer { request, reply in
      let start = request.rangeStart ?? 0
      let range = start > 0 ? ["Content-Range: bytes \(start)-\(body.count - 1)/\(body.count)"] : []
      try reply.head(
        start > 0 ? "206 Partial Content" : "200 OK", ["ETag: \"v1\"", "Content-Length: \(body.count - start)"] + range)
      try reply.send(body[start..<min(start + step, body.count)])
      if start + step < body.count { try reply.stall() }
    }
    let spool = try TemporarySpool()
    try spool.drop("a", "\(server.url("/a"))\n\(patient)")
    var starts = [0]
    while starts[starts.count - 1] + step < body.count {
      let worker = try startSpoolrun(["--once", spool.root])
      let length = starts[starts.count - 1] + step
      try await waitUntil("piece \(starts.count)") { spool.length("partial/a.part") == length }
      starts.append(resumePoint(after: length))
      try await worker.stop(SIGKILL)
      #expect(spool.places(of: "a").count == 1)
    }
    try await spool.once(exits: 0)
    #expect(server.requests.map { $0.rangeStart ?? 0 } == starts)
    #expect(try spool.payload("a") == body)
  }
}
