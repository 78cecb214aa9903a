import Glibc
import TestSupport
import Testing

/// A script waits for its files.
@Suite struct WaitTests {
  private let server: ScriptedServer
  private let spool: TemporarySpool

  init() throws { (server, spool) = (try simpleServer(), try TemporarySpool()) }

  private func wait(_ arguments: String...) throws -> RunningCommand {
    try startSpoolrun(["wait", "--spool", spool.root] + arguments)
  }

  @Test func untilJobsAreDone() async throws {
    for name in ["a", "b"] { try spool.drop(name, server.url("/\(name)") + "\n") }
    try spool.move("new/b", "hold/b")
    let waiting = try wait("a", "new/b")
    try await spool.once(exits: 0)
    try await wait("a").result().exits(0)
    // Paused jobs are waited for by their names alone.
    try await wait("--all").result().exits(0)
    #expect(kill(waiting.processID, 0) == 0)
    try spool.move("hold/b", "new/b")
    try await spool.once(exits: 0)
    let result = try await waiting.result()
    #expect(result.status == .exited(0) && result.output + result.errors == "")
  }

  @Test func `the file of a job names it, too`() async throws {
    try spool.drop("a", "url: \(server.url("/x"))\noutput: sub/six.bin\n")
    try spool.drop("b", "url: \(server.url("/m.bin"))\n")
    let names = ["sub/six.bin", "m.bin", spool.path("files/m.bin")]
    for name in names {
      try await wait("--timeout", "1s", name).result().exits(75, saying: "is not done after 1s")
    }
    try await spool.once(exits: 0)
    for name in names { #expect(try await wait(name).result().status == .exited(0), "\(name)") }
    try await wait(names[0], names[1], "b").result().exits(0)
    try await wait("sub/seven.bin").result().exits(1, saying: "no such job")
  }

  @Test(arguments: ["wait", "verify", "explain"], ["x/", "../../x"])
  func `what is no name is no job's`(command: String, name: String) async throws {
    let scene = try Scene()
    for place in ["done/x", "done/archive/2026-11/y"] {
      try await runTool(["/usr/bin/install", "-D", "/dev/null", scene.spool.path(place)])
    }
    try await scene.spoolrun(command, name).exits(1)
  }

  @Test func jobsThatAreNotDone() async throws {
    try spool.drop("bad", server.url("/404") + "\n")
    try spool.drop("later", server.url("/x") + "\n")
    let time = try await wait("--timeout", "1s", "later").result()
    #expect(time.status == .exited(75) && time.errors.hasSuffix("later is not done after 1s\n"), "\(time)")
    let all = try await wait("--timeout", "1s", "--all").result()
    #expect(all.status == .exited(75) && all.errors.hasSuffix("jobs still wait or run after 1s\n"), "\(all)")
    let waiting = try wait("later", "bad")
    try await isLooking(waiting)
    try await spoolrun("cancel", "--spool", spool.root, "later").exits(0)
    try await spool.once(exits: 1)
    let result = try await waiting.result().exits(1)
    #expect(result.errors.contains("bad: was given up: `spoolrun explain --spool \(spool.root) bad` says why"))
    #expect(result.errors.contains("later: no such job"), "\(result)")
    try await wait("--all").result().exits(1, saying: "jobs were given up")
    try spool.drop("later", server.url("/x") + "\n")
    let both = try await wait("--timeout", "1s", "bad", "later").result()
    #expect(both.status == .exited(1) && both.errors.hasSuffix("later is not done after 1s\n"), "\(both)")
  }

  @Test func `a subscription has no end`() async throws {
    try spool.drop("feed", "url: http://127.0.0.1:9/f\nevery: 1h\n")
    try await wait("--timeout", "9s", "--all").result().exits(0)
    try await wait("--timeout", "1s", "feed").result().exits(64, saying: "feed is a subscription")
  }

  /// A receipt of the same name is that of an earlier life.
  @Test func theNewestLifeOfANameCounts() async throws {
    func drop(_ path: String) throws { try spool.drop("a", "\(server.url(path))\noutput: a\noverwrite: yes\n") }
    try drop("/1")
    try await spool.once(exits: 0)
    try await wait("a").result().exits(0)
    // It waits, and gets a number when it is done.
    try drop("/2")
    try await wait("--timeout", "1s", "a").result().exits(75)
    var waiting = try wait("a")
    try await isLooking(waiting)
    try await spool.once(exits: 0)
    try await waiting.result().exits(0)
    #expect(spool.names("done") == ["a", "a~2"])
    // It is cancelled.
    try drop("/3")
    waiting = try wait("a")
    try await isLooking(waiting)
    try await spoolrun("cancel", "--spool", spool.root, "new/a").exits(0)
    try await waiting.result().exits(1, saying: "a: no such job")
    // It fails.
    try drop("/404")
    waiting = try wait("a")
    try await isLooking(waiting)
    try await spool.once(exits: 1)
    for failed in [waiting, try wait("a")] {
      try await failed.result().exits(1, saying: "a: was given up")
    }
    // Beside one that failed, the next one gets a number at once.
    try drop("/4")
    waiting = try wait("a")
    try await isLooking(waiting)
    try await spool.once(exits: 0)
    try await waiting.result().exits(0)
    #expect(spool.names("done").count == 3 && spool.names("failed") == ["a"])
  }

  struct Namesakes: Sendable {
    var files: [String]
    /// What workers and people do while it waits; nothing behind the arrow is a removal.
    var moves: [String]
    var status: Int32
    var says = ""
  }

  private static let namesakes = [
    // The older one ends first: well, and not.
    Namesakes(
      files: ["cur/n:h.1.0000002a", "new/n"], moves: ["new/n cur/n~2:h.1.0000002b", "cur/n:h.1.0000002a done/n"],
      status: 75, says: "n~2 is not done"),
    Namesakes(
      files: ["cur/n:h.1.0000002a", "new/n"],
      moves: [
        "new/n cur/n~2:h.1.0000002b", "cur/n:h.1.0000002a failed/n", "cur/n~2:h.1.0000002b done/n~2",
      ], status: 0),
    // An older one with a number ends, and the job is cancelled.
    Namesakes(
      files: ["done/n", "cur/n~2:h.1.0000002a", "new/n"], moves: ["cur/n~2:h.1.0000002a done/n~2", "new/n "], status: 1,
      says: "n: no such job"),
    Namesakes(
      files: ["done/n", "cur/n~2:h.1.0000002a", "new/n"], moves: ["cur/n~2:h.1.0000002a failed/n~2", "new/n "],
      status: 1, says: "n: no such job"),
    // A worker copies it, and both of them.
    Namesakes(files: ["done/n", "new/n"], moves: [" cur/n~2:h.1.0000002b", "new/n "], status: 75, says: "n~2 is not"),
    Namesakes(
      files: ["cur/n:h.1.0000002a", "new/n"],
      moves: [
        " tmp/n", "tmp/n cur/n:h.1.0000002a", "wait", " cur/n~2:h.1.0000002b", "new/n ", "wait",
        "cur/n:h.1.0000002a done/n", "cur/n~2:h.1.0000002b failed/n~2",
      ], status: 1, says: "n~2: was given up"),
  ]

  @Test(arguments: namesakes) func `the end of a namesake is not that of the job`(jobs: Namesakes) async throws {
    func drop(_ path: Substring) throws { try spool.write(String(path), "http://h/x\n") }
    for path in jobs.files { try drop(path[...]) }
    // So long that it is not over before the moves are made.
    let waiting = try wait("--timeout", jobs.status == 75 ? "30s" : "1h", "n")
    try await isLooking(waiting)
    for move in jobs.moves {
      if move == "wait" {
        try await hasLooked(waiting)
        continue
      }
      let paths = move.split(separator: " ", omittingEmptySubsequences: false)
      switch (paths[0], paths[1]) {
      case ("", let new): try drop(new)
      case (let old, ""): try #require(unlink(spool.path(String(old))) == 0)
      case (let old, let new): try spool.move(String(old), String(new))
      }
    }
    let result = try await waiting.result()
    #expect(result.status == .exited(jobs.status) && result.errors.contains(jobs.says), "\(result)")
  }

  @Test func `it waits where the current directory is gone`() async throws {
    let script = #"mkdir gone; cd gone; rmdir ../gone; exec "$0" wait --spool "$1" x"#
    let result = try await run(
      ["/bin/sh", "-euc", script, try productPath("spoolrun"), spool.root], directory: spool.root)
    #expect(result.status == .exited(1) && result.errors.contains("x: no such job"), "\(result)")
  }

  @Test func `a job whose receipt is archived is done, unless it is an earlier one's`() async throws {
    let url = server.url("/a")
    try spool.drop("a", url + "\n")
    try await spool.once(exits: 0)
    try #require(mkdir(spool.path("done/archive"), 0o700) == 0 && mkdir(spool.path("done/archive/2026-11"), 0o700) == 0)
    try spool.move("done/a", "done/archive/2026-11/a")
    try await wait("a").result().exits(0)
    let new = try await spoolrun("add", "--new", "--wait", "--spool", spool.root, url)
    #expect(new.status == .exited(0) && spool.names("new") == [], "\(new)")
    try spool.drop("a", url + "\n")
    let waiting = try wait("a")
    try await isLooking(waiting)
    try await spoolrun("cancel", "--spool", spool.root, "a").exits(0)
    try await waiting.result().exits(1)
  }

  /// Between two looks it sleeps for a second.
  private func isLooking(_ waiting: RunningCommand) async throws {
    #if arch(x86_64)
      let sleeping = "230 "
    #else
      let sleeping = "115 "
    #endif
    // clock_nanosleep(2).
    try await waitUntil("it waits for its next look") {
      let path = "/proc/\(waiting.processID)/syscall"
      guard let text = try? readFile(path) else { return false }
      return String(decoding: text, as: UTF8.self).hasPrefix(sleeping)
    }
  }

  /// Waits until a look that has begun from now on is over. There is a sleep behind each look, and one may be about to
  /// begin; one more in case something else has kept it waiting.
  private func hasLooked(_ waiting: RunningCommand) async throws {
    let path = "/proc/\(waiting.processID)/status"
    @Sendable func sleeps() -> Int? {
      let text = (try? readFile(path)).map { String(decoding: $0, as: UTF8.self) } ?? ""
      let line = text.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches:") }
      return line?.split(separator: "\t").last.flatMap { Int($0) }
    }
    let before = try #require(sleeps())
    try await waitUntil("it has looked") { waiting.isFinished || sleeps().map { $0 >= before + 3 } ?? true }
  }

  @Test func addWaitsForItsJob() async throws {
    for (path, status) in [("/a", Int32(0)), ("/404", 1)] {
      let adding = try startSpoolrun(["add", "--wait", "--spool", spool.root, server.url(path)])
      try await waitUntil("it is dropped") { !spool.names("new").isEmpty }
      _ = try await spoolrun("--once", spool.root)
      try await adding.result().exits(status)
    }
    try await spoolrun("add", "--wait", "--spool", spool.root, "--from", "x")
      .exits(64, saying: "--wait are for one file")
  }

  /// It waits for what `--once` leaves for the next run.
  @Test func aWorkerRunsUntilAllIsDone() async throws {
    let server = try ScriptedServer { request, reply in
      if request.target == "/404" { return try reply.respond("404 Not Found", body: []) }
      if request.nth <= 2 { return try reply.respond("503 Service Unavailable", ["Retry-After: 2"], body: []) }
      try reply.respond("200 OK", body: [1])
    }
    for name in ["a", "b"] { try spool.drop(name, server.url("/\(name)") + "\n") }
    try spool.move("new/b", "hold/b")
    let done = try await spoolrun("run", "--until-done", spool.root)
    #expect(done.status == .exited(0) && spool.places(of: "a") == ["done/a"], "\(done)")
    #expect(spool.places(of: "b") == ["hold/b"], "paused jobs do not count")
    try spool.drop("404", server.url("/404") + "\n")
    try await spoolrun("run", "--until-done", spool.root).exits(1)
    try await spoolrun("run", "--once", "--until-done", spool.root).exits(64)
  }

  @Test(arguments: [[], ["--all", "a"], ["--timeout", "soon", "a"]])
  func whatIsNoCommand(arguments: [String]) async throws {
    try await startSpoolrun(["wait", "--spool", spool.root] + arguments).result().exits(64)
  }
}
