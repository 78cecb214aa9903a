import Spool
import Testing

@testable import SpoolWorker

/// Servers and proxies that rest, and who probes them.
@Suite struct ServerRestsTests {
  private static let server = "https://h:443"
  private static let proxy = ServerRests.proxy("p:1")

  private func fault(_ cause: ServerRests.Cause, asked: Int64? = nil, url: UInt64? = 1) -> ServerRests.Fault {
    ServerRests.Fault(cause: cause, code: "http-429", reason: "it is down", asked: asked, url: url)
  }

  private func fail(
    _ rests: inout ServerRests, _ id: UInt64, of key: String = server, _ fault: ServerRests.Fault, at now: Int64
  ) -> (until: Int64, isNew: Bool)? { rests.failed(id, key, fault, at: now, jitter: 0.5) }

  /// How long each rest is, if one probe after the other fails.
  private func pauses(_ key: String, _ fault: (UInt64) -> ServerRests.Fault) -> [Int64] {
    var (rests, now, pauses) = (ServerRests(), Int64(1000), [Int64]())
    for id in UInt64(0)..<12 {
      rests.started(id, [key], at: now)
      guard let end = fail(&rests, id, of: key, fault(id), at: now)?.until else { return [] }
      pauses.append((end - now) / 1000)
      #expect(rests.isClosed([key], at: end - 1) && !rests.isClosed([key], at: end))
      now = end
    }
    return pauses
  }

  @Test func pausesGrow() {
    #expect(
      pauses(Self.server) { _ in fault(.unreachable) }
        == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600])
    #expect(pauses(Self.proxy) { _ in fault(.unreachable) }.suffix(3) == [300, 300, 300])
    #expect(pauses(Self.server) { fault(.asked, url: $0) }.suffix(3) == [3600, 3600, 3600])
  }

  /// A server that refuses without saying when it takes more is soon asked about as often as it bears.
  @Test(arguments: [2, 20, 100])
  func aRateIsLearned(rate: Double) {
    var (rests, now, id) = (ServerRests(perHost: 16), Int64(0), UInt64(0))
    var (done, refused, level, seen) = (0, 0, 0.0, Int64(0))
    while done < 500, now < 1_000_000 {
      if let rest = rests.rests[Self.server], now < rest.until { now = rest.until }
      id += 1
      rests.started(id, [Self.server], at: now)
      (level, seen) = (max(0, level - rate * Double(now - seen) / 1000), now)
      if level < 10 {
        (level, done) = (level + 1, done + 1)
        _ = rests.answered(id, [Self.server], at: now)
      } else {
        refused += 1
        _ = rests.failed(id, Self.server, fault(.asked, url: id), running: 1, at: now, jitter: 0.5)
      }
      rests.ended(id)
      now += max(5, rests.pause(of: Self.server))
    }
    #expect(done == 500 && now < Int64(1.6 * 500_000 / rate) + 10_000 && refused < 20, "\(now) ms, \(refused) refused")
  }

  /// Hours in which nobody asks show nothing of how often a server may be asked.
  @Test func anIdleTimeIsNoRate() {
    var rests = ServerRests(perHost: 16)
    for now in Int64(0)..<16 { _ = rests.answered(1, [Self.server], at: now) }
    var now: Int64 = 3_600_000
    for id in UInt64(1)...2 {
      _ = rests.failed(id, Self.server, fault(.asked, url: id), running: 1, at: now, jitter: 0.5)
      #expect(rests.pause(of: Self.server) < 100)
      now = rests.rests[Self.server]?.until ?? 0
      rests.started(9, [Self.server], at: now)
      for second in Int64(0)..<16 { _ = rests.answered(9, [Self.server], at: now + second) }
      rests.ended(9)
      now += 8 * 3_600_000
    }
    _ = rests.failed(3, Self.server, fault(.asked, url: 3), running: 1, at: now, jitter: 0.5)
    #expect(rests.pause(of: Self.server) < 1000, "16 answers and a rest of 10 s")
  }

  /// A server that has refused a second connection does not rest, and bears no more than it had.
  @Test func aConnectionBesideOthersIsRefused() {
    var rests = ServerRests(perHost: 16)
    rests.bears(Self.server, 3, at: 0)
    #expect(rests.bears(Self.server) == 3 && rests.limit(of: Self.server) == 3 && rests.rests.isEmpty)
    rests.bears(Self.server, 5, at: 0)
    #expect(rests.bears(Self.server) == 3, "it has refused more already")
    for _ in 0..<9 { _ = rests.answered(1, [Self.server], at: 100) }
    #expect(rests.limit(of: Self.server) == 3)
    // After some minutes it is tried again.
    for _ in 0..<9 { _ = rests.answered(1, [Self.server], at: 10_000_000) }
    #expect(rests.limit(of: Self.server) > 3)
  }

  /// By the only job, which runs without a slot of the spool: it was never asked again.
  @Test func aConnectionBesideNoOtherIsRefused() {
    var rests = ServerRests(perHost: 1)
    rests.bears(Self.server, 0, at: 0)
    #expect(rests.limit(of: Self.server) == 1)
    _ = rests.answered(1, [Self.server], at: 100)
    #expect(rests.bears(Self.server) == 1, "each of its jobs gets one connection")
    var others = ServerRests(perHost: 1)
    _ = others.learn(Self.server, nil, bears: 1, at: 0)
    #expect(others.bears(Self.server) == 1)
    _ = rests.answered(1, [Self.server], at: 10_000_000)
    #expect(rests.bears(Self.server) == nil)
  }

  /// It had four of the sixteen that it might get.
  @Test func halfOfWhatItHad() {
    var rests = ServerRests(perHost: 16)
    _ = rests.failed(1, Self.server, fault(.asked, asked: 5), running: 4, at: 0, jitter: 0.5)
    #expect(rests.bears(Self.server) == 2)
  }

  /// Short runs, each of which reads what the one before has written.
  @Test(arguments: [(Int64(-301_000), 2), (-200_000, 1), (60_000, 1), (432_000_000, 2)])
  func whatAServerRegainsInShortRuns(written: Int64, bears: Int) {
    var rests = ServerRests(perHost: 16)
    _ = rests.learn(Self.server, nil, bears: 1, written: written, at: 0)
    _ = rests.answered(1, [Self.server], at: 100)
    #expect(rests.bears(Self.server) == bears)
  }

  /// A server that has just answered has perhaps lost one connection.
  @Test func aConnectionThatIsLost() {
    var rests = ServerRests()
    _ = rests.answered(1, [Self.server], at: 0)
    let ends = [(UInt64(2), Int64(5000)), (3, 6000), (4, 16_000)].map { id, now in
      rests.started(id, [Self.server], at: now)
      return fail(&rests, id, fault(.unreachable), at: now)?.until
    }
    #expect(ends == [6000, 16_000, 36_000])
    #expect(rests.firstEnd(at: 16_000) == 36_000 && rests.lasting == [], "a run stays for it")
    _ = rests.answered(4, [Self.proxy], at: 0)
    let later = fail(&rests, 5, of: Self.proxy, fault(.unreachable), at: 10_000)?.until
    #expect(later == 20_000 && rests.lasting == [Self.proxy])
  }

  /// A URL that answers so is perhaps the only one. A second one is believed, unless it has credentials of its own.
  @Test func oneURLsWordCountsForAMinute() {
    #expect(pauses(Self.server) { _ in fault(.asked, asked: 7200) }.allSatisfy { $0 == 60 })
    #expect(pauses(Self.server) { _ in fault(.asked, asked: 7200, url: nil) }.allSatisfy { $0 == 60 })
    #expect(pauses(Self.server) { fault(.asked, asked: 7200, url: $0) } == [60] + Array(repeating: 7200, count: 11))
    #expect(pauses(Self.server) { fault(.asked, asked: 1 << 40, url: $0) }.last == 86_400)
    // Those that were under way speak, too, but make the pauses no longer.
    var rests = ServerRests()
    _ = fail(&rests, 1, fault(.asked, asked: 600), at: 0)
    let same = fail(&rests, 2, fault(.asked, asked: 600, url: 1), at: 5)
    #expect(same?.until == 60_005)
    let believed = fail(&rests, 3, fault(.asked, asked: 600, url: 2), at: 10)
    #expect(believed?.until == 600_010 && believed?.isNew == false)
    #expect(rests.rests[Self.server]?.failures == 1)
  }

  @Test func aServerThatSaysOneSecondIsNotAskedEachSecond() {
    let pauses = pauses(Self.server) { fault(.asked, asked: 1, url: $0) }
    #expect(pauses.prefix(4) == [1, 10, 20, 40])
  }

  @Test func oneJobProbes() {
    var rests = ServerRests(perHost: 8)
    let way = [Self.server, Self.proxy]
    _ = fail(&rests, 1, fault(.unreachable), at: 0)
    #expect(rests.isClosed(way, at: 9999))
    let early = rests.mayAsk(2, way, at: 9999)
    let probe = rests.mayAsk(2, way, at: 10_000)
    let again = rests.mayAsk(2, way, at: 10_000)
    let other = rests.mayAsk(3, way, at: 10_000)
    #expect(!early && probe && again && !other && rests.isClosed(way, at: 10_000))
    let byOther = rests.answered(1, way, at: 10_000)
    #expect(byOther == [], "it may use a connection from before")
    rests.ended(2)
    #expect(!rests.isClosed(way, at: 10_000), "it has shown nothing")
    rests.started(4, way, at: 10_000)
    let byProbe = rests.answered(4, way, at: 11_000)
    #expect(byProbe == [Self.server])
    #expect(!rests.isClosed(way, at: 11_000))
  }

  /// It may be busy with what is there, or with another mirror.
  @Test func aProbeThatDoesNotAskLosesItsTurn() {
    var rests = ServerRests()
    _ = fail(&rests, 1, fault(.unreachable), at: 0)
    rests.started(2, [Self.server], at: 10_000)
    let early = rests.mayAsk(3, [Self.server], at: 129_999)
    let other = rests.mayAsk(3, [Self.server], at: 130_000)
    let former = rests.mayAsk(2, [Self.server], at: 130_000)
    #expect(!early && other && !former && rests.isClosed([Self.server], at: 130_000))
    rests.ended(2)
    #expect(rests.isClosed([Self.server], at: 130_000), "the other still asks")
    let third = rests.mayAsk(4, [Self.server], at: 250_000)
    // A server may take minutes for an answer.
    #expect(third && rests.answered(3, [Self.server], at: 260_000) == [Self.server])
  }

  /// Twice as many with each answer. One that asked for a rest bears half of what it had before, for some minutes.
  @Test(arguments: [(ServerRests.Cause.unreachable, [2, 4, Int.max]), (.asked, [2, 4, 4])])
  func theOthersFollowOneByOne(_ cause: ServerRests.Cause, _ limits: [Int]) {
    var rests = ServerRests(perHost: 8)
    _ = fail(&rests, 1, fault(cause, asked: 5), at: 0)
    rests.started(2, [Self.server], at: 20_000)
    let found = (0..<3).map { _ in
      _ = rests.answered(2, [Self.server], at: 20_000)
      return rests.limit(of: Self.server)
    }
    #expect(found == limits)
    for _ in 0..<3 { _ = rests.answered(2, [Self.server], at: 400_000) }
    #expect(rests.limit(of: Self.server) == .max)
    // Once more.
    for id in UInt64(3)..<6 {
      _ = fail(&rests, id, fault(.asked, asked: 5), at: 500_000)
      rests.started(id + 10, [Self.server], at: 510_000)
      for _ in 0..<9 { _ = rests.answered(id + 10, [Self.server], at: 510_000) }
    }
    #expect(rests.limit(of: Self.server) == 1)
  }

  @Test func errorsOfSeveralPathsAreTheServers() {
    var rests = ServerRests()
    func isServers(_ url: UInt64) -> Bool { fail(&rests, 1, fault(.broken, url: url), at: 0) != nil }
    let two = [1, 2, 1, 2].map { isServers($0) }
    #expect(two == [false, false, false, false])
    _ = rests.answered(9, [Self.server], at: 0)
    let three = [3, 4, 5].map { isServers($0) }
    #expect(three == [false, false, true])
  }

  /// What redirects lead to is perhaps one dropper's: the server that led there rests a minute at most, keeps its
  /// transfers, and is not away, however many such URLs there are.
  @Test(arguments: [nil, 86_400] as [Int64?]) func redirectsToDeadServers(asked: Int64?) throws {
    var (rests, now) = (ServerRests(perHost: 8), Int64(0))
    let patience = ServerRests.Patience(since: -999_000_000, milliseconds: 100_000)
    for url in UInt64(0)..<30 {
      rests.started(url, [Self.server], at: now)
      var fault = fault(.broken, asked: asked, url: url)
      fault.isOfOther = true
      guard let end = rests.failed(url, Self.server, fault, running: 4, at: now, jitter: 0.5)?.until else { continue }
      rests.noteFailure(Self.server, since: -999_000_000)
      #expect(end - now <= 60_000 && !rests.isAway([Self.server], patience, at: now))
      now = end
    }
    #expect(now > 300_000 && rests.bears(Self.server) == nil && rests.rests[Self.server]?.onlyURL != nil)
    // It fails itself: from now on.
    rests.started(99, [Self.server], at: now)
    let first = fail(&rests, 99, fault(.unreachable), at: now)?.until
    #expect(first == now + 10_000)
    #expect(!rests.isAway([Self.server], patience, at: now))
    // A rest that begins anew with one URL's word is believed no more than any other.
    rests.started(100, [Self.server], at: now + 10_000)
    let second = fail(&rests, 100, fault(.asked, asked: 7200, url: 7), at: now + 10_000)?.until
    #expect(second == now + 70_000)
  }

  @Test func aNetworkThatChangesEndsWhatCouldNotBeReached() {
    var rests = ServerRests()
    _ = fail(&rests, 1, of: Self.proxy, fault(.unreachable), at: 0)
    _ = fail(&rests, 2, fault(.asked), at: 0)
    #expect(rests.unreachable == [Self.proxy])
    rests.networkChanged(at: 1)
    #expect(!rests.isClosed([Self.proxy], at: 1) && rests.isClosed([Self.server], at: 1))
  }

  @Test func thousandsAreForgotten() {
    var rests = ServerRests()
    for number in 0..<3000 { _ = fail(&rests, 1, of: "http://h\(number):80", fault(.asked), at: Int64(number)) }
    #expect(rests.rests.count == 1000 && rests.rests["http://h2999:80"] != nil)
  }

  // MARK: patience

  /// Five days since the server was seen to be away, since there is the job, and since anybody was answered.
  @Test(
    arguments: [
      (0, -9, nil, false), (-6, -9, nil, true), (-9, -4, nil, false), (-9, -9, -4, false), (-9, -9, -6, true),
    ]
      as [(Int64, Int64, Int64?, Bool)])
  func whenAJobGivesUp(away: Int64, known: Int64, answered: Int64?, isAway: Bool) {
    let day: Int64 = 86_400_000
    var rests = ServerRests()
    let rest = ServerRests.Rest(
      cause: .unreachable, code: "connect", reason: "", until: 3_600_000, since: away * day, failed: -60_000,
      failures: 30)
    _ = rests.learn(Self.server, rest, answered: answered.map { $0 * day }, at: 0)
    let patience = ServerRests.Patience(since: known * day, milliseconds: 5 * day)
    #expect(rests.isAway([Self.server], patience, at: 0) == isAway)
    #expect(!rests.isAway([Self.server], .endless, at: 0))
    // One job asks before the others are given up.
    #expect(!rests.isAway([Self.server], patience, at: 3_600_000))
    rests.started(1, [Self.server], at: 0)
    #expect(!rests.isAway([Self.server], patience, at: 0))
  }

  /// A name that nobody knows, while other servers answer, is a typing error; not if its server has ever answered.
  @Test(
    arguments: [
      ("resolve", true, false, true), ("resolve", true, true, false), ("resolve", false, false, false),
      ("connect", true, false, false),
    ])
  func anUnknownNameGetsADay(code: String, othersAnswer: Bool, hasAnswered: Bool, isAway: Bool) {
    let day: Int64 = 86_400_000
    var rests = ServerRests()
    let rest = ServerRests.Rest(
      cause: .unreachable, code: code, reason: "", until: 3_600_000, since: -2 * day, failed: 0, failures: 30)
    _ = rests.learn(Self.server, rest, answered: hasAnswered ? -3 * day : nil, at: 0)
    if othersAnswer { _ = rests.answered(9, ["https://other:443"], at: -1000) }
    let patience = ServerRests.Patience(since: -2 * day, milliseconds: 5 * day)
    #expect(rests.isAway([Self.server], patience, at: 0) == isAway)
  }

  // MARK: other workers and people

  @Test func whatOthersFindIsLearned() {
    func rest(until: Int64) -> ServerRests.Rest {
      ServerRests.Rest(
        cause: .asked, code: "http-429", reason: "", until: until, since: 0, failed: 0, failures: 2)
    }
    var rests = ServerRests(perHost: 4)
    let isNew = rests.learn(Self.server, rest(until: 50_000), at: 0)
    #expect(!isNew && rests.isClosed([Self.server], at: 49_999))
    rests.started(7, [Self.server], at: 50_000)
    let isLonger = rests.learn(Self.server, rest(until: 90_000), at: 50_000)
    #expect(!isLonger && rests.isClosed([Self.server], at: 99_000), "it still has its probe")
    rests.ended(7)
    let isTouched = rests.learn(Self.server, rest(until: 60_000), at: 60_000)
    #expect(isTouched && !rests.isClosed([Self.server], at: 60_000))
    let isGone = rests.learn(Self.server, nil, bears: 2, at: 60_000)
    #expect(isGone && rests.rests.isEmpty && rests.limit(of: Self.server) == 1 && rests.bears(Self.server) == 2)
  }

  /// Nor do several runs that ask for the same URL make its word count for more.
  @Test(arguments: [(UInt64(1), 60), (0, 60), (2, 7200), (nil, 7200)] as [(UInt64?, Int64)])
  func oneURLsWordInSeveralRuns(heard: UInt64?, seconds: Int64) {
    var rests = ServerRests()
    let rest = ServerRests.Rest(
      cause: .asked, code: "http-429", reason: "", until: 0, since: -60_000, failed: -60_000, failures: 1, url: heard)
    _ = rests.learn(Self.server, rest, at: 0)
    #expect(rests.rests[Self.server]?.onlyURL == heard)
    rests.started(1, [Self.server], at: 0)
    let end = fail(&rests, 1, fault(.asked, asked: 7200, url: heard == 0 ? nil : 1), at: 0)?.until
    #expect(end == seconds * 1000)
  }

  /// A job that a person made due need not wait for what failed before.
  @Test func aPersonsJobProbes() {
    var rests = ServerRests()
    _ = fail(&rests, 1, fault(.asked), at: 5000)
    #expect(rests.isClosed([Self.server], at: 6000, wantedAt: 4000))
    #expect(!rests.isClosed([Self.server], at: 6000, wantedAt: 6000))
    rests.started(2, [Self.server], at: 6000)
    #expect(rests.isClosed([Self.server], at: 6000, wantedAt: 6000), "one at a time")
    _ = fail(&rests, 2, fault(.asked), at: 8000)
    #expect(rests.isClosed([Self.server], at: 8000, wantedAt: 6000))
  }

  // MARK: the schedule

  private func look(_ scheduler: inout Scheduler, _ name: String, ways: [ServerRests.Way], deaths: Int = 0) {
    scheduler.backlog.add(
      Candidate(name: FileName(name), origin: .new, modified: 1),
      Peek(host: ways.first?.first ?? "h", deaths: deaths, ways: ways, output: name == "held" ? "x".exact : nil))
  }

  /// The names of the jobs that start now, and the servers that they begin with.
  private func start(_ scheduler: inout Scheduler, _ rests: ServerRests, at now: Int64) -> [String] {
    var names: [String] = []
    while case .start(let choice) = scheduler.nextStep(at: now, rests) {
      scheduler.started(UInt64(names.count) + 100, choice)
      names.append("\(choice.candidate.name.display) \(choice.host)")
    }
    return names
  }

  /// Jobs of other servers start, and those that have another mirror; a suspect and a job with an output do not.
  @Test func whoWaits() {
    var scheduler = Scheduler(TransferLimits(jobs: 9, perHost: 4, commits: 9))
    var rests = ServerRests()
    _ = fail(&rests, 1, of: "a", fault(.asked), at: 0)
    _ = fail(&rests, 1, of: Self.proxy, fault(.unreachable), at: 0)
    look(&scheduler, "held", ways: [["a"]])
    look(&scheduler, "suspect", ways: [["a"]], deaths: 2)
    look(&scheduler, "behind", ways: [["b", Self.proxy]])
    look(&scheduler, "both", ways: [["a"], ["b", Self.proxy]])
    #expect(scheduler.onlyServersAreWantedFor(at: 1, rests))
    look(&scheduler, "mirror", ways: [["a"], ["b"]])
    look(&scheduler, "other", ways: [["c"]])
    // A dead worker's claim.
    look(&scheduler, "move", ways: [])
    #expect(!scheduler.onlyServersAreWantedFor(at: 1, rests))
    let started = start(&scheduler, rests, at: 1)
    #expect(started.sorted() == ["mirror b", "move h", "other c"])
  }

  /// One job is less patient than those before it.
  @Test func whoseTimeIsOverIsGivenUp() {
    var scheduler = Scheduler(TransferLimits(jobs: 9, perHost: 4, commits: 9))
    var rests = ServerRests()
    _ = fail(&rests, 1, of: "a", fault(.unreachable), at: 0)
    rests.noteFailure("a", since: -7_200_000)
    for (name, hours) in [("long", 5), ("short", 1), ("longer", 9)] as [(String, Int64)] {
      var peek = Peek(host: "a", ways: [["a"]])
      peek.patience = ServerRests.Patience(since: -9_000_000, milliseconds: hours * 3_600_000)
      scheduler.backlog.add(Candidate(name: FileName(name), origin: .new, modified: 1), peek)
    }
    let started = start(&scheduler, rests, at: 1)
    #expect(started == ["short a"])
  }

  @Test func aServerThatComesBackGetsFew() {
    var scheduler = Scheduler(TransferLimits(jobs: 9, perHost: 4, commits: 9))
    var rests = ServerRests(perHost: 4)
    _ = fail(&rests, 1, of: "a", fault(.unreachable), at: 0)
    for number in 0..<9 { look(&scheduler, "j\(number)", ways: [["a"]]) }
    rests.started(2, ["a"], at: 1)
    _ = rests.answered(2, ["a"], at: 1)
    let first = start(&scheduler, rests, at: 1)
    #expect(first.count == 2)
    _ = rests.answered(100, ["a"], at: 1)
    let second = start(&scheduler, rests, at: 1)
    #expect(second.count == 2, "four in all")
  }

  // MARK: a run that ends when nothing is left

  @Test func aRunStaysAsLongAsItGetsSomewhere() {
    var stay = ServerStay()
    func wait(_ end: Int64?, _ now: Int64, _ progress: UInt64) -> Int64? {
      stay.wait(until: end, at: now, progress: progress)
    }
    let nothingWasFetched = wait(10_000, 0, 0)
    let isForTheNextRun = wait(31_000, 0, 5)
    let nothingWaits = wait(nil, 0, 5)
    #expect([nothingWasFetched, isForTheNextRun, nothingWaits] == [nil, nil, nil] && !stay.isOn)
    let (first, later) = (wait(10_000, 0, 5), wait(10_000, 9000, 5))
    #expect(first == 10_000 && later == 1000 && stay.isOn)
    let (afterFailure, afterProgress) = (wait(30_000, 12_000, 5), wait(30_000, 12_000, 6))
    #expect(afterFailure == nil && afterProgress == 18_000)
  }
}
