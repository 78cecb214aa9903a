import Foundation
import Glibc
import TestSupport
import Testing

/// The files of workers in `workers/`, and what `status` shows of them.
@Suite struct PresenceTests {
  private func workers(_ spool: TemporarySpool) async throws -> [[String: Any]] {
    let result = try await spoolrun("status", "--json", spool.root)
    let json = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
    return try #require(json?["workers"] as? [[String: Any]], "\(result)")
  }

  /// What the only worker says; empty if there is none.
  private func report(_ spool: TemporarySpool) -> String {
    let files = spool.names("workers").map { (try? readFile(spool.path("workers/\($0)"))) ?? [] }
    return String(decoding: files.first ?? [], as: UTF8.self)
  }

  @Test func aWorkerSaysWhyJobsWait() async throws {
    let spool = try TemporarySpool()
    try spool.drop("a", "https://127.0.0.1:9/a\n")
    let worker = try startSpoolrun(["--jobs", "3", "--gate", "echo closed for today; false", spool.root])
    defer { worker.send(signal: SIGKILL) }
    try await waitUntil("it says so") { report(spool).contains("\nwaits: gate reason=") }
    let names = spool.names("workers")
    let seen = try #require(try await workers(spool).first)
    #expect(names.count == 1 && seen["name"] as? String == names[0])
    #expect(seen["state"] as? String == "alive" && seen["mode"] as? String == "watch" && seen["runs"] as? Int == 0)
    let options = try #require(seen["options"] as? [String: Any])
    #expect(options["jobs"] as? Int == 3 && options["gate"] as? Bool == true && options["max-size"] == nil)
    let text = try await spoolrun("status", spool.root).output
    #expect(
      text.contains("workers/: 1 worker\n  \(names[0])  runs 0 jobs, started ") && text.contains("waits: gate: "),
      "\(text)")
    let reason = "waits for the gate: --gate: exit status 1: closed for today"
    #expect(text.contains("\n  a ") && text.contains(reason), "\(text)")
    try await worker.stop()
    #expect(spool.names("workers") == [])
    #expect(try await spoolrun("status", spool.root).output.contains("no worker runs"))
  }

  /// It holds no state: without it, or without its directory, nothing is lost, and it is made again.
  @Test(arguments: [false, true])
  func removingItHarmsNothing(isDirectory: Bool) async throws {
    let gate = try TestSupport.Gate()
    let server = try halfwayServer(halfwayBody, gate: gate)
    let spool = try TemporarySpool()
    try spool.drop("a", "\(server.url("/a"))\n\(patient)")
    let worker = try startSpoolrun(["--lease", "5s", spool.root])
    defer { worker.send(signal: SIGKILL) }
    try await waitUntil("it says what it runs") { report(spool).contains("\nruns: 1\n") }
    let file = spool.path("workers/\(try #require(spool.names("workers").first))")
    let inode = try #require(fileStatus(file)).st_ino
    let held = open(file, O_RDONLY | O_CLOEXEC)
    defer { close(held) }
    try #require(unlink(file) == 0)
    if isDirectory {
      // The worker may be quicker, and have made its file again.
      try await waitUntil("the directory is gone") {
        unlink(file)
        return rmdir(spool.path("workers")) == 0
      }
    }
    try await waitUntil("it is there again") { fileStatus(file).map { $0.st_ino != inode } ?? false }
    gate.open()
    try await waitUntil("the job is done") { spool.places(of: "a") == ["done/a"] }
    #expect(try await worker.stop().errors == "")
  }

  @Test func theDeadAreSwept() async throws {
    let spool = try TemporarySpool()
    let worker = try startSpoolrun(["--lease", "5s", spool.root])
    try await waitUntil("it is there") { spool.names("workers").count == 1 }
    let dead = spool.names("workers")
    try await worker.stop(SIGKILL)
    #expect(try await workers(spool).first?["state"] as? String == "silent")
    let other = try startSpoolrun([spool.root])
    defer { other.send(signal: SIGKILL) }
    try await waitUntil("only the living one is there") {
      spool.names("workers").count == 1 && spool.names("workers") != dead
    }
  }

  /// A user who may not write there downloads nevertheless.
  @Test func aFileInItsPlace() async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    _ = rmdir(spool.path("workers"))
    try spool.write("workers", [])
    try spool.drop("a", "\(server.url("/a"))\n")
    let worker = try startSpoolrun(["-v", spool.root])
    defer { worker.send(signal: SIGKILL) }
    try await waitUntil("the job is done") { spool.places(of: "a") == ["done/a"] }
    try await worker.stop().exits(0, saying: " no-presence reason=")
  }
}
