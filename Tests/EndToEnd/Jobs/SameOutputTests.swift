import Glibc
import TestSupport
import Testing

/// Outputs whose name is taken, or gets taken.
@Suite struct SameOutputTests {
  private let server: ScriptedServer
  private let spool: TemporarySpool

  init() throws { (server, spool) = (try simpleServer(), try TemporarySpool()) }

  /// As with `wget -P`; before anything is fetched.
  @Test(arguments: ["", "overwrite: yes\n"])
  func aDirectoryIsNoOutput(more: String) async throws {
    try #require(mkdir(spool.path("files/sets"), 0o700) == 0)
    try spool.drop("a", "url: \(server.url("/x"))\noutput: sets\n\(more)")
    try await spoolrun("--once", spool.root).exits(1, saying: "sets is a directory")
    #expect(try spool.lastFailure("failed/a")["code"] == "bad-output" && server.requests.isEmpty)
  }

  /// By another job, or by a worker that thought this one dead: the very same file is no failure, another is. Without a
  /// declared digest, too.
  @Test(arguments: [true, false], ["", "crc32: \(hex8(independentCRC32(halfwayBody)))\n"])
  func aFileThatComesMeanwhile(isSame: Bool, digest: String) async throws {
    let (spool, server, worker, gate) = try await startHalfway(digest)
    try spool.write("files/a", isSame ? halfwayBody : [1])
    gate.open()
    try await worker.result().exits(isSame ? 0 : 1)
    #expect(spool.places(of: "a") == [isSame ? "done/a" : "failed/a"])
    #expect(try spool.payload("a") == (isSame ? halfwayBody : [1]))
    #expect(server.requests.count == 1)
    guard isSame else { return }
    #expect(try spool.lines("done/a").last?["existing"] == "yes" && spool.names("partial") == [])
  }

  /// After `rm cur/a:*` in the middle of a commit, data and payload are one file: that is not what a new job wants to
  /// be fetched.
  @Test func olderDataThatIsTheOutputIsReplaced() async throws {
    try spool.write("files/a", "old")
    try #require(link(spool.path("files/a"), spool.path("partial/a.part")) == 0)
    try spool.drop("a", "url: \(server.url("/a"))\noverwrite: yes\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && server.requests.count == 1, "\(result)")
    #expect(try spool.payload("a") == Array("payload\n".utf8))
  }

  /// A server that has the same under every name but `/other`, and holds every first answer until the gate opens.
  private func gatedServer(_ gate: Gate) throws -> ScriptedServer {
    try ScriptedServer { request, reply in
      let body = Array((request.target.hasPrefix("/other") ? "other bytes\n" : "payload\n").utf8)
      try reply.head("200 OK", ["ETag: \"v1\"", "Content-Length: \(body.count)"])
      try reply.stall(until: gate)
      try reply.send(body)
    }
  }

  private static let sum = "crc32: \(hex8(independentCRC32(Array("payload\n".utf8))))\n"

  /// - Parameter fate: what becomes of the second job.
  @Test(arguments: [
    // The same URLs, dropped while the first runs: the same bytes.
    ("/x", "", true), ("/y", sum, true), ("/other", "crc32: 00000000\n", false), ("/other", "", false),
    // Other header lines may be other credentials.
    ("/x", "header: X-Key: 1\n", false),
  ])
  func theSecondWaitsForTheFirst(target: String, more: String, isDone: Bool) async throws {
    let gate = try Gate()
    let server = try gatedServer(gate)
    try spool.drop("a", "url: \(server.url("/x"))\noutput: sets/o\n\(patient)")
    let worker = try startSpoolrun(["-v", spool.root])
    try await waitUntil("the first runs") { server.requests.count == 1 }
    try spool.drop("b", "url: \(server.url(target))\noutput: sets/o\n\(patient)\(more)")
    // One that comes later, and does not have to wait.
    try spool.drop("c", "\(server.url("/c"))\n\(patient)")
    try await waitUntil("another runs beside it") { server.requests.count == 2 }
    #expect(spool.places(of: "b") == ["new/b"])
    gate.open()
    try await waitUntil("all are at their end") { spool.names("done").count + spool.names("failed").count == 3 }
    try await worker.stop().exits(isDone ? 0 : 1)
    #expect(spool.places(of: "b") == [isDone ? "done/b" : "failed/b"])
    #expect(server.requests.map(\.target) == ["/x", "/c"], "nothing is fetched twice")
    #expect(try spool.payload("sets/o") == Array("payload\n".utf8))
    if isDone {
      #expect(try spool.lines("done/b").last?["existing"] == "yes")
    } else {
      let record = try spool.lastFailure("failed/b")
      #expect(record["code"] == "output-exists")
      #expect(record["reason"]?.contains("as the output of done/a") == true, "\(record)")
    }
    try await spoolrun("clean", spool.root).exits(0)
    #expect(spool.names("partial") == [] && spool.names("tmp") == [])
  }

  /// What nothing proves of the data is not proven of the other file, until the job declares it.
  @Test func theSameBytesOfUnprovenLength() async throws {
    let server = try ScriptedServer { [path = spool.path("files/a")] _, reply in
      try? writeFile(path, Array("payload\n".utf8))
      try reply.head("200 OK", ["Connection: close"])
      try reply.send("payload\n")
      try reply.finish()
    }
    try spool.drop("a", "url: \(server.url("/a"))\n")
    for (more, unproven) in [("", "length"), ("", "length"), (Self.sum, nil)] {
      if spool.names("done") == ["a"] {
        try spool.write("done/a", Array(more.utf8) + readFile(spool.path("done/a")))
        try spool.move("done/a", "new/a")
      }
      try await spool.once(exits: 0)
      let lines = try spool.lines("done/a")
      #expect(lines.last?["existing"] == "yes" && lines.last?["unproven"] == unproven, "\(lines)")
      #expect(lines.last { $0.key == "verified" }?["unproven"] == unproven)
    }
    #expect(server.requests.count == 1)
  }

  /// A job that is dropped when the other is done asks for the file as it is now.
  @Test func aLaterJobIsNotGivenTheEarlierFile() async throws {
    try spool.drop("a", "url: \(server.url("/x"))\noutput: o\n")
    try await spool.once(exits: 0)
    // Receipts have whole seconds.
    let end = time(nil)
    try await waitUntil("the next second") { time(nil) > end }
    try spool.drop("b", "url: \(server.url("/x"))\noutput: o\n")
    try await spool.once(exits: 1)
    let record = try spool.lastFailure("failed/b")
    #expect(record["code"] == "output-exists")
    #expect(record["reason"]?.contains("as the output of done/a") == true, "\(record)")
    #expect(server.requests.count == 1)
  }

  /// With --once as well: the run ends when both have.
  @Test func inOneRunOneAfterTheOther() async throws {
    for name in ["a", "b", "c", "d"] { try spool.drop(name, "url: \(server.url("/x"))\noutput: o\n\(Self.sum)") }
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && spool.names("done") == ["a", "b", "c", "d"], "\(result)")
    #expect(server.requests.count == 1)
  }

  /// The first fails: the second is not kept from what the first could not do.
  @Test func theSecondGoesOnWhereTheFirstFails() async throws {
    try spool.drop("a", "url: \(server.url("/404"))\noutput: o\n")
    try setModificationTime(spool.path("new/a"), secondsFromNow: -60)
    try spool.drop("b", "url: \(server.url("/x"))\noutput: o\n")
    try await spool.once(exits: 1)
    #expect(spool.places(of: "a") == ["failed/a"] && spool.places(of: "b") == ["done/b"])
  }

  /// Another worker has the first.
  @Test(arguments: [("/y", sum), ("/x", "")])
  func theFirstOfAnotherWorker(target: String, more: String) async throws {
    let gate = try Gate()
    let server = try gatedServer(gate)
    try spool.drop("a", "url: \(server.url("/x"))\noutput: o\n\(patient)")
    let first = try startSpoolrun(["--once", spool.root])
    try await waitUntil("the first runs") { server.requests.count == 1 }
    try spool.drop("b", "url: \(server.url(target))\noutput: o\n\(patient)\(more)")
    let result = try await spoolrun("--once", "-v", spool.root)
    #expect(
      result.status == .exited(75) && result.errors.contains("waits-for-output job=b output=o other=a"), "\(result)")
    #expect(server.requests.count == 1 && spool.places(of: "b") == ["partial/b"])
    gate.open()
    try await first.result().exits(0)
    // On a busy machine its pause is over before the first ends, whose worker then does it.
    if spool.names("done") == ["a"] { try spool.makeDue("b") }
    try await spool.once(exits: 0)
    #expect(server.requests.count == 1)
    #expect(try spool.lines("done/b").last?["existing"] == "yes" && spool.names("partial") == [])
  }
}
