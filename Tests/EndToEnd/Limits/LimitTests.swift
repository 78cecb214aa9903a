import Glibc
import Synchronization
import TestSupport
import Testing

/// How many transfers at once, and over how many connections.
@Suite struct LimitTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  /// Holds every request until the gate opens, and counts.
  private func holding(_ gauge: Gauge, _ gate: Gate) throws -> ScriptedServer {
    try ScriptedServer { _, reply in
      try gauge.hold { if !gate.isOpen { try reply.stall(until: gate) } }
      try reply.respond("200 OK", body: [1])
    }
  }

  /// `held` requests of one host are under way and stay so while three jobs of another host, dropped later, come and go
  /// one after the other: for each of them the worker looked whether it could start more.
  @Test(arguments: [(8, 4, 4), (8, 2, 2), (3, 2, 2), (20, 20, 12)])
  func perHost(jobs: Int, perHost: Int, held: Int) async throws {
    let gauge = Gauge()
    let gate = try Gate()
    let busy = try holding(gauge, gate)
    let other = try simpleServer()
    for number in 0..<12 { try spool.drop("busy-\(number)", "url: \(busy.url("/x"))\noutput: \(number)\n\(patient)") }
    for number in 0..<3 { try spool.drop("zother-\(number)", "url: \(other.url("/y"))\noutput: y\(number)\n") }
    let worker = try startSpoolrun(["--once", "--jobs", "\(jobs)", "--per-host", "\(perHost)", spool.root])
    try await waitUntil("the other host's are done") { spool.names("done").count == 3 }
    try await waitUntil("the busy host's are under way") { gauge.now == held }
    #expect(gauge.most == held && gauge.total == held)
    gate.open()
    try await worker.result().exits(0)
    #expect(gauge.most <= held && gauge.total == 12)
  }

  /// Without `--per-host`, a server gets as many transfers as bring more: a distant one bears more of them, one that
  /// refuses fewer.
  @Test(.timeLimit(.minutes(30)), arguments: [false, true]) func asManyAsBringMore(refuses: Bool) async throws {
    let gauge = Gauge()
    let body = [UInt8](repeating: 7, count: 10_000)
    let server = try ScriptedServer { _, reply in
      // The way to it and back.
      gauge.hold { usleep(50_000) }
      if refuses { return try reply.respond("429 Too Many Requests", body: []) }
      try reply.respond("200 OK", body: body)
    }
    for number in 0..<300 { try spool.drop("\(number)", "\(server.url("/\(number)"))\n") }
    let worker = try startSpoolrun(["--once", "--jobs", "16", spool.root])
    try await worker.result().exits(refuses ? 75 : 0)
    #expect(refuses ? gauge.most <= 4 : gauge.most > 4 && gauge.most <= 16, "\(gauge.most)")
  }

  @Test func inAll() async throws {
    let gauge = Gauge()
    let gate = try Gate()
    let servers = try (0..<5).map { _ in try holding(gauge, gate) }
    for number in 0..<20 {
      try spool.drop("job-\(number)", "url: \(servers[number % 5].url("/x"))\noutput: \(number)\n\(patient)")
    }
    let worker = try startSpoolrun(["--once", "--jobs", "3", spool.root])
    try await waitUntil("three are under way") { gauge.now == 3 }
    #expect(spool.names("cur").count == 3 && spool.names("new").count == 17)
    gate.open()
    try await worker.result().exits(0)
    #expect(gauge.most == 3 && gauge.total == 20)
  }

  /// A thousand jobs of one host do not starve another's.
  @Test func fairness() async throws {
    let gauge = Gauge()
    let gate = try Gate()
    let busy = try holding(gauge, gate)
    let other = try simpleServer()
    for number in 0..<1000 {
      try spool.drop("busy-\(number)", "url: \(busy.url("/x"))\noutput: \(number)\n\(patient)")
      try setModificationTime(spool.path("new/busy-\(number)"), secondsFromNow: -5000)
    }
    try spool.drop("late", "\(other.url("/late"))\n")
    let worker = try startSpoolrun(["--once", spool.root])
    try await waitUntil("the late one is done") { spool.places(of: "late") == ["done/late"] }
    #expect(gauge.most <= 4 && gauge.total <= 4, "while none of the busy host's has ended")
    try await worker.stop().exits(75)
  }

  @Test func connectionsAreReused() async throws {
    let server = try simpleServer()
    for number in 0..<20 { try spool.drop("job-\(number)", "url: \(server.url("/\(number)-x"))\n") }
    try await spool.once("--jobs", "1", exits: 0)
    #expect(server.requests.count == 20)
    #expect(Set(server.requests.map(\.connection)) == [1])
  }

  @Test func atMostAsManyConnectionsAsTransfers() async throws {
    let server = try simpleServer()
    for number in 0..<40 { try spool.drop("job-\(number)", "url: \(server.url("/\(number)-x"))\n") }
    try await spool.once("--per-host", "3", exits: 0)
    #expect(Set(server.requests.map(\.connection)).count <= 3)
  }
}
