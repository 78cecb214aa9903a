import TestSupport
import Testing

/// What `--once` says at its end of jobs that wait, and which of them count.
@Suite struct RunEndTests {
  @Test(.enabled("needs script(1)") { try await Need.terminal.isMet() })
  func `on a terminal it says what jobs wait for`() async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    func lastLine(_ options: String) async throws -> String {
      let command = "'\(try productPath("spoolrun"))' --once --progress=never \(options) '\(spool.root)'"
      let result = try await runInTerminal(command).exits(75)
      return result.output.split(separator: "\r\n").last.map(String.init) ?? ""
    }
    try spool.drop("a", "\(server.url("/500"))\n")
    let failed = try await lastLine("")
    #expect(failed.wholeMatch(of: /spoolrun: 1 tries again in (1m[0-9]{2}|[0-9]{2})s/) != nil, "\(failed)")
    // Not before this test ends, however long it takes.
    try setModificationTime(spool.path("partial/a"), secondsFromNow: 3600)
    try spool.drop("b", "\(server.url("/b"))\n")
    #expect(try await lastLine("--gate 'exit 7'") == "spoolrun: jobs wait: --gate: exit status 7")
    #expect(try await lastLine("--min-free 4000T").hasPrefix("spoolrun: jobs wait: not enough disk space: "))
    // What is due is done, and the other's time has not come.
    try await spool.once(exits: 0)
  }

  @Test func `with -v it is an event`() async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    for name in ["a", "b"] { try spool.drop(name, "\(server.url("/500"))\n") }
    let result = try await spoolrun("--once", "-v", "--log-format", "json", spool.root)
    let due = try ["a", "b"].compactMap { try spool.lastFailure("partial/\($0)")["retry"] }.min()
    let last = result.errors.split(separator: "\n").last ?? ""
    #expect(last.contains(#""event":"waiting","level":"info","jobs":2,"next":"\#(due ?? "?")""#), "\(result)")
  }

  /// By hand or by command, while another job runs.
  @Test(arguments: ["hold a", "cancel a", "mv partial/a hold/", "rm partial/a"])
  func `what is held or cancelled while it waits does not count`(gesture: String) async throws {
    // Not due again before this test ends, however long it takes.
    let refusing = try ScriptedServer { _, reply in
      try reply.respond("503 Service Unavailable", ["Retry-After: 3600"], body: [])
    }
    let gate = try Gate()
    let server = try halfwayServer(halfwayBody, gate: gate)
    let spool = try TemporarySpool()
    try spool.drop("a", "\(refusing.url("/503"))\n")
    try spool.drop("b", "\(server.url("/b"))\n\(patient)")
    let worker = try startSpoolrun(["--once", spool.root])
    try await waitUntil("one waits, the other is under way") {
      spool.places(of: "a") == ["partial/a"] && spool.length("partial/b.part") == halfwayBody.count / 2
    }
    let isCommand = !gesture.hasPrefix("mv") && !gesture.hasPrefix("rm")
    let line = isCommand ? "\(try productPath("spoolrun")) \(gesture) --spool ." : gesture
    try await runTool(["/bin/sh", "-euc", line], directory: spool.root)
    gate.open()
    try await worker.result().exits(0)
    #expect(spool.places(of: "b") == ["done/b"])
  }

  /// The gate is asked for a job that is not there any more when it answers.
  @Test func `a job that was cancelled at a closed gate does not count`() async throws {
    let spool = try TemporarySpool()
    try spool.drop("a", "http://127.0.0.1:9/a\n")
    let result = try await spoolrun("--once", "--gate", "rm \(spool.path("new/a")); exit 1", spool.root)
    #expect(result.status == .exited(0) && result.errors == "", "\(result)")
  }
}
