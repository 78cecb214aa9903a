import Glibc
import Synchronization
import TestSupport
import Testing

/// What `defaults` say of single servers.
@Suite struct ServerRuleTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  private func setDefaults(_ text: String) throws { try spool.write("defaults", text) }

  /// More than `--per-host` allows, or less.
  @Test(arguments: [("per-host@127.0.0.1: 6\n", 6), ("per-host@127.0.0.1: 2\nper-host: 1\n", 2), ("per-host: 3\n", 3)])
  func perHost(defaults: String, most: Int) async throws {
    let (gauge, gate) = (Gauge(), try Gate())
    let server = try ScriptedServer { _, reply in
      try gauge.hold { if !gate.isOpen { try reply.stall(until: gate) } }
      try reply.respond("200 OK", body: [1])
    }
    try setDefaults(defaults)
    for number in 0..<12 { try spool.drop("\(number)", "\(server.url("/\(number)"))\n\(patient)") }
    let worker = try startSpoolrun(["--once", spool.root])
    let other = try startSpoolrun(["--once", spool.root])
    try await waitUntil("as many as may have begun") { gauge.now == most }
    gate.open()
    for each in [worker, other] { try await each.result().exits(0) }
    #expect(gauge.most == most && gauge.total == 12)
  }

  /// Two workers together, and requests of one job.
  @Test(.timeLimit(.minutes(30))) func pace() async throws {
    var sums: [Double] = []
    // Where the server stands still, requests that came one after the other are seen at once.
    for _ in 1...5 where sums.allSatisfy({ $0 < 2000 }) { sums.append(try await pausesOfSix()) }
    // The time from the turn to the server differs from request to request. Without a pace the sum is near 0.
    #expect(sums.contains { $0 >= 2000 }, "\(sums)")
  }

  /// - Returns: the pauses between six requests, in milliseconds together.
  private func pausesOfSix() async throws -> Double {
    let spool = try TemporarySpool()
    let times = Mutex<[ContinuousClock.Instant]>([])
    let server = try ScriptedServer { _, reply in
      times.withLock { $0.append(.now) }
      try reply.respond("200 OK", ["ETag: \"1\""], body: [1])
    }
    try spool.write("defaults", "pace@127.0.0.1: 2/s\npace: 1/d\n")
    for number in 0..<6 { try spool.drop("\(number)", "\(server.url("/\(number)"))\n") }
    let workers = try (0..<2).map { _ in try startSpoolrun(["--once", spool.root]) }
    for worker in workers { try await worker.result().exits(0) }
    let found = times.withLock { $0 }
    #expect(found.count == 6 && spool.names("done").count == 6)
    return zip(found.dropFirst(), found).map { min(($0 - $1) / .milliseconds(1), 800) }.reduce(0, +)
  }

  /// A job that waits for its turn ends when the worker is told to.
  @Test func stopsWhileItWaits() async throws {
    let server = try ScriptedServer { _, reply in
      try reply.head("200 OK", ["ETag: \"1\"", "Content-Length: 2"])
      try reply.send([1])
      try reply.finish()
    }
    try setDefaults("pace: 1/h\n")
    try spool.drop("a", "\(server.url("/a"))\n")
    let worker = try startSpoolrun(["--once", spool.root])
    try await waitUntil("the first answer broke off") { spool.length("partial/a.part") == 1 }
    try await worker.stop().exits(75)
    #expect(server.requests.count == 1 && spool.places(of: "a") == ["partial/a"])
  }
}
