import Testing

@testable import Spool
@testable import SpoolWorker

/// Which job comes next.
@Suite struct BacklogTests {
  private func candidate(_ name: String, at modified: Int64) -> Backlog.Candidate {
    Backlog.Candidate(name: FileName(name), origin: .new, modified: modified)
  }

  /// The host is what stands before the first dash; `bad-…` has none.
  private func host(_ candidate: Backlog.Candidate) -> String? {
    let host = String(candidate.name.display.prefix { $0 != "-" })
    return host == "bad" ? nil : host
  }

  /// Starts what fits, as a worker does, and returns the names in order.
  private func start(_ backlog: inout Backlog, jobs: Int, perHost: Int, _ running: inout [String: Int]) -> [String] {
    var names: [String] = []
    while running.values.reduce(0, +) < jobs,
      let (next, host) = backlog.next(perHost: perHost, running: running, host: host)
    {
      names.append(next.name.display)
      if !host.isEmpty { running[host, default: 0] += 1 }
    }
    return names
  }

  @Test func oldestFirstWithinAHost() {
    var backlog = Backlog((0..<50).shuffled().map { candidate("a-\($0)", at: Int64($0)) })
    var order: [String] = []
    while let (next, _) = backlog.next(perHost: 1, running: [:], host: host) { order.append(next.name.display) }
    #expect(order == (0..<50).map { "a-\($0)" })
    #expect(backlog.isEmpty)
  }

  /// What was dropped within one second: a job before its `~2`, the ninth before the tenth.
  @Test func shorterNamesFirstOnATie() {
    var backlog = Backlog(["a-10", "a-9", "a-9~2"].map { candidate($0, at: 5) })
    let order = (0..<3).compactMap { _ in backlog.next(perHost: 9, running: [:], host: host)?.candidate.name.display }
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

  @Test func perHostIsKept() {
    var backlog = Backlog((0..<20).map { candidate("a-\($0)", at: Int64($0)) })
    for perHost in [1, 2, 7] {
      var running = ["a": perHost - 1]
      #expect(start(&backlog, jobs: 100, perHost: perHost, &running).count == 1)
      #expect(running == ["a": perHost])
    }
  }

  /// Malformed jobs need no room anywhere.
  @Test func malformedJobsComeAnyhow() {
    var backlog = Backlog((0..<5).map { candidate("bad-\($0)", at: Int64($0)) } + [candidate("a-1", at: 0)])
    var running = ["a": 4]
    let started = start(&backlog, jobs: 100, perHost: 4, &running)
    #expect(Set(started) == Set((0..<5).map { "bad-\($0)" }))
    #expect(!backlog.isEmpty, "a-1 still waits")
  }

  @Test func nothingIsLostOrTwice() {
    var generator = SystemRandomNumberGenerator()
    let all = (0..<3000).map {
      candidate("\("abcdef".randomElement(using: &generator) ?? "a")-\($0)", at: Int64.random(in: 0...9))
    }
    var backlog = Backlog(all)
    var running: [String: Int] = [:]
    var seen: [String] = []
    while !backlog.isEmpty {
      let started = start(&backlog, jobs: 8, perHost: 2, &running)
      seen += started
      if started.isEmpty { running = [:] }
      for host in running.keys.shuffled().prefix(2) { running[host]? -= 1 }
      running = running.filter { $0.value > 0 }
    }
    #expect(seen.count == 3000 && Set(seen).count == 3000)
  }
}
