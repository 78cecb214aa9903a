import Glibc
import TestSupport
import Testing

/// For a moment a worker may open no more files.
@Suite struct ShortageTests {
  @Test(.enabled("needs prlimit(1)") { access("/usr/bin/prlimit", X_OK) == 0 })
  func `a worker that stays waits until it may`() async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    let log = spool.path("log")
    let worker = try startSpoolrun([spool.root], prefix: ["/bin/sh", "-c", "exec 2>'\(log)' \"$@\"", "sh"])
    defer { worker.send(signal: SIGKILL) }
    func allow(_ files: Int) async throws {
      try await run(["/usr/bin/prlimit", "--pid", "\(worker.processID)", "--nofile=\(files):1000"]).exits(0)
    }
    try spool.drop("a", "\(server.url("/a"))\n")
    try await waitUntil("it is done") { spool.places(of: "a") == ["done/a"] }
    try await allow(0)
    try spool.drop("b", "\(server.url("/b"))\n")
    try await waitUntil("it is told of") {
      worker.isFinished || spool.told("log").contains { $0.contains("Too many open files") }
    }
    try await allow(1000)
    try await waitUntil("it is done") { worker.isFinished || spool.places(of: "b") == ["done/b"] }
    #expect(try await worker.stop().status == .exited(0) && spool.places(of: "b") == ["done/b"])
  }
}
