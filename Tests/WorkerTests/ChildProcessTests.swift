import Glibc
import TestSupport
import Testing

@testable import SpoolWorker

/// Programs that run beside the transfers.
@Suite struct ChildProcessTests {
  private func run(_ script: String, seconds: Int = 60) async throws -> ChildProcess.Outcome {
    try await ChildProcess(arguments: ["/bin/sh", "-c", script], seconds: seconds).run()
  }

  @Test func `its end and its output are told`() async throws {
    let failed = try await run("echo out; echo err >&2; exit 3")
    #expect(failed.end == .exited(3) && failed.output == Array("out\nerr\n".utf8))
    #expect(try await run("kill -9 $$").end == .signalled(9))
    #expect(try await run("head -c 1000000 /dev/zero").output.count == ChildProcess.outputLimit)
    await #expect(throws: (any Error).self) { try await ChildProcess(arguments: ["/nowhere/x"], seconds: 60).run() }
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
    try await waitUntil("the group is gone") { kill(-group, 0) != 0 && errno == ESRCH }
  }
}
