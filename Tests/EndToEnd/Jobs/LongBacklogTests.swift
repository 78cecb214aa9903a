import TestSupport
import Testing

/// Backlogs that are longer than what a worker looks ahead at.
@Suite struct LongBacklogTests {
  /// Of one host that has no room there are more jobs than are looked ahead at: the other's are found among them.
  @Test func aBusyHostsThousandsDoNotHideAnother() async throws {
    let gate = try Gate()
    let busy = try ScriptedServer { _, reply in try reply.stall(until: gate) }
    let other = try simpleServer()
    let spool = try TemporarySpool()
    let text = Array("url: \(busy.url("/x"))\n\(patient)".utf8)
    for number in 0..<6000 { try spool.write("new/busy-\(number)", text) }
    // In the order of the directory, where a few might all come early.
    for number in 0..<30 { try spool.drop("other-\(number)", "\(other.url("/o-\(number)"))\n") }
    let worker = try startSpoolrun(["--once", "--jobs", "2", "--per-host", "1", spool.root])
    // The search takes a twentieth of the time that it is given, and so twenty times longer where others have the
    // processor.
    try await waitUntil("the other's are done", timeout: .seconds(900)) { spool.names("done").count == 30 }
    #expect(busy.requests.count == 1, "its one has not ended")
    worker.send(signal: 15)
    gate.open()
    try await worker.result().exits(75)
  }

  /// A clock was ahead when they failed: no wait is that long.
  @Test func noWaitIsLongerThanADay() async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    for (name, ahead) in [("year", 365 * 86_400), ("day", 86_000)] {
      try spool.write("partial/\(name)", "\(server.url("/\(name)"))\n")
      try setModificationTime(spool.path("partial/\(name)"), secondsFromNow: ahead)
    }
    try await spool.once(exits: 0)
    #expect(spool.places(of: "year") == ["done/year"] && spool.places(of: "day") == ["partial/day"])
  }

  /// More than is looked ahead at in either directory: none is left, and what is not due is not touched.
  @Test func onceRunsAllOfALongBacklog() async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    let expired = Array("url: \(server.url("/x"))\nexpires: 2020-01-01\n".utf8)
    for number in 0..<4500 { try spool.write("new/expired-\(number)", expired) }
    for number in 0..<4500 {
      try spool.write("partial/later-\(number)", [0x0A])
      try setModificationTime(spool.path("partial/later-\(number)"), secondsFromNow: 1000)
    }
    try await startSpoolrun(["--once", spool.root]).result().exits(1)
    #expect(spool.names("new") == [] && spool.names("failed").count == 4500)
    #expect(spool.names("partial").count == 4500)
    #expect(server.requests.count == 0)
  }
}
