import Testing

@testable import Spool
@testable import SpoolWorker

/// What a run remembers of jobs that wait, however many fail.
@Suite struct WaitingJobsTests {
  @Test func howOneStandsAtTheEnd() {
    var jobs = WaitingJobs()
    for name in ["a", "b", "a"] { jobs.ended(FileName(name), isWaiting: true) }
    #expect(jobs.count == 2)
    for name in ["a", "c"] { jobs.ended(FileName(name), isWaiting: false) }
    #expect(jobs.count == 1)
  }

  /// The exit status tells of jobs that wait, also of those that were not counted.
  @Test func moreThanAreCounted() {
    var jobs = WaitingJobs()
    let names = (0..<WaitingJobs.mostCounted + 5).map { FileName("job-\($0)") }
    for _ in 0..<2 { for name in names { jobs.ended(name, isWaiting: true) } }
    #expect(jobs.count == WaitingJobs.mostCounted + 1)
    for name in names.prefix(WaitingJobs.mostCounted) { jobs.ended(name, isWaiting: false) }
    #expect(jobs.count == 1)
  }

  /// Else they would take the places of those that wait.
  @Test func thoseThatAreOverAwaitNothing() {
    var jobs = WaitingJobs()
    for name in ["a", "b"] { jobs.failed(FileName(name), awaiting: ["s"], until: 5) }
    jobs.ended(FileName("a"), isWaiting: false)
    #expect(jobs.take(awaiting: ["s"]).map(\.name) == [FileName("b")])
  }

  @Test func thoseThatAwaitSomethingAreTakenOnce() {
    var jobs = WaitingJobs()
    for number in 0..<WaitingJobs.mostAwaiting + 5 {
      jobs.failed(FileName("job-\(number)"), awaiting: ["s", "t"], until: 5)
    }
    #expect(jobs.awaitOthers(than: ["u"]) && !jobs.awaitOthers(than: ["t"]) && jobs.countForNetwork == 0)
    #expect(jobs.take(awaiting: [ServerRests.network]).isEmpty)
    let taken = jobs.take(awaiting: ["t", "u"])
    #expect(Set(taken.map(\.name)).count == WaitingJobs.mostAwaiting)
    #expect(taken.count == WaitingJobs.mostAwaiting && taken.allSatisfy { $0.origin == .partial && $0.knownDue == 5 })
    #expect(jobs.take(awaiting: ["s", "t"]).isEmpty)
    for keys in [[ServerRests.network], []] { jobs.failed(FileName("x"), awaiting: keys, until: 5) }
    #expect(jobs.take(awaiting: [ServerRests.network]).isEmpty, "what failed otherwise since then waits for its time")
  }
}
