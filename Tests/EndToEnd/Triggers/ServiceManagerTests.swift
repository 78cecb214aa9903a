import Glibc
import TestSupport
import Testing

/// What a service manager and its journal are told (sd_notify(3), sd-daemon(3)).
@Suite struct ServiceManagerTests {
  /// Its socket is a path, or an abstract name.
  @Test(arguments: [false, true])
  func `the manager is told when it runs, what it does, and when it stops`(isAbstract: Bool) async throws {
    let scene = try Scene()
    let name = isAbstract ? "@\(scene.tools)/notify" : "\(scene.tools)/notify"
    let socket = try NotifySocket(name)
    let worker = try startSpoolrun([scene.spool.root], environment: ["NOTIFY_SOCKET": name])
    try await waitUntil("it is ready") { socket.assignments.contains("READY=1") }
    #expect(socket.assignments == ["READY=1", "STATUS=0 running, 0 waiting"])
    // It watches from then on: no pass is due for a minute.
    try scene.spool.drop("slow", scene.server.url("/slow") + "\n")
    try await waitUntil("it says that a job runs") { socket.assignments.contains("STATUS=1 running, 0 waiting") }
    try await worker.stop().exits(75)
    let told = socket.assignments
    #expect(told.contains("STOPPING=1") && told.last == "STATUS=stopping" && told.count { $0 == "READY=1" } == 1)
    #expect(!told.contains("WATCHDOG=1"), "nobody asked for it: \(told)")
  }

  /// The signs of life come from the loop also while it has nothing to do, and not for another process.
  @Test func `the watchdog hears from an idle loop`() async throws {
    let spool = try TemporarySpool()
    let tools = try TemporaryDirectory()
    let socket = try NotifySocket("\(tools.path)/notify")
    let environment = ["NOTIFY_SOCKET": "\(tools.path)/notify", "WATCHDOG_USEC": "400000"]
    let worker = try startSpoolrun([spool.root], environment: environment)
    try await waitUntil("ten signs of life") { socket.assignments.count { $0 == "WATCHDOG=1" } >= 10 }
    // A process that does not run sends none.
    try await worker.stop().exits(0)
    let other = try startSpoolrun(
      ["--once", spool.root], environment: environment.merging(["WATCHDOG_PID": "1"]) { $1 })
    let before = socket.assignments.count { $0 == "WATCHDOG=1" }
    try await other.result().exits(0)
    #expect(socket.assignments.count { $0 == "WATCHDOG=1" } == before)
  }

  @Test func `hooks and gates cannot speak for the worker`() async throws {
    let scene = try Scene.echoing()
    let socket = try NotifySocket("\(scene.tools)/notify")
    let spool = scene.spool
    try spool.install("done", "env >>\"$SPOOLRUN_SPOOL/told\"")
    try spool.drop("a", scene.server.url("/a") + "\n")
    let environment = [
      "NOTIFY_SOCKET": "\(scene.tools)/notify", "WATCHDOG_USEC": "60000000", "LISTEN_FDS": "1",
      "JOURNAL_STREAM": "1:1", "OTHER": "kept",
    ]
    let gate = "env >>\(spool.root)/told"
    let result = try await TestSupport.spoolrun("--once", "--gate", gate, spool.root, environment: environment)
    let told = spool.told("told")
    #expect(result.status == .exited(0) && told.count { $0 == "OTHER=kept" } == 2, "\(result) \(told)")
    let names = ["NOTIFY_SOCKET", "WATCHDOG", "LISTEN", "JOURNAL_STREAM"]
    #expect(!told.contains { line in names.contains { line.hasPrefix($0) } }, "\(told)")
    #expect(socket.assignments.first == "READY=1")
  }

  /// Told once, and nothing waits for it.
  @Test func `a manager that is away is no obstacle`() async throws {
    let scene = try Scene.echoing()
    try scene.spool.drop("a", scene.server.url("/a") + "\n")
    let result = try await TestSupport.spoolrun(
      "--once", scene.spool.root, environment: ["NOTIFY_SOCKET": "\(scene.tools)/none"])
    #expect(result.status == .exited(0) && scene.isDone("a"))
    #expect(
      result.errors.split(separator: "\n").count == 1 && result.errors.contains("no-service-manager"), "\(result)")
  }

  /// A file takes the place of the journal's socket: what counts is that standard error leads there.
  @Test(arguments: [[], ["--log-format", "json"], ["-v"]])
  func `lines for the journal begin with their priority`(options: [String]) async throws {
    let scene = try Scene.echoing()
    try scene.spool.drop("a", scene.server.url("/a") + "\n")
    try scene.spool.drop("gone", "url: \(scene.server.url("/gone"))\nattempts: 1\n")
    try scene.spool.drop("busy", "url: http://127.0.0.1:9/x\n")
    let log = "\(scene.tools)/log"
    let line =
      "exec 2>\(log); JOURNAL_STREAM=$(stat -c %d:%i \(log)) $spoolrun --once \(options.joined(separator: " ")) ."
    try await scene.shell(line).exits(1)
    let lines = try readText(log).split(separator: "\n")
    func has(_ priority: Int, _ words: String...) -> Bool {
      lines.contains { line in line.hasPrefix("<\(priority)>") && words.allSatisfy { line.contains($0) } }
    }
    #expect(has(6, "done", "a") && has(3, "http-404", "gone") && has(4, "cannot connect"), "\(lines)")
    #expect(lines.allSatisfy { $0.hasPrefix("<") } && (options == ["-v"] || lines.count == 3), "\(lines)")
    // What a person or cron reads has none, although a parent has set the variable.
    let plain = try await scene.shell("JOURNAL_STREAM=$(stat -c %d:%i \(log)) $spoolrun --once ./none")
    #expect(plain.errors.hasPrefix("spoolrun: "), "\(plain)")
  }
}
