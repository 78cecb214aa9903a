import Glibc
import Synchronization
import TestSupport
import Testing

/// Limits hold for all workers of a spool together: runs from cron may overlap.
@Suite struct SpoolLimitTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  @Test(.timeLimit(.minutes(30))) func fourRunsAtOnce() async throws {
    let (files, size, rate) = (24, 100_000, 500_000.0)
    let gauge = Gauge()
    let body = [UInt8](repeating: 7, count: size)
    let server = try ScriptedServer { _, reply in
      gauge.hold { usleep(50_000) }
      try reply.respond("200 OK", body: body)
    }
    for number in 0..<files { try spool.drop("\(number)", server.url("/\(number)") + "\n") }
    let began = ContinuousClock.now
    let workers = try (0..<4).map { _ in
      try startSpoolrun(["--once", "--per-host", "4", "--limit-rate", "500k", spool.root])
    }
    for worker in workers { try await worker.result().exits(0) }
    let seconds = (ContinuousClock.now - began) / .seconds(1)
    #expect(spool.names("done").count == files && gauge.total == files)
    #expect(gauge.most <= 4)
    #expect(Double(files * size) / seconds <= 1.1 * rate, "\(seconds) s")
  }

  /// Holds each request until the gate opens.
  private func holding(_ gate: Gate) throws -> ScriptedServer {
    try ScriptedServer { _, reply in
      if !gate.isOpen { try reply.stall(until: gate) }
      try reply.respond("200 OK", body: [1])
    }
  }

  @Test func theSlotsOfAKilledWorkerAreFree() async throws {
    let gate = try Gate()
    let (busy, idle) = (try holding(gate), try simpleServer())
    for number in 0..<6 { try spool.drop("\(number)", "\(busy.url("/\(number)"))\n\(patient)") }
    let first = try startSpoolrun(["--once", "--per-host", "2", spool.root])
    try await waitUntil("the first worker has both slots") { busy.requests.count == 2 }
    try spool.drop("z", "\(idle.url("/z"))\n")
    let second = try startSpoolrun(["--once", "--jobs", "8", spool.root])
    defer { second.send(signal: SIGKILL) }
    // It has looked at all jobs then, and claims none of the busy server.
    try await waitUntil("the second one runs what it may") { spool.places(of: "z") == ["done/z"] }
    #expect(busy.requests.count == 2 && spool.names("cur").count == 2)
    try await first.stop(SIGKILL)
    // The lowest limit was that of the first worker.
    try await waitUntil("the second one has the slots") { busy.requests.count == 6 }
    gate.open()
    try await second.result().exits(0)
    #expect(spool.names("done").count == 7)
  }

  /// The first worker has all slots, and enough jobs to keep them. The second one gets its share soon.
  @Test func aLaterWorkerGetsItsShare() async throws {
    var counts: [Int] = []
    // One that stands still for some seconds finds that the first has done them all.
    for _ in 1...5 where counts.allSatisfy({ $0 <= 60 }) { counts.append(try await shareOfALaterWorker()) }
    #expect(counts.contains { $0 > 60 }, "\(counts) of 600")
  }

  private func shareOfALaterWorker() async throws -> Int {
    let gate = try Gate()
    let begun = Atomic<Int>(0)
    let server = try ScriptedServer { _, reply in
      // Until the second worker has started, which may take longer than all jobs.
      if begun.add(1, ordering: .relaxed).newValue > 20, !gate.isOpen { try reply.stall(until: gate) }
      usleep(20_000)
      try reply.respond("200 OK", body: [1])
    }
    let spool = try TemporarySpool()
    for number in 0..<600 { try spool.drop("\(number)", "\(server.url("/\(number)"))\n") }
    let first = try startSpoolrun(["--once", "--per-host", "4", spool.root])
    try await waitUntil("the first worker has the slots") { server.requests.count > 20 }
    let second = try startSpoolrun(["--once", "-v", "--per-host", "4", spool.root])
    try await waitUntil("the second worker runs") { spool.names("workers").count == 2 }
    gate.open()
    try await first.result().exits(0)
    let result = try await second.result()
    #expect(result.status == .exited(0) && spool.names("done").count == 600)
    return result.errors.split(separator: "\n").count { $0.contains(" started ") }
  }

  /// A worker that was stopped keeps its slots, as it keeps all that is open. Its jobs are taken over after the lease.
  @Test func theSlotsOfAStoppedWorker() async throws {
    let gate = try Gate()
    let busy = try holding(gate)
    for number in 0..<2 { try spool.drop("\(number)", "\(busy.url("/\(number)"))\n\(patient)") }
    let options = ["--once", "--lease", "5s", "--per-host", "1", spool.root]
    let first = try startSpoolrun(options)
    defer { first.send(signal: SIGKILL) }
    try await waitUntil("the first worker has the slot") { busy.requests.count == 1 }
    first.send(signal: SIGSTOP)
    gate.open()
    try await spoolrun(options).exits(0)
    #expect(busy.requests.count >= 2)
  }

  /// A spool where the directory cannot be made goes on as one of version 0.2.
  @Test func withoutSharedSlots() async throws {
    let server = try simpleServer()
    try spool.write("servers", [])
    try spool.drop("a", "\(server.url("/a"))\n")
    try await spoolrun("--once", "-v", spool.root).exits(0, saying: " own-limits reason=")
    #expect(spool.names("done") == ["a"])
  }
}
