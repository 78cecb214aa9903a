import Testing

@testable import Spool
@testable import SpoolWorker

/// Claims of other workers are looked at when their leases end.
@Suite struct HeldClaimsTests {
  private func choice(_ name: String) -> Choice {
    Choice(candidate: Candidate(name: FileName(name), origin: .cur, modified: 1), peek: Peek(host: "h"))
  }

  @Test func theyComeBackWithoutAPass() {
    var scheduler = Scheduler(Slots.Limits(jobs: 4, perHost: 4, commits: 4))
    scheduler.willBeDue(choice("a:beta.1.2"), at: 100)
    scheduler.willBeDue(choice("b:beta.1.2"), at: 50)
    scheduler.willBeDue(choice("b:beta.1.2"), at: 160)
    #expect(!scheduler.isDue(at: 1000), "no pass is wanted for them")
    #expect(scheduler.untilDue(at: 40) == 60_000)
    scheduler.addDue(at: 99)
    #expect(scheduler.backlog.isEmpty)
    scheduler.addDue(at: 100)
    #expect(scheduler.backlog.candidates.map(\.name.display) == ["a:beta.1.2"])
    #expect(scheduler.untilDue(at: 100) == 60_000)
    scheduler.addDue(at: 160)
    #expect(scheduler.backlog.candidates.count == 2 && scheduler.untilDue(at: 160) == Scheduler.interval)
  }
}
