import Glibc
import TestSupport
import Testing

@Suite struct FloodTests {
  @Test func `jobs are found whose events did not fit into inotify's queue`() async throws {
    let scene = try Scene.echoing()
    let limit = try #require(Int(readText("/proc/sys/fs/inotify/max_queued_events").dropLast()))
    // The worker ignores such names, and the kernel merges equal events.
    let fillers = [".a", ".b"]
    for name in fillers { try scene.spool.write("tmp/\(name)", "") }
    let count = 20
    let end = try await scene.withWorker("--rescan", "1h") { worker in
      try await scene.waitForWorker()
      // It sleeps through it.
      worker.send(signal: SIGSTOP)
      for number in 0...2 * limit {
        let name = fillers[number % 2]
        rename(scene.spool.path("tmp/\(name)"), scene.spool.path("new/\(name)"))
        rename(scene.spool.path("new/\(name)"), scene.spool.path("tmp/\(name)"))
      }
      for number in 0..<count { try scene.spool.drop("\(number)", scene.server.url("/\(number)") + "\n") }
      worker.send(signal: SIGCONT)
      try await waitUntil("all are done") { scene.spool.names("done").count == count + 1 }
    }
    #expect(scene.server.requests.count == count + 1)
    #expect(end.status == .exited(0), "\(end.status)")
  }
}
