import Spool
import Testing

@testable import SpoolWorker

/// While a proxy fails, one job at a time tries it.
@Suite struct ProxyWaitTests {
  /// Jobs of several hosts behind the proxy `p`, and one without a proxy.
  private func scheduler(_ count: Int) -> Scheduler {
    var scheduler = Scheduler(Slots.Limits(jobs: 4, perHost: 4, commits: 9))
    for number in 0..<count {
      scheduler.looked(
        at: Candidate(name: FileName("j-\(number)"), origin: .new, modified: Int64(number)),
        Peek(host: "h\(number)", proxy: "p"))
    }
    return scheduler
  }

  /// The names of the jobs that start now, with the ids from `id` on.
  private func start(_ scheduler: inout Scheduler, _ id: UInt64, at now: Int64) -> [String] {
    var names: [String] = []
    while case .start(let choice) = scheduler.nextStep(at: now) {
      scheduler.started(id + UInt64(names.count), choice)
      names.append(choice.candidate.name.display)
    }
    return names
  }

  @Test func oneJobTriesAfterPausesThatGrow() {
    var scheduler = scheduler(20)
    #expect(start(&scheduler, 0, at: 0).count == 4)
    let news = (0..<4).map { scheduler.proxyFailed($0, "p", "it is down", at: 1000) }
    #expect(news == [true, false, false, false], "it is told once")
    for id in UInt64(0)..<4 { scheduler.ended(id) }
    #expect(scheduler.proxyObstacle(at: 1000) == "it is down")
    var (now, pauses): (Int64, [Int64]) = (1000, [])
    for id in UInt64(10)..<17 {
      let began = now
      while start(&scheduler, id, at: now).isEmpty, now < began + 1_000_000 { now += 1000 }
      pauses.append((now - began) / 1000)
      #expect(start(&scheduler, 99, at: now + 1_000_000).isEmpty, "only one")
      let isNews = scheduler.proxyFailed(id, "p", "it is down", at: now)
      #expect(!isNews)
      scheduler.ended(id)
    }
    #expect(pauses == [15, 30, 60, 120, 240, 300, 300])
  }

  @Test func theWayIsOpenWhenTheProbeHasPassed() {
    var scheduler = scheduler(20)
    #expect(start(&scheduler, 0, at: 0).count == 4)
    _ = scheduler.proxyFailed(0, "p", "it is down", at: 0)
    scheduler.ended(0)
    let byOther = scheduler.passedProxy(1)
    #expect(byOther == nil, "it was served before the proxy failed")
    for id in UInt64(1)..<4 { scheduler.ended(id) }
    #expect(start(&scheduler, 10, at: 15_000).count == 1)
    // One that is held, for example, shows nothing.
    scheduler.ended(10)
    #expect(start(&scheduler, 11, at: 15_000).count == 1)
    let proxy = scheduler.passedProxy(11)
    #expect(proxy == "p")
    #expect(start(&scheduler, 12, at: 15_000).count == 3, "beside the probe")
    #expect(scheduler.slots.proxies.reason == nil)
  }

  @Test func aNetworkThatComesBackEndsThePause() {
    var scheduler = scheduler(2)
    _ = start(&scheduler, 0, at: 0)
    _ = scheduler.proxyFailed(0, "p", "it is down", at: 0)
    for id in UInt64(0)..<2 { scheduler.ended(id) }
    scheduler.looked(
      at: Candidate(name: FileName("late"), origin: .new, modified: 9), Peek(host: "h", proxy: "p"))
    #expect(start(&scheduler, 9, at: 1).isEmpty)
    scheduler.tryProxies(at: 1)
    #expect(start(&scheduler, 9, at: 1) == ["late"])
  }

  /// Jobs that need no proxy, or another one, start; also one that waits for an output, and one that may kill workers.
  @Test func othersStart() {
    var scheduler = scheduler(1)
    _ = start(&scheduler, 0, at: 0)
    _ = scheduler.proxyFailed(0, "p", "it is down", at: 0)
    scheduler.ended(0)
    func look(_ name: String, _ proxy: String?, deaths: Int = 0) {
      scheduler.looked(
        at: Candidate(name: FileName(name), origin: .new, modified: 1),
        Peek(host: name, deaths: deaths, proxy: proxy, output: name == "held" ? "x".exact : nil))
    }
    look("held", "p")
    look("suspect", "p", deaths: 2)
    #expect(scheduler.proxyObstacle(at: 1) != nil)
    look("direct", nil)
    look("other", "q")
    #expect(scheduler.proxyObstacle(at: 1) == nil)
    #expect(start(&scheduler, 10, at: 1).sorted() == ["direct", "other"])
  }
}
