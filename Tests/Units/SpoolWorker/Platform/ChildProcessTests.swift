import Glibc
import TestSupport
import Testing

@testable import SpoolWorker

/// Programs that run beside the transfers.
@Suite struct ChildProcessTests {
  private func run(_ script: String, seconds: Int = 60, stop: ChildStop = ChildStop()) async throws
    -> ChildProcess.Outcome
  {
    try await ChildProcess(arguments: ["/bin/sh", "-c", script], seconds: seconds, stop: stop).run()
  }

  @Test func `its end and its output are told`() async throws {
    let failed = try await run("echo out; echo err >&2; exit 3")
    #expect(failed.end == .exited(3) && failed.output == Array("out\nerr\n".utf8))
    #expect(try await run("kill -9 $$").end == .signalled(9))
    #expect(try await run("head -c 1000000 /dev/zero").output.count == ChildProcess.outputLimit)
    await #expect(throws: (any Error).self) {
      try await ChildProcess(arguments: [nowhere], seconds: 60, stop: ChildStop()).run()
    }
  }

  @Test(arguments: [
    "head -c 1000000 /dev/zero; echo; echo >&2 'no room there'; echo; exit 3", "printf 'no room there'; exit 3",
  ])
  func `the reason is its last line, however much it says`(script: String) async throws {
    #expect(try await run(script).reason == "exit status 3: no room there")
  }

  /// Both may be more than a pipe holds.
  @Test func `an answer is kept apart`() async throws {
    var child = ChildProcess(
      arguments: ["/bin/sh", "-c", "echo one; echo two >&2; head -c 60000 /dev/zero; head -c 100000 /dev/zero >&2"],
      seconds: 60, stop: ChildStop())
    child.answers = true
    let outcome = try await child.run()
    #expect(outcome.answer.prefix(4) == Array("one\n".utf8)[...] && outcome.answer.count == 60_004)
    #expect(outcome.output.prefix(4) == Array("two\n".utf8)[...] && outcome.output.count == ChildProcess.outputLimit)
    child = ChildProcess(arguments: ["/bin/sh", "-c", "head -c 1000000 /dev/zero"], seconds: 60, stop: ChildStop())
    child.answers = true
    #expect(try await child.run().answer.count == ChildProcess.outputLimit + 1, "it shows that it is too long")
  }

  /// What is left in the background holds its output open.
  @Test func `it ends with its own process`() async throws {
    let outcome = try await run("sleep 300 & echo $!; exit 3")
    #expect(outcome.end == .exited(3))
    let left = try #require(pid_t(String(decoding: outcome.output, as: UTF8.self).dropLast()))
    #expect(kill(left, SIGKILL) == 0, "and is left alone")
  }

  /// Also with nothing to read any more, and with children that would hold the output open.
  @Test(arguments: ["echo $$; sleep 600 & sleep 600", "echo $$; exec >&- 2>&-; sleep 600 & sleep 600"])
  func `when its time is up, all of it is killed`(script: String) async throws {
    let outcome = try await run(script, seconds: 3)
    #expect(outcome.end == .timedOut)
    let group = try #require(pid_t(String(decoding: outcome.output, as: UTF8.self).dropLast()))
    try await waitUntil("the group is gone") { try isProcessGroupGone(group) }
  }

  /// With all that it started. What it says then is no judgement, but for a yes; and one that will not end is killed.
  @Test(arguments: [
    ("true", ChildProcess.End.stopped), ("trap 'exit 1' TERM", .stopped), ("trap 'exit 0' TERM", .exited(0)),
    ("trap '' TERM", .stopped), ("(trap '' TERM; exec sleep 600) & trap 'exit 1' TERM", .stopped),
  ])
  func `when all is to end, it is told`(trap: String, end: ChildProcess.End) async throws {
    let stop = ChildStop()
    let directory = try TemporarySpool()
    let pid = directory.path("pid")
    async let running = run("\(trap); echo $$ >\(pid); while :; do sleep 600 & wait $!; done", seconds: 600, stop: stop)
    try await waitUntil("it runs") { (try? readFile(pid))?.last == 0x0A }
    stop.request()
    #expect(try await running.end == end)
    let group = try #require(pid_t(String(decoding: try readFile(pid), as: UTF8.self).dropLast()))
    try await waitUntil("the group is gone") { try isProcessGroupGone(group) }
  }

  @Test func `what begins when all is to end has little time`() async throws {
    let stop = ChildStop()
    stop.request()
    #expect(try await run("exit 0", stop: stop).end == .exited(0))
    #expect(try await run("exec sleep 600", seconds: 600, stop: stop).end == .timedOut)
  }
}
