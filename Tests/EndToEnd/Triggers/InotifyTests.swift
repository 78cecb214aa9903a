import Glibc
import TestSupport
import Testing

/// The triggers in `contrib/`, with the real programs.
@Suite struct InotifyTests {
  @Test(
    .timeLimit(.minutes(30)), .enabled("needs inotifywait") { try await Need.program("inotifywait").isMet() })
  func `the inotifywait loop runs what is dropped, touched and released`() async throws {
    let scene = try Scene.echoing()
    try scene.spool.drop("before", scene.server.url("/before") + "\n")
    let loop = try RunningCommand(
      [SourceTree.contrib("spoolrun-inotify"), scene.spool.root, "--jobs", "2"], environment: scene.withProgramOnPath)
    defer { kill(-loop.processID, SIGKILL) }
    try await waitUntil("what was there is done") { scene.isDone("before") }
    // Nothing tells from outside when it has begun to watch.
    let numbers = Counter()
    try await waitUntil("a drop is done", every: .milliseconds(200)) {
      if scene.spool.names("done").contains(where: { $0.hasPrefix("drop") }) { return true }
      let number = numbers.next()
      try scene.spool.drop("drop\(number)", scene.server.url("/\(number)") + "\n")
      return false
    }
    for number in 1...200 { try scene.spool.drop("many\(number)", scene.server.url("/many\(number)") + "\n") }
    try scene.spool.write("hold/held", "\(scene.server.url("/held"))\n")
    rename(scene.spool.path("hold/held"), scene.spool.path("new/held"))
    // Written elsewhere: what is in partial/ is taken for whole. It is due when it is touched.
    try scene.spool.write("hold/late", "\(scene.server.url("/late"))\n")
    try setModificationTime(scene.spool.path("hold/late"), secondsFromNow: 5000)
    try scene.spool.move("hold/late", "partial/late")
    try scene.spool.makeDue("late")
    try await waitUntil("all are done") {
      ["held", "late"].allSatisfy(scene.isDone)
        && scene.spool.names("done").filter { $0.hasPrefix("many") }.count == 200
    }
    #expect(Set(scene.server.requests.map(\.target)).count == scene.server.requests.count, "none was fetched twice")
  }

  @Test(.enabled("needs inotifywait") { try await Need.program("inotifywait").isMet() })
  func `what stops the inotifywait loop stops its worker, too`() async throws {
    let scene = try Scene()
    try scene.spool.drop("slow", scene.server.url("/slow") + "\n")
    let loop = try RunningCommand(
      [SourceTree.contrib("spoolrun-inotify"), scene.spool.root], environment: scene.withProgramOnPath)
    defer { kill(-loop.processID, SIGKILL) }
    try await waitUntil("it is fetched") { scene.spool.names("partial").contains("slow.part") }
    try await loop.stop().exits(143)
    try await waitUntil("all of it has ended") { try isProcessGroupGone(loop.processID) }
    #expect(scene.spool.names("partial").contains("slow"))
  }
}
