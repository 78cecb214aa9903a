import Testing

@testable import Spool
@testable import SpoolWorker

/// Which job comes next.
@Suite struct BacklogTests {
  private func candidate(_ name: String, at modified: Int64) -> Candidate {
    Candidate(name: FileName(name), origin: .new, modified: modified)
  }

  /// The host is what is before the first dash; `bad-…` has none. After a `+` comes how many workers died.
  private func peek(_ candidate: Candidate) -> Peek {
    let host = String(candidate.name.display.prefix { $0 != "-" })
    let deaths = candidate.name.display.split(separator: "+").dropFirst().first.flatMap { Int($0) }
    return Peek(host: host == "bad" ? nil : host, deaths: deaths ?? 0)
  }

  /// Looks at what has to be looked at, once each, as a worker does.
  private func next(_ backlog: inout Backlog, perHost: Int, running: [String: Int]) -> Choice? {
    while let next = backlog.next(FreeSlots(perHost: perHost, running: running)) {
      switch next {
      case .look(let candidate): backlog.add(candidate, peek(candidate))
      case .start(let choice): return choice
      case .park, .search: return nil
      }
    }
    return nil
  }

  /// Starts what fits, as a worker does, and returns the names in order.
  private func start(_ backlog: inout Backlog, jobs: Int, perHost: Int, _ running: inout [String: Int]) -> [String] {
    var names: [String] = []
    while running.values.reduce(0, +) < jobs,
      let next = next(&backlog, perHost: perHost, running: running)
    {
      names.append(next.candidate.name.display)
      if !next.host.isEmpty { running[next.host, default: 0] += 1 }
    }
    return names
  }

  @Test func `the oldest first within a second`() {
    var backlog = Backlog(
      (0..<50).shuffled().map {
        Candidate(name: FileName("a-\(50 - $0)"), origin: .new, modified: 5, nanoseconds: $0)
      })
    var order: [Int] = []
    while let next = next(&backlog, perHost: 1, running: [:]) { order.append(next.candidate.nanoseconds) }
    #expect(order == Array(0..<50))
  }

  /// What was dropped at the same time: a job before its `~2`, the ninth before the tenth.
  @Test func shorterNamesFirstOnATie() {
    var backlog = Backlog(["a-10", "a-9", "a-9~2"].map { candidate($0, at: 5) })
    let order = (0..<3).compactMap { _ in
      next(&backlog, perHost: 9, running: [:])?.candidate.name.display
    }
    #expect(order == ["a-9", "a-10", "a-9~2"])
  }

  /// A thousand old jobs of one host leave room for another's young ones.
  @Test(arguments: [999, 1000, 1001, 5000])
  func aThousandDoNotStarveOne(count: Int) {
    let many = (0..<count).map { candidate("a-\($0)", at: Int64($0)) }
    let few = (0..<3).map { candidate("b-\($0)", at: 1_000_000 + Int64($0)) }
    var backlog = Backlog((many + few).shuffled())
    var running: [String: Int] = [:]
    let started = start(&backlog, jobs: 8, perHost: 4, &running)
    #expect(running == ["a": 4, "b": 3])
    #expect(started.filter { $0.hasPrefix("a") } == (0..<4).map { "a-\($0)" })
    #expect(started.filter { $0.hasPrefix("b") } == (0..<3).map { "b-\($0)" })
    // A place that becomes free goes to the next of its host; nobody else has room.
    running["a"] = 3
    #expect(start(&backlog, jobs: 8, perHost: 4, &running) == ["a-4"])
    #expect(start(&backlog, jobs: 9, perHost: 4, &running) == [])
    #expect(!backlog.isEmpty)
  }

  @Test func theLeastBusyHostGoesFirst() {
    var backlog = Backlog(["a-1", "a-2", "b-1", "b-2", "c-1"].enumerated().map { candidate($1, at: Int64($0)) })
    var running: [String: Int] = [:]
    #expect(start(&backlog, jobs: 5, perHost: 4, &running) == ["a-1", "b-1", "c-1", "a-2", "b-2"])
  }

  /// Malformed jobs need no room anywhere.
  @Test func malformedJobsComeAnyhow() {
    var backlog = Backlog((0..<5).map { candidate("bad-\($0)", at: Int64($0)) } + [candidate("a-1", at: 0)])
    var running = ["a": 4]
    let started = start(&backlog, jobs: 100, perHost: 4, &running)
    #expect(Set(started) == Set((0..<5).map { "bad-\($0)" }))
    #expect(!backlog.isEmpty, "a-1 still waits")
  }

  /// However old it is. One that was there once may run beside others, one that was there twice may not.
  @Test func whatMayHaveKilledWorkersComesLast() {
    var backlog = Backlog(
      ["a-1+3", "a-2+1", "b-3+1", "a-4", "a-5+2"].enumerated().map { candidate($1, at: Int64($0)) })
    func nextSuspect(_ running: [String: Int]) -> String? {
      backlog.nextSuspect(FreeSlots(perHost: 1, running: running), isIdle: running.isEmpty)?.candidate.name.display
    }
    var running: [String: Int] = [:]
    #expect(start(&backlog, jobs: 9, perHost: 9, &running) == ["a-4"])
    #expect(backlog.hasOnlySuspects && !backlog.isEmpty && backlog.count == 4)
    #expect(nextSuspect(["a": 1]) == "b-3+1")
    #expect(nextSuspect(["a": 1]) == nil)
    #expect(nextSuspect([:]) == "a-2+1")
    #expect(nextSuspect(["b": 1]) == nil)
    backlog.append(candidate("b-6", at: 0))
    #expect(!backlog.hasOnlySuspects)
    #expect(start(&backlog, jobs: 9, perHost: 9, &running) == ["b-6"])
    #expect(nextSuspect([:]) == "a-5+2")
    backlog.removeAll { _ in true }
    #expect(backlog.isEmpty && nextSuspect([:]) == nil)
  }
}

extension FreeSlots {
  fileprivate init(perHost: Int, running: [String: Int]) {
    self.init(limits: TransferLimits(jobs: 100, perHost: perHost, commits: 1), running: running)
  }
}
