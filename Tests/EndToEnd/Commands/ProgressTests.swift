import Glibc
import TestSupport
import Testing

/// What a run shows where its standard error is a terminal, and where it is none.
@Suite struct ProgressTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  /// Runs the spool with a terminal of 60 columns on all three descriptors, as script(1) gives it; what it wrote there.
  private func runInTerminal(_ options: String, environment: [String: String] = [:]) async throws -> String {
    try await TestSupport.runInTerminal(line(options), environment: Self.variables(environment)).output
  }

  private func runInTerminal(
    environment: [String: String] = [:], open gate: Gate, when isShown: @escaping @Sendable (String) -> Bool
  ) async throws -> String {
    try await TestSupport.runInTerminal(
      line(), environment: Self.variables(environment), open: gate, when: isShown
    ).output
  }

  private func line(_ options: String = "") throws -> String {
    try "stty cols 60 rows 20; \(productPath("spoolrun")) --once \(options) \(spool.root)"
  }

  private static func variables(_ more: [String: String]) -> [String: String] {
    testEnvironment.merging(["TERM": "xterm"]) { $1 }.merging(more) { $1 }
  }

  private static let body = [UInt8](repeating: 0x78, count: 60_000)

  @Test(.enabled("needs script(1)") { try await Need.terminal.isMet() })
  func `bars come in a terminal, in colour, and are gone at the end`() async throws {
    let gate = try Gate()
    let server = try halfwayServer(Self.body, gate: gate)
    try spool.drop("slow", "url: \(server.url("/slow"))\noutput: slow\n\(patient)")
    try spool.drop("bad", "neither URL nor key\n")
    let output = try await runInTerminal(open: gate) {
      $0.contains("=>") && ($0.contains("slow [") || $0.contains("1/2"))
    }
    #expect(output.contains("=>"))
    #expect(output.contains("\u{1B}[32m"))
    #expect(output.contains("slow [") || output.contains("1/2"))
    #expect(output.contains("spoolrun: slow: \u{1B}[32mdone\u{1B}[0m: \(spool.root)/files/slow ("))
    #expect(output.contains("spoolrun: bad: \u{1B}[31mmalformed: "))
    #expect(output.contains("  Then: spoolrun retry --spool \(spool.root) bad\r\n"))
    // What is below is erased before the last line.
    let end =
      /\u{1B}\[Jspoolrun: \u{1B}\[32m1 done \(58\.6K fetched in \S+\)\u{1B}\[0m, \u{1B}\[31m1 failed\u{1B}\[0m\r\n$/
    #expect(output.contains(end), "\(output.suffix(200))")
  }

  /// A pass after the end of the other finds the claim of the one that runs.
  @Test(.enabled("needs script(1)") { try await Need.terminal.isMet() })
  func `a running job is not counted among those that wait`() async throws {
    let gate = try Gate()
    let server = try halfwayServer(Self.body, gate: gate)
    try spool.drop("slow", "url: \(server.url("/slow"))\noutput: slow\n\(patient)")
    try spool.drop("refused", "http://127.0.0.1:9/x\n")
    let output = try await runInTerminal(environment: ["NO_COLOR": "1"], open: gate) {
      $0.contains("1/2, 1 to retry")
    }
    #expect(output.contains("1/2, 1 to retry") && !output.contains("1/3"), "\(output)")
  }

  @Test(
    .enabled("needs script(1)") { try await Need.terminal.isMet() },
    arguments: [("NO_COLOR", "1", true), ("TERM", "dumb", false)])
  func `the environment is honoured`(name: String, value: String, hasBars: Bool) async throws {
    let gate = try Gate()
    let server = try halfwayServer(Self.body, gate: gate)
    try spool.drop("slow", "url: \(server.url("/slow"))\noutput: slow\n\(patient)")
    let output = try await runInTerminal(environment: [name: value], open: gate) { !hasBars || $0.contains("=>") }
    #expect(!output.contains("\u{1B}[32m"))
    #expect(output.contains("\u{1B}[J") == hasBars)
    #expect(output.contains("spoolrun: slow: done: \(spool.root)/files/slow"))
  }

  @Test(
    .enabled("needs script(1)") { try await Need.terminal.isMet() },
    arguments: ["--progress=never", "--log-format=json -v"])
  func `without bars no byte steers the terminal`(option: String) async throws {
    let server = try slowServer()
    try spool.drop("slow", "url: \(server.url("/slow"))\noutput: slow\n")
    let output = try await runInTerminal(option, environment: ["NO_COLOR": "1"])
    #expect(!output.contains("\u{1B}") && !output.isEmpty)
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
    #expect(
      result.output.hasSuffix(
        """
        : drop a job into new/; Ctrl-C stops\r
        spoolrun: stopping: the next run resumes the transfers\r
        spoolrun: 1 left for the next run\r

        """), "\(result)")
  }

  /// Runs a worker that stays, with a terminal of 80 columns, until it has written `text`, and stops it.
  private func watchInTerminal(_ options: String, until text: String) async throws -> String {
    let here = try TemporaryDirectory()
    let (screen, stop) = ("\(here.path)/screen", "\(here.path)/stop")
    let line = """
      stty cols 80; \(try productPath("spoolrun")) \(options) \(spool.root) &
      until test -e \(stop); do sleep 0.05; done; kill $!; wait $!
      """
    let session = try RunningCommand(
      ["/usr/bin/script", "-qefc", line, screen], environment: testEnvironment.merging(["TERM": "xterm"]) { $1 })
    @Sendable func shown() -> String { (try? readFile(screen)).map { String(decoding: $0, as: UTF8.self) } ?? "" }
    try await waitUntil("the worker has written it") { shown().contains(text) }
    try writeFile(stop, [])
    _ = try await session.result()
    return shown()
  }

  @Test(.enabled("needs script(1)") { try await Need.terminal.isMet() })
  func `a worker that stays says what it watches, and what jobs wait for`() async throws {
    try spool.drop("shut", "http://127.0.0.1:9/x\n")
    let output = try await watchInTerminal(
      "--gate 'exit 7'", until: "\u{1B}[33m1 job waits: gate: --gate: exit status 7\u{1B}[0m")
    #expect(output.contains("spoolrun: watching \(spool.root): drop a job into new/; Ctrl-C stops\r\n"), "\(output)")
    #expect(output.contains("spoolrun: stopping: the next run resumes the transfers\r\n"), "\(output)")
  }

  @Test(.enabled("needs script(1)") { try await Need.terminal.isMet() })
  func `a worker that stays says when the next attempt is`() async throws {
    let server = try simpleServer()
    try spool.drop("busy", "\(server.url("/500"))\n")
    let output = try await watchInTerminal("", until: "\u{1B}[2mnext attempt in ")
    #expect(output.contains(/busy: \u{1B}\[33mhttp-500: .*; attempt 1 failed, next in (1m)?[0-9]{2}s\r\n/), "\(output)")
  }

  @Test(arguments: ["--progress=auto", "--progress=never", "--progress=always"])
  func `into a pipe nothing is written when all is well`(option: String) async throws {
    let server = try slowServer()
    try spool.drop("slow", "url: \(server.url("/slow"))\noutput: slow\n")
    let result = try await spoolrun("--once", option, spool.root).exits(0)
    #expect(result.errors.isEmpty && result.output.isEmpty)
  }
}
