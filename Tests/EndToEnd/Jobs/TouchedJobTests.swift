import Glibc
import TestSupport
import Testing

/// `touch`, without `-c`, where a job waits for its next attempt, while that attempt runs.
@Suite struct TouchedJobTests {
  @Test func `the empty file takes no name`() async throws {
    let gate = try Gate()
    defer { gate.open() }
    let server = try halfwayServer(halfwayBody, gate: gate)
    let spool = try TemporarySpool()
    try spool.drop("x", "\(server.url("/x"))\n\(patient)")
    try spool.order("o", "url: \(server.url("/o"))\nevery: 1d\nentries: list\n\(patient)")
    let worker = try startSpoolrun([spool.root])
    defer { worker.send(signal: SIGKILL) }
    try await waitUntil("both are under way") { server.requests.count == 2 }
    let touched = ["partial/x", "standing/o"].map(spool.path)
    for path in touched {
      try writeFile(path, [])
      // It is old enough to be taken for whole.
      try setModificationTime(path, secondsFromNow: -60)
    }
    try #require(await spoolrun("--once", spool.root).status == .exited(0))
    #expect(spool.names("failed") == [] && spool.names("cur").count == 2)
    try await worker.stop().exits(75)
    #expect(spool.names("partial") == ["x", "x.part"] && spool.names("standing") == ["o"])
    for path in touched { #expect(try !readFile(path).isEmpty) }
    #expect(spool.names("cur") == [] && spool.names("failed") == [] && spool.names("tmp") == [])
  }

  @Test(arguments: [[], ["hold", "x"], ["cancel", "x"], ["hold", "--all"], ["url", "x"]])
  func `it is no second job for a gesture, and goes with the job`(gesture: [String]) async throws {
    let gate = try Gate()
    defer { gate.open() }
    let server = try halfwayServer(halfwayBody, gate: gate)
    let spool = try TemporarySpool()
    try spool.drop("x", "\(server.url("/x"))\n\(patient)")
    let worker = try startSpoolrun(["--once", spool.root])
    defer { worker.send(signal: SIGKILL) }
    try await waitUntil("it is under way") { server.requests.count == 1 }
    try spool.write("partial/x", [])
    try setModificationTime(spool.path("partial/x"), secondsFromNow: -60)
    #expect(try await !spoolrun("status", spool.root).output.contains("retrying"))
    if !gesture.isEmpty {
      let arguments = gesture + (gesture[0] == "url" ? [server.url("/y")] : [])
      try await spoolrun(arguments, environment: ["SPOOLRUN_SPOOL": spool.root]).exits(0)
    }
    gate.open()
    try await worker.result().exits(0)
    let places = ["hold": [["hold/x"]], "cancel": [[]], "url": [["new/x"], ["done/x"]]][gesture.first] ?? [["done/x"]]
    #expect(places.contains(spool.places(of: "x")), "\(spool.places(of: "x"))")
    #expect(spool.names("failed") == [] && spool.names("tmp") == [])
  }
}
