import TestSupport
import Testing

/// What is printed, and what is not.
@Suite struct OutputTests {
  private let server: ScriptedServer
  private let spool: TemporarySpool

  init() throws { (server, spool) = (try simpleServer(), try TemporarySpool()) }

  @Test func cronHearsNothingWhenAllIsWell() async throws {
    for name in ["a", "b", "c"] { try spool.drop(name, "\(server.url("/\(name)"))\n") }
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && result.output == "" && result.errors == "", "\(result)")
  }

  @Test func oneLineForEachFailedJob() async throws {
    try spool.drop("good", "\(server.url("/good"))\n")
    try spool.drop("gone", "\(server.url("/404"))\n")
    try spool.drop("busy", "\(server.url("/500"))\n")
    try spool.drop("bad", "url: \(server.url("/x"))\nsise: 5\n")
    try spool.drop("esc\u{202e}", "\(server.url("/410"))\n")
    let result = try await spoolrun("--once", spool.root)
    let lines = result.errors.split(separator: "\n")
    #expect(lines.count == 4 && result.output == "", "\(result)")
    func line(_ job: String) -> Substring { lines.first { $0.hasPrefix("spoolrun: \(job): ") } ?? "" }
    #expect(line("gone").contains("http-404") && line("gone").contains("failed/gone"))
    #expect(line("busy").contains("http-500") && line("busy").contains("next at 20"))
    #expect(line("bad").contains("malformed: line 2: unknown key `sise`"))
    #expect(line("esc\\xe2\\x80\\xae").contains("http-410"))
  }

  @Test func verbose() async throws {
    try spool.drop("a b", "\(server.url("/a"))\n")
    try spool.drop("gone", "\(server.url("/404"))\n")
    let result = try await spoolrun("--once", "-v", spool.root)
    let lines = result.errors.split(separator: "\n").map(String.init)
    #expect(result.output == "")
    for line in lines { #expect(line.prefix(20).hasSuffix("Z") && line.prefix(20).hasPrefix("20"), "\(line)") }
    for expected in ["started job=\"a b\" ", "done job=\"a b\" ", "started job=gone ", "failed job=gone "] {
      #expect(lines.contains { $0.dropFirst(21).hasPrefix(expected) }, "\(expected) in \(lines)")
    }
  }

  /// Each line is one JSON object, whatever the names are.
  @Test(.enabled("needs python3") { try await Need.program("python3").isMet() }, arguments: [true, false])
  func json(isVerbose: Bool) async throws {
    for (name, target) in [("a\"b\\c", "/a"), ("gone\u{2028}", "/404"), ("busy\u{9b}", "/500"), ("ü 🎉", "/b")] {
      try spool.drop(name, "\(server.url(target))\n")
    }
    try spool.drop("junk", "\u{1b}[31m\n")
    let flags = isVerbose ? ["-v"] : []
    let result = try await startSpoolrun(["--once", "--log-format", "json"] + flags + [spool.root]).result()
    let file = spool.path("log")
    try writeFile(file, result.errors)
    let program = """
      import json, sys
      for line in open(sys.argv[1], encoding="utf-8"):
          event = json.loads(line)
          numbers = {key for key, value in event.items() if not isinstance(value, str)}
          assert all(type(event[key]) is int for key in numbers), line
          expected = {"started": {"attempt", "at"}, "done": {"size", "attempt", "fetched", "bytes-fetched", "seconds",
                                                         "milliseconds", "rate"},
                      "failed": {"attempt", "at"}, "rejected": {"line"}, "waiting": {"jobs"}}
          assert numbers == expected.get(event["event"], set()), line
          print(event["event"], event["level"], event.get("code", "-"), ascii(event.get("job", "-")))
      """
    let parsed = try await runTool(["/usr/bin/python3", "-c", program, file]).output.split(separator: "\n").map(
      String.init)
    #expect(parsed.contains("failed error http-404 'gone\\\\xe2\\\\x80\\\\xa8'"), "\(parsed)")
    #expect(parsed.contains("failed warning http-500 'busy\\\\xc2\\\\x9b'"))
    #expect(parsed.contains("rejected error malformed 'junk'"))
    #expect(parsed.contains("done info - 'a\"b\\\\x5cc'") == isVerbose)
    #expect(parsed.contains { $0.hasPrefix("done info - '\\xfc ") } == isVerbose)
    if !isVerbose { #expect(parsed.count == 3) }
  }

  /// To a terminal finished jobs are told as well, and nothing that a job or a server said can steer it.
  @Test(.enabled("needs script(1)") { try await Need.terminal.isMet() })
  func terminal() async throws {
    try spool.drop("a", "url: \(server.url("/a"))\noutput: x\u{9b}31m\u{202e}y\n")
    try spool.drop("gone", "\(server.url("/404"))\n")
    let command = "'\(try productPath("spoolrun"))' --once '\(spool.root)'"
    let result = try await runInTerminal(command).exits(1)
    let path = "\(spool.root)/files/x\\xc2\\x9b31m\\xe2\\x80\\xaey"
    #expect(result.output.contains("a: done: \(path) (8B in "), "\(result)")
    #expect(
      !result.output.unicodeScalars.contains {
        (0x80...0x9f).contains($0.value) || $0.value == 0x1b || $0.value == 0x202e
      })
  }
}
