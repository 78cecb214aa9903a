import Glibc
import TestSupport
import Testing

/// What another host does to a job that runs here: bindfs, and the directory below for the other host.
@Suite struct OtherHostTests {
  enum Gesture: CaseIterable, Sendable { case remove, hold, takeOver }

  @Test(.enabled("needs bindfs") { try await Need.bindfs.isMet() }, arguments: Gesture.allCases)
  func anotherHostsGesture(gesture: Gesture) async throws {
    let spool = try TemporarySpool()
    let mount = try await BindMount(spool.root)
    let (_, server, worker, _) = try await startHalfway(
      "# complete\n", in: spool, at: mount.path, ["--once", "-v"])
    defer { withExtendedLifetime(server) {} }
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
