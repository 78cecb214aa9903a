import Glibc
import TestSupport
import Testing

/// A spool that is removed, moved or made anew under a worker that watches it.
@Suite struct ReplacedSpoolTests {
  private let server: ScriptedServer
  private let spool: TemporarySpool

  init() throws {
    server = try simpleServer()
    spool = try TemporarySpool()
  }

  private func run(_ name: String, _ worker: RunningCommand) async throws {
    try spool.drop(name, "\(server.url("/\(name)"))\n")
    try await waitUntil("\(name) is done") { spool.places(of: name) == ["done/\(name)"] || worker.isFinished }
    #expect(spool.places(of: name) == ["done/\(name)"])
  }

  private func make() async throws {
    try await spoolrun("init", spool.root).exits(0)
  }

  @Test(arguments: ["rm -rf", "mv"])
  func `the worker goes on with the new one`(_ gesture: String) async throws {
    let worker = try startSpoolrun(["--protocols", "http,sftp", spool.root])
    try await run("a", worker)
    for name in ["b", "c"] {
      let target = gesture == "mv" ? ["\(spool.root)-\(name)"] : []
      try await runTool(["/bin/sh", "-c", "exec \(gesture) \"$@\"", "sh", spool.root] + target)
      try await make()
      try await run(name, worker)
      #expect(spool.names("done") == [name] && spool.payloads == [name])
      #expect(try readFile(spool.path("protocols")) == Array("http,sftp\n".utf8), "for whoever adds to it")
    }
    let result = try await worker.stop().exits(0)
    #expect(result.errors.split(separator: "spool-replaced").count == 3, "\(result)")
  }

  /// By rename, at once; the old one keeps what it has.
  @Test func `a running job is parked in the spool that was moved away`() async throws {
    let gate = try Gate()
    let slow = try halfwayServer(halfwayBody, gate: gate)
    try spool.drop("slow", "url: \(slow.url("/a"))\ntimeout: 1h\n")
    let worker = try startSpoolrun([spool.root])
    try await waitForHalf(of: "slow", in: spool)
    let old = spool.root + "-old"
    try #require(rename(spool.root, old) == 0)
    try await make()
    try await run("b", worker)
    #expect(names(in: "\(old)/partial").sorted() == ["slow", "slow.part"] && names(in: "\(old)/cur") == [])
    try await worker.stop().exits(0)
    gate.open()
    try await spoolrun("--once", old).exits(0)
    #expect(try readFile("\(old)/files/a") == halfwayBody)
  }

  /// Whoever checks its `hooks` must not run another's.
  @Test func `a hook of another spool is not run`() async throws {
    let (other, mark) = (spool.root + "-other", spool.root + "-ran")
    try #require(mkdir(spool.path("hooks"), 0o700) == 0)
    try await runTool(["/bin/cp", "-a", spool.root, other])
    // The other one's could be anybody's.
    for (root, line) in [
      (spool.root, "mv \(spool.root) \(spool.root)-old; mv \(other) \(spool.root)"), (other, "true"),
    ] {
      try writeFile("\(root)/hooks/verify", "#!/bin/sh\n\(line)\n")
      try writeFile("\(root)/hooks/done", "#!/bin/sh\ntouch \(mark)\n")
      for name in ["verify", "done"] { try #require(chmod("\(root)/hooks/\(name)", 0o700) == 0) }
    }
    try spool.drop("a", "\(server.url("/a"))\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.errors.contains("hook-refused"), "\(result)")
    #expect(fileStatus(mark) == nil)
    #expect(names(in: spool.root + "-old/done") == ["a"])
  }
}
