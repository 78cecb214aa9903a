import Glibc
import TestSupport
import Testing

/// What a run shows where its standard error is a terminal, and where it is none.
@Suite struct ProgressTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  /// Runs the spool with a terminal of 60 columns on all three descriptors, as script(1) gives it; what it wrote there.
  private func runInTerminal(_ options: String, environment: [String: String] = [:]) async throws -> String {
    var variables = testEnvironment
    variables["TERM"] = "xterm"
    variables.merge(environment) { $1 }
    let command = try "stty cols 60 rows 20; \(productPath("spoolrun")) --once \(options) \(spool.root)"
    let result = try await TestSupport.runInTerminal(command, environment: variables)
    return result.output
  }

  @Test(.enabled("needs script(1)") { try await Need.terminal.isMet() })
  func `bars come in a terminal, in colour, and are gone at the end`() async throws {
    let server = try slowServer()
    try spool.drop("slow", "url: \(server.url("/slow"))\noutput: slow\n")
    try spool.drop("bad", "neither URL nor key\n")
    let output = try await runInTerminal("")
    #expect(output.contains("[=") || output.contains("<=>"))
    #expect(output.contains("\u{1B}[32m"))
    #expect(output.contains("0 of 1 jobs") || output.contains(" of 2 jobs"))
    #expect(output.contains("spoolrun: slow: done: slow ("))
    #expect(output.contains("spoolrun: bad: malformed: "))
    // The last thing is the erasing of all that is below.
    #expect(output.hasSuffix("\u{1B}[J"))
  }

  @Test(
    .enabled("needs script(1)") { try await Need.terminal.isMet() },
    arguments: [("NO_COLOR", "1", true), ("TERM", "dumb", false)])
  func `the environment is honoured`(name: String, value: String, hasBars: Bool) async throws {
    let server = try slowServer()
    try spool.drop("slow", "url: \(server.url("/slow"))\noutput: slow\n")
    let output = try await runInTerminal("", environment: [name: value])
    #expect(!output.contains("\u{1B}[32m"))
    #expect(output.contains("\u{1B}[J") == hasBars)
    #expect(output.contains("spoolrun: slow: done: slow"))
  }

  @Test(
    .enabled("needs script(1)") { try await Need.terminal.isMet() },
    arguments: ["--progress=never", "--log-format=json"])
  func `without bars no byte steers the terminal`(option: String) async throws {
    let server = try slowServer()
    try spool.drop("slow", "url: \(server.url("/slow"))\noutput: slow\n")
    #expect(try await !runInTerminal(option).contains("\u{1B}"))
  }

  /// Answers, and sends no body.
  private func stallingServer() throws -> ScriptedServer {
    try ScriptedServer { _, reply in
      try reply.head("200 OK", ["Content-Length: 9"])
      try reply.stall()
    }
  }

  /// Closed ones would be opened anew as whatever the worker opens first, a job perhaps.
  @Test func `closed standard descriptors lead nowhere`() async throws {
    let server = try stallingServer()
    try spool.drop("slow", "\(server.url("/slow"))\n")
    let line = """
      "$1" --progress=always "$2" <&- >&- 2>&- & until test -e "$2/partial/slow.part"; do sleep 0.05; done
      readlink /proc/$!/fd/0 /proc/$!/fd/1 /proc/$!/fd/2; kill $!; wait $!
      """
    let result = try await run(["/bin/sh", "-c", line, "sh", productPath("spoolrun"), spool.root])
    #expect(result.output == "/dev/null\n/dev/null\n/dev/null\n", "\(result)")
  }

  @Test(.enabled("needs script(1)") { try await Need.terminal.isMet() })
  func `that it was told to stop is said in a terminal`() async throws {
    let server = try stallingServer()
    try spool.drop("slow", "\(server.url("/slow"))\n")
    let line = """
      "$1" --progress=never "$2" & until test -e "$2/partial/slow.part"; do sleep 0.05; done; kill $!; wait $!
      """
    let command = try "sh -c '\(line)' sh '\(productPath("spoolrun"))' '\(spool.root)'"
    let result = try await TestSupport.runInTerminal(command)
    #expect(result.output == "spoolrun: stopping: the next run resumes the transfers\r\n", "\(result)")
  }

  @Test(arguments: ["--progress=auto", "--progress=never", "--progress=always"])
  func `into a pipe nothing is written when all is well`(option: String) async throws {
    let server = try slowServer()
    try spool.drop("slow", "url: \(server.url("/slow"))\noutput: slow\n")
    let result = try await spoolrun("--once", option, spool.root)
    #expect(result.status == .exited(0), "\(result)")
    #expect(result.errors.isEmpty && result.output.isEmpty)
  }
}
