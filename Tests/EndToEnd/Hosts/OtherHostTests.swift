import Glibc
import TestSupport
import Testing

/// What another host does to a job that runs here: bindfs, and the directory below for the other host.
@Suite struct OtherHostTests {
  enum Gesture: CaseIterable, Sendable { case remove, hold, takeOver }

  @Test(.enabled("needs bindfs") { try await Need.bindfs.isMet() }, arguments: Gesture.allCases)
  func anotherHostsGesture(gesture: Gesture) async throws {
    let gate = try Gate()
    let server = try halfwayServer(halfwayBody, gate: gate)
    let spool = try TemporarySpool()
    let mount = try await BindMount(spool.root)
    try spool.drop("a", "\(server.url("/a"))\n\(patient)# complete\n")
    let worker = try startSpoolrun(["--once", "-v", mount.path])
    try await waitUntil("half of it is there") { spool.length("partial/a.part") == halfwayBody.count / 2 }
    let claim = try spool.claim(of: "a")
    let event: String
    switch gesture {
    case .remove:
      try #require(unlink(spool.path(claim)) == 0)
      event = "cancelled"
    case .hold:
      try spool.move(claim, "hold/a")
      event = "held"
    case .takeOver:
      try spool.move(claim, "cur/a:elsewhere.1.0000000a")
      event = "taken-over"
    }
    let result = try await worker.result().exits(0)
    let events = ["cancelled", "held", "taken-over"].filter { result.errors.contains(" \($0) job=a") }
    #expect(events == [event], "\(result)")
    #expect(spool.length("partial/a.part") == (gesture == .remove ? -1 : halfwayBody.count / 2))
  }
}
