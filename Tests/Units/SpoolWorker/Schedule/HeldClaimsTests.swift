import TestSupport
import Testing

@testable import Spool
@testable import SpoolWorker

/// Claims of other workers are looked at when their leases end.
@Suite struct HeldClaimsTests {
  private func choice(_ name: String) -> Choice {
    Choice(candidate: Candidate(name: FileName(name), origin: .cur, modified: 1), peek: Peek(host: "h"))
  }

  @Test func theyComeBackWithoutAPass() {
    var scheduler = Scheduler(TransferLimits(jobs: 4, perHost: 4, commits: 4))
    scheduler.willBeDue(choice("a:beta.1.2"), at: 100)
    scheduler.willBeDue(choice("b:beta.1.2"), at: 50)
    scheduler.willBeDue(choice("b:beta.1.2"), at: 160)
    #expect(!scheduler.isDue(at: 1000), "no pass is wanted for them")
    #expect(scheduler.untilDue(at: 0, 40) == 60_000)
    scheduler.addDue(at: 99)
    #expect(scheduler.backlog.isEmpty)
    scheduler.addDue(at: 100)
    #expect(scheduler.backlog.candidates.map(\.name.display) == ["a:beta.1.2"])
    #expect(scheduler.untilDue(at: 0, 100) == 60_000)
    scheduler.addDue(at: 160)
    #expect(scheduler.backlog.candidates.count == 2 && scheduler.untilDue(at: 0, 160) == Rescan.standardInterval)
  }

  /// It is not even opened: its owner's locks prove nothing here, and its last heartbeat is young.
  @Test func aClaimOfAnotherHostIsHeldForItsLease() throws {
    let fixture = try Fixture()
    let now = Timestamp.now()
    func look(_ name: String, secondsAgo: Int64) throws -> String {
      try fixture.write("cur/\(name)", "https://h/a\n")
      try setModificationTime(fixture.files.path("cur/\(name)"), to: Int(now.seconds - secondsAgo))
      switch try SpoolReader(fixture.spool).look(.cur, FileName(name), at: now) {
      case .held(let claim, let end): return "\(claim.name.display) for \(end - now.seconds) s"
      case .candidate(let claim): return claim.name.display
      case .later, .nothing: return "not seen"
      }
    }
    let lease = Leases(fixture.spool).length
    #expect(try look("a:beta.1.00000009", secondsAgo: 0) == "a:beta.1.00000009 for \(lease) s")
    #expect(try look("a:beta.1.00000009", secondsAgo: lease - 1) == "a:beta.1.00000009 for 1 s")
    #expect(try look("a:beta.1.00000009", secondsAgo: lease) == "a:beta.1.00000009")
    #expect(try look("a:beta.1.00000009", secondsAgo: -lease - 1) == "a:beta.1.00000009", "by a clock that was wrong")
    #expect(try look("a:alpha.1.00000009", secondsAgo: 0) == "a:alpha.1.00000009", "a neighbour's lock tells")
    #expect(try look("a", secondsAgo: 0) == "a", "nobody's")
  }
}
