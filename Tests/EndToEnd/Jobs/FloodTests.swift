import Glibc
import TestSupport
import Testing

@Suite struct FloodTests {
  /// More than inotify's queue holds (max_queued_events, 16384 by default). All but a few have expired, which costs the
  /// least.
  @Test(.timeLimit(.minutes(30)))
  func `of 20000 jobs dropped at once none is forgotten`() async throws {
    let scene = try Scene.echoing()
    let count = 20_000
    for number in 0..<count {
      // The other tests want the thread, too.
      if number % 500 == 0 { await Task.yield() }
      let expired = number % 1000 == 0 ? "" : "expires: 2020-01-01\n"
      try scene.spool.write("tmp/\(number)", "url: \(scene.server.url("/\(number)"))\noutput: \(number)\n\(expired)")
    }
    let end = try await scene.withWorker(timeout: .seconds(1200)) { worker in
      try await scene.waitForWorker()
      // The worker sleeps through it.
      worker.send(signal: SIGSTOP)
      for number in 0..<count { rename(scene.spool.path("tmp/\(number)"), scene.spool.path("new/\(number)")) }
      worker.send(signal: SIGCONT)
      try await waitUntil("all are through", timeout: .seconds(1100)) {
        scene.spool.names("new") == [] && scene.spool.names("cur") == []
      }
    }
    #expect(scene.spool.names("done").count == count / 1000 + 1)
    #expect(scene.spool.names("failed").count == count - count / 1000)
    #expect(scene.server.requests.count == count / 1000 + 1)
    #expect(end.status == .exited(1), "\(end.status)")
  }
}
