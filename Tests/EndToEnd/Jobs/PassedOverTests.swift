import Glibc
import TestSupport
import Testing

/// Jobs that a worker may not take yet.
@Suite struct PassedOverTests {
  /// What the worker itself does to look at a file must not be news of it: it would look again at once, and so on.
  @Test(arguments: [true, false])
  func isNotLookedAtWithoutEnd(isLocked: Bool) async throws {
    var looks = 0
    // A file without its end is set aside after 19 s, perhaps by a worker that stood still so long, at its first look.
    for _ in 1...4 where looks == 0 { looks = try await looksAtAJobThatWaits(isLocked) }
    // Once for each news of it, and each scan; it were thousands.
    #expect((1...19).contains(looks))
  }

  private func looksAtAJobThatWaits(_ isLocked: Bool) async throws -> Int {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    let path = spool.path("new/later")
    let worker = try startSpoolrun(["-v", spool.root])
    try spool.drop("first", "\(server.url("/x"))\n")
    try await waitUntil("the first is done") { spool.places(of: "first") == ["done/first"] }
    try spool.write("tmp/later", "\(server.url("/y"))\(isLocked ? "\n" : "")")
    // Changed just now, for as long as may be.
    try setModificationTime(spool.path("tmp/later"), secondsFromNow: 9)
    let lock = open(spool.path("tmp/later"), O_RDONLY | O_CLOEXEC)
    defer { close(lock) }
    if isLocked { #expect(flock(lock, LOCK_EX | LOCK_NB) == 0) }
    #expect(rename(spool.path("tmp/later"), path) == 0)
    for number in 1...20 {
      try spool.drop("\(number)", "url: \(server.url("/x"))\noutput: \(number)\n")
      try await waitUntil("the next is done") { spool.places(of: "\(number)") == ["done/\(number)"] }
    }
    let result = try await worker.stop()
    return result.errors.split(separator: " unfinished ").count - 1
  }

  /// Nobody's newline is guessed, and no line is lost, in a job that came back with its journal either.
  @Test func aLineWithoutItsEndIsNoTornJournal() async throws {
    let text =
      "http://127.0.0.1:9/a\nfailed: 2026-11-21T03:00:00Z attempt=1 class=permanent code=http-404 at=0 reason=x\n"
      + "url: http://b/x"
    try await replay {
      let spool = try TemporarySpool()
      let began = ContinuousClock.now
      try spool.write("new/a", text)
      // Changed just now, for as long as may be.
      try setModificationTime(spool.path("new/a"), secondsFromNow: 9)
      let result = try await spoolrun("--once", spool.root)
      // The machine stood still until it was set aside.
      if ContinuousClock.now - began > .seconds(17) { return false }
      #expect(result.status == .exited(0), "\(result)")
      #expect(try readFile(spool.path("new/a")) == Array(text.utf8))
      return true
    }
  }

  /// A name that a running job has, which no data bears yet: the new drop waits its turn, and to look at it is no news
  /// of it.
  @Test func aNameThatIsInHandWaitsItsTurn() async throws {
    let gate = try Gate()
    let server = try ScriptedServer { request, reply in
      if request.target == "/held" { try reply.stall(until: gate) }
      try reply.respond("200 OK", body: Array("payload\n".utf8))
    }
    let spool = try TemporarySpool()
    // With the next scan it would come, too.
    let worker = try startSpoolrun(["--rescan", "1h", spool.root])
    try spool.drop("a", "url: \(server.url("/held"))\noutput: held\ntimeout: 1h\n")
    try await waitUntil("it is asked for") { !server.requests(for: "/held").isEmpty }
    // As while it looks at what stands at its output, for which there is no condition to wait for.
    #expect(unlink(spool.path("partial/a.part")) == 0)
    let news = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
    defer { close(news) }
    #expect(inotify_add_watch(news, spool.path("new"), UInt32(IN_CLOSE_WRITE)) >= 0)
    // Renamed, so that nobody has written to it there.
    try spool.write("tmp/a", "url: \(server.url("/next"))\noutput: next\n")
    try spool.move("tmp/a", "new/a")
    try spool.write("tmp/b", "url: \(server.url("/b"))\n")
    try spool.move("tmp/b", "new/b")
    try await waitUntil("the other is done") { spool.places(of: "b") == ["done/b"] }
    var bytes = [UInt8](repeating: 0, count: 4096)
    #expect(read(news, &bytes, bytes.count) < 0 && errno == EAGAIN, "nobody wrote there")
    #expect(spool.names("new") == ["a"])
    gate.open()
    try await waitUntil("it is done") { spool.names("files").contains("next") }
    try await worker.stop()
  }
}
