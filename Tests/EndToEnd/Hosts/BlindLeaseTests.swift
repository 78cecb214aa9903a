import Glibc
import TestSupport
import Testing

/// A file system where a lease is granted while another host writes: bindfs, and the directory below for the other
/// host.
@Suite struct BlindLeaseTests {
  /// Each half of it would be a valid job.
  @Test(.enabled("needs bindfs") { try await Need.bindfs.isMet() })
  func aJobThatAnotherHostWritesSlowly() async throws {
    // Where the machine stands still for the 10 s after which a job has settled, half of it is a job, or it is empty.
    try await replay { try await isWrittenSlowly(within: .seconds(17)) }
  }

  /// - Returns: false, without a judgement, if the writer took longer.
  private func isWrittenSlowly(within most: Duration) async throws -> Bool {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    let mount = try await BindMount(spool.root)
    let worker = try startSpoolrun([mount.path])
    defer { worker.send(signal: SIGKILL) }
    let job = spool.path("new/a")
    let began = ContinuousClock.now
    let keptOpen = open(job, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    defer { close(keptOpen) }
    let script = #"for path in first mirror-1 mirror-2 mirror-3; do echo "url: $2$path" >>"$1"; sleep 3; done"#
    let writer = try RunningCommand(["/bin/sh", "-c", script, "sh", job, server.url("/")])
    let start = ContinuousClock.now - began
    guard try await start + writer.result().duration < most else { return false }
    try await waitUntil("it has settled and ended") { spool.places(of: "a") == ["done/a"] }
    #expect(server.requests.map(\.target) == ["/first"])
    let text = try spool.text("done/a")
    #expect(text.contains("/mirror-3\nstarted: "), "\(text)")
    // What is written even later goes nowhere.
    try #require(write(keptOpen, "XXXX", 4) == 4)
    #expect(try spool.text("done/a") == text)
    try await worker.stop()
    return true
  }

  @Test(.enabled("needs bindfs") { try await Need.bindfs.isMet() })
  func onceSaysThatItLeftOne() async throws {
    try await replay { try await isLeftByOnce(within: .seconds(17)) }
  }

  /// - Returns: false, without a judgement, if the machine stood still until the job had settled.
  private func isLeftByOnce(within most: Duration) async throws -> Bool {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    let mount = try await BindMount(spool.root)
    let began = ContinuousClock.now
    try spool.write("new/a", "\(server.url("/a"))\n")
    // Changed just now, for as long as may be.
    try setModificationTime(spool.path("new/a"), secondsFromNow: 9)
    let result = try await spoolrun("--once", "-v", mount.path)
    guard ContinuousClock.now - began < most else { return false }
    #expect(result.status == .exited(75), "\(result)")
    #expect(result.errors.contains(" waiting unsettled=1\n"), "\(result)")
    #expect(spool.places(of: "a") == ["new/a"] && server.requests.isEmpty)
    return true
  }

  /// The other host's own program says that the job is complete, and this host sees that a directory has changed.
  @Test(.enabled("needs bindfs") { try await Need.bindfs.isMet() })
  func aJobThatAnotherHostAdds() async throws {
    // Who looks too rarely is late each time; a machine that stands still, now and then.
    var times: [Duration] = []
    repeat { times.append(try await timeUntilAnAddedJobIsDone()) } while times.min()! >= .seconds(25) && times.count < 4
    #expect(times.min()! < .seconds(25), "\(times)")
  }

  private func timeUntilAnAddedJobIsDone() async throws -> Duration {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    let (one, other) = (try await BindMount(spool.root), try await BindMount(spool.root))
    let worker = try startSpoolrun(["-v", "--rescan", "1h", one.path])
    defer { worker.send(signal: SIGKILL) }
    try spool.drop("first", "\(server.url("/first"))\n# complete\n")
    try await waitUntil("the worker runs") { spool.places(of: "first") == ["done/first"] }
    // Workers used to look the less often the longer they had nothing to do: after 2, 6, 14, 30 and 62 s.
    try await Task.sleep(for: .seconds(31))
    let began = ContinuousClock.now
    try await spoolrun("add", "--spool", other.path, "--name", "a", server.url("/a")).exits(0)
    try await waitUntil("it is done") { spool.places(of: "a") == ["done/a"] }
    let time = ContinuousClock.now - began
    let result = try await worker.stop()
    #expect(!result.errors.contains(" unfinished "), "it need not settle: \(result)")
    return time
  }

  /// A job whose next attempt is far ahead. To touch it changes no directory.
  @Test(.enabled("needs bindfs") { try await Need.bindfs.isMet() })
  func aJobThatAnotherHostRetries() async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    let (one, other) = (try await BindMount(spool.root), try await BindMount(spool.root))
    try spool.write("partial/a", "\(server.url("/a"))\n")
    try setModificationTime(spool.path("partial/a"), secondsFromNow: 3600)
    let worker = try startSpoolrun(["--rescan", "1h", one.path])
    defer { worker.send(signal: SIGKILL) }
    try spool.drop("first", "\(server.url("/first"))\n# complete\n")
    try await waitUntil("the worker runs") { spool.places(of: "first") == ["done/first"] }
    try await spoolrun("retry", "--spool", other.path, "a").exits(0)
    try await waitUntil("it is done") { spool.places(of: "a") == ["done/a"] }
    try await worker.stop()
  }
}
