import Glibc
import TestSupport
import Testing

@testable import spoolrun

/// `spoolrun get` in a spool that others use as well: a worker, another command, other jobs.
@Suite struct GetBesideWorkerTests: GetScene {
  let home: TemporaryDirectory

  init() throws {
    home = try Self.makeHome()
    try #require(mkdir("\(home.path)/.local", 0o700) == 0 && mkdir(state, 0o700) == 0)
  }

  /// What ``GetScene`` asks for, with a spool that a worker can have.
  var spool: String { personal }

  func start(_ arguments: [String]) throws -> RunningCommand {
    try startSpoolrun(["get", "--spool", spool] + arguments, environment: environment, directory: here)
  }

  func get(_ arguments: String...) async throws -> CommandResult { try await start(arguments).result() }

  @Test func `a worker that watches the spool does the work`() async throws {
    let gate = try Gate()
    let server = try halfwayServer(halfwayBody, gate: gate)
    try await spoolrun("init", spool).exits(0)
    let worker = try startSpoolrun(["-v", spool])
    try await waitForWorker()
    let log = "\(home.path)/log"
    let command = try startSpoolrun(
      ["get", "--spool", spool, "-v", "--timeout", "1h", server.url("/a")], environment: environment, directory: here,
      prefix: ["/bin/sh", "-c", "exec \"$@\" 2>\(log)", "sh"])
    @Sendable func said() -> String { (try? readFile(log)).map { String(decoding: $0, as: UTF8.self) } ?? "" }
    // Before it follows, a signal would end it otherwise.
    try await waitUntil("half of it is there, and it follows") {
      length == halfwayBody.count / 2 && said().contains("following its progress")
    }
    let claim = try #require(names(in: "\(spool)/cur").first)
    #expect(claim.contains(".\(worker.processID)."), "\(claim)")
    // Whoever only follows can go, and come again.
    try await command.stop(SIGINT).exits(75)
    #expect(said().contains("a: a worker of the spool goes on with it"), "\(said())")
    #expect(names(in: "\(spool)/cur") == [claim])
    let next = try start(["--timeout", "1h", server.url("/a")])
    gate.open()
    try await next.result().exits(0)
    #expect(try bytes("a") == halfwayBody && server.requests(for: "/a").count == 1)
    try await worker.stop()
  }

  /// Waits until the worker takes what is dropped.
  private func waitForWorker() async throws {
    try writeFile("\(spool)/new/bad", "no job\n")
    try await waitUntil("the worker runs") { names(in: "\(spool)/failed").contains("bad") }
  }

  @Test func `a worker that starts nothing is waited for as long as --patience says`() async throws {
    try await spoolrun("init", spool).exits(0)
    let worker = try startSpoolrun(["--gate", "false", spool])
    try await waitUntil("the worker runs") { !names(in: "\(spool)/workers").isEmpty }
    let result = try await get("--patience", "2s", "http://127.0.0.1:9/a").exits(75)
    #expect(names(in: "\(spool)/new").count == 1, "\(result)")
    try await worker.stop()
  }

  @Test func `a worker that is stopped is not waited for`() async throws {
    let server = try simpleServer()
    try await spoolrun("init", spool).exits(0)
    let worker = try startSpoolrun(["--lease", "5s", "-v", spool])
    defer { worker.send(signal: SIGKILL) }
    try await waitForWorker()
    worker.send(signal: SIGSTOP)
    let result = try await get("--patience", "60s", server.url("/a"))
    #expect(result.status == .exited(0) && fileStatus("\(here)/a") != nil, "\(result)")
  }

  @Test func `a worker that dies is not waited for`() async throws {
    let gate = try Gate()
    let server = try halfwayServer(halfwayBody, gate: gate)
    let first = try start(["--timeout", "1h", server.url("/a")])
    try await waitUntil("half of it is there") { length == halfwayBody.count / 2 }
    let log = "\(home.path)/log"
    let second = try startSpoolrun(
      ["get", "--spool", spool, "-v", "--timeout", "1h", server.url("/a")], environment: environment, directory: here,
      prefix: ["/bin/sh", "-c", "exec \"$@\" 2>\(log)", "sh"])
    try await waitUntil("it follows the other one") {
      ((try? readFile(log)).map { String(decoding: $0, as: UTF8.self) } ?? "").contains("following its progress")
    }
    try await first.stop(SIGKILL)
    gate.open()
    try await second.result().exits(0)
    #expect(try bytes("a") == halfwayBody)
    #expect(names(in: "\(spool)/done").count == 1)
  }

  @Test func `two commands for one file fetch it once`() async throws {
    let gate = try Gate()
    let server = try halfwayServer(halfwayBody, gate: gate)
    let commands = try (0..<4).map { _ in try start(["--timeout", "1h", server.url("/a")]) }
    try await waitUntil("half of it is there") { length == halfwayBody.count / 2 }
    gate.open()
    for command in commands {
      try await command.result().exits(0)
    }
    #expect(try bytes("a") == halfwayBody && server.requests.count == 1)
    #expect(names(in: "\(spool)/done").count == 1)
  }

  @Test func `a file that another command fetches keeps no other one waiting`() async throws {
    let gate = try Gate()
    let server = try ScriptedServer { request, reply in
      if request.target == "/big" { try reply.stall(until: gate) }
      try reply.respond("200 OK", body: [1])
    }
    let first = try start(["--timeout", "1h", server.url("/big")])
    try await waitUntil("it is asked for") { server.requests.count == 1 }
    let second = try start(["--timeout", "1h", server.url("/big"), server.url("/small")])
    try await waitUntil("the other file is there") { fileStatus("\(here)/small") != nil }
    gate.open()
    for command in [first, second] { try await command.result().exits(0) }
    #expect(server.requests(for: "/big").count == 1 && names(in: here) == ["big", "small"])
  }

  /// Another command has it locked before it shows that it runs it.
  @Test func `a job that another is about to take is not given up at once`() async throws {
    let server = try simpleServer()
    try await get("--once", server.url("/503")).exits(75)
    let job = "\(spool)/partial/\(try #require(names(in: "\(spool)/partial").first))"
    try setModificationTime(job, secondsFromNow: -60)
    let lock = open(job, O_RDONLY | O_CLOEXEC)
    try #require(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
    defer { close(lock) }
    let result = try await get("--once", server.url("/503"))
    #expect(result.status == .exited(75) && result.duration > .seconds(2), "\(result)")
    #expect(result.errors.contains("could not be fetched now"), "\(result)")
  }

  @Test func `other jobs of the spool are not this command's`() async throws {
    let server = try simpleServer()
    // Its next attempt is not due before the command has ended, as it may be after a 503.
    try await get("--once", server.url("/500")).exits(75)
    let waiting = try #require(names(in: "\(spool)/partial").first)
    try setModificationTime("\(spool)/partial/\(waiting)", secondsFromNow: -60)
    try writeFile("\(spool)/new/other", "\(server.url("/other"))\n")
    try await get(server.url("/a")).exits(0)
    #expect(names(in: "\(spool)/new") == ["other"] && names(in: "\(spool)/partial") == [waiting])
    #expect(server.requests.map(\.target) == ["/500", "/a"])
  }

  /// Otherwise the bar of the total shows a rate that no transfer has.
  @Test func `what a job has when it is first seen is no growth`() {
    var growth = FollowedGrowth()
    growth.note(24, of: 0)
    growth.note(30, of: 0)
    growth.note(100, of: 1)
    #expect(growth.sum == 6)
    growth.note(2, of: 0)
    growth.note(5, of: 0)
    #expect(growth.sum == 3, "begun anew")
  }
}
