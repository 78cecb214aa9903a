import Glibc
import Testing
import TestSupport

/// The matrix has to see what is wrong: records and spools that are doctored, one each.
struct MatrixEquipmentTests {
  private static let fresh = Scenario.began[0]

  /// What a worker did that ran undisturbed.
  private func record(of name: String) async throws -> (Scenario, [CallEvent]) {
    let scenario = try #require(Scenario.all.first { $0.name == name })
    let outcome = try await MatrixCase(scenario: scenario, faults: []).play()
    #expect(outcome.problems.isEmpty)
    #expect(CommitOrder(scenario: scenario, events: outcome.events).problems().isEmpty)
    return (scenario, outcome.events)
  }

  private func problems(_ scenario: Scenario, _ events: [CallEvent]) -> String {
    CommitOrder(scenario: scenario, events: events).problems().joined(separator: "; ")
  }

  /// Or the scenario would strike nothing of it.
  @Test func theLongJournalIsCompacted() async throws {
    let (_, events) = try await record(of: "long journal")
    #expect(events.contains { $0.kind == "write" && $0.path.hasPrefix("tmp/a:") })
  }

  /// Faults are spared only where another one leaves the same.
  @Test func repetitions() async throws {
    let fresh = try await MatrixCase(scenario: Self.fresh, faults: []).play()
    let giveUp = try #require(Scenario.all.first { $0.name == "give-up" })
    var other = try await MatrixCase(scenario: giveUp, faults: []).play()
    let (after, any) = (Fault(action: "kill-after", counted: .state), Fault(action: "fail", counted: .any))
    func spared(_ fault: Fault, _ clean: MatrixCase.Outcome, _ scenario: Scenario = giveUp) -> [Int] {
      let repetition = Repetition(scenario: scenario, clean: clean, model: fresh)
      return (1...fault.counted.count(in: clean.events)).filter { repetition.contains(fault, at: $0) }
    }
    // All calls before the first that names a job.
    let start = other.events.filter { $0.phase == .begun }.prefix { !$0.path.hasPrefix("new/") }.count
    #expect(start > 20 && spared(any, other) == Array(1...start))
    #expect(spared(any, fresh, Self.fresh) == [], "it is the model")
    #expect(spared(Fault(action: "fail", counted: .state), other) == [])
    // But the last call of a process, and one beside which another is under way.
    let calls = after.counted.count(in: other.events)
    #expect(spared(after, other).count > calls / 2 && !spared(after, other).contains(calls))
    let state = other.events.indices.filter { after.counted.contains(other.events[$0].kind) }
    other.events.swapAt(state[1], state[2])
    #expect(!spared(after, other).contains(1) && !spared(after, other).contains(2))
    other.events[0] = try #require(CallEvent(">\t\(other.events[0].process)\topen\t1\telsewhere\t"))
    #expect(spared(any, other) == [], "another start")
    other.occupied = ["new", "partial"]
    #expect(spared(any, other) == [])
  }

  @Test func syncsThatAreMissing() async throws {
    let (scenario, events) = try await record(of: "fresh")
    let publication = try #require(events.firstIndex { $0.kind == "link" && $0.target == "a.bin" })
    let part = events[publication].inode
    let withoutData = events.enumerated().filter { index, event in
      !(index < publication && event.isSync && event.inode == part)
    }.map(\.element)
    #expect(problems(scenario, withoutData).contains("its data was not durable before it got its name"))
    for (path, problem) in [
      ("files", "the receipt came before the fsync of the output's directory"),
      ("done", "no fsync of done/"), ("cur", "no fsync of cur/"),
    ] {
      let without = events.filter { !($0.kind == "fsync" && $0.path == path) }
      #expect(problems(scenario, without).contains(problem))
    }
    let withoutReceipt = events.filter { !($0.kind == "fsync" && $0.path.hasPrefix("cur/a:")) }
    #expect(problems(scenario, withoutReceipt).contains("its receipt was not durable before the move"))
  }

  @Test func callsInTheWrongOrder() async throws {
    let (scenario, events) = try await record(of: "fresh")
    let finish = try #require(events.firstIndex { $0.phase == .begun && $0.target == "done/a" })
    // The receipt's last line, written after its fsync.
    let receipt = try #require(
      events.lastIndex { $0.phase == .begun && $0.kind == "write" && $0.path.hasPrefix("cur/") })
    var late = events
    late.insert(late.remove(at: receipt), at: finish - 1)
    #expect(problems(scenario, late).contains("its receipt was not durable before the move"))
    // The data's last write, after its fdatasync.
    let write = try #require(
      events.lastIndex { $0.phase == .begun && $0.kind == "write" && $0.path.hasSuffix(".part") })
    let link = try #require(events.firstIndex { $0.phase == .begun && $0.kind == "link" })
    late = events
    late.insert(late.remove(at: write), at: link - 1)
    #expect(problems(scenario, late).contains("its data was not durable before it got its name"))
    // The data's name, which tells the payload from a stranger's, before the receipt.
    let unlink = try #require(
      events.firstIndex { $0.phase == .begun && $0.kind == "unlink" && $0.path == "partial/a.part" })
    late = events
    late.insert(late.remove(at: unlink), at: link + 2)
    #expect(problems(scenario, late).contains("the data's name went before the receipt was durable"))
    // The move to done/, before the fsync of the output's directory.
    let sync = try #require(events.firstIndex { $0.phase == .begun && $0.kind == "fsync" && $0.path == "files" })
    late = events
    let move = Array(late[finish...finish + 1])
    late.removeSubrange(finish...finish + 1)
    late.insert(contentsOf: move, at: sync)
    #expect(!problems(scenario, late).isEmpty)
  }

  @Test func directoriesThatAreNotDurable() async throws {
    let (scenario, events) = try await record(of: "nested directories")
    let without = events.filter { !($0.kind == "fsync" && $0.path == "sets") }
    #expect(problems(scenario, without).contains("fsync of sets, which got the new directory 2026"))
  }

  @Test func fsyncsThatAreRetried() async throws {
    let (scenario, events) = try await record(of: "fresh")
    for suffix in ["a.part", "cur/a:"] {
      let begun = try #require(events.firstIndex { $0.phase == .begun && $0.isSync && $0.path.contains(suffix) })
      let event = events[begun]
      let failed = try #require(
        CallEvent("!\t\(event.process)\t\(event.kind)\t\(event.inode)\t\(event.path)\tInput/output error"))
      var retried = events
      retried.insert(failed, at: begun)
      #expect(problems(scenario, retried).contains("a failed fsync was retried on the same inode"))
    }
  }

  @Test(arguments: [
    "wrong payload", "short payload", "no payload", "wrong receipt", "no receipt", "lost", "in two states", "left data",
    "left claim", "stray payload", "left temporary",
  ])
  func spoolsThatAreWrong(_ damage: String) throws {
    let world = try World(isInMemory: false, onOtherFileSystem: false)
    let spool = world.spool
    let version = Version.current
    let receipt = """
      verified: 2026-01-02T03:04:05Z size=\(Version.length) crc32=\(version.crc32) part=1
      done: 2026-01-02T03:04:05Z attempts=1 output=a.bin bytes-fetched=1 seconds=0

      """
    let job = world.job([], output: "a.bin")
    try writeFile(spool.path("files/a.bin"), version.bytes)
    try writeFile(spool.path("done/a"), Array((job + receipt).utf8))
    let invariants = Invariants(scenario: Self.fresh, world: world)
    try #require(try invariants.atEnd(after: []).isEmpty)
    switch damage {
    case "wrong payload": try writeFile(spool.path("files/a.bin"), Version.previous.bytes)
    case "short payload": try writeFile(spool.path("files/a.bin"), version.bytes.dropLast())
    case "no payload": unlink(spool.path("files/a.bin"))
    case "wrong receipt":
      let wrong = receipt.replacing(version.crc32, with: Version.previous.crc32)
      try writeFile(spool.path("done/a"), Array((job + wrong).utf8))
    case "no receipt": try writeFile(spool.path("done/a"), Array(job.utf8))
    case "lost": unlink(spool.path("done/a"))
    case "in two states": try writeFile(spool.path("partial/a"), Array(job.utf8))
    case "left data": try writeFile(spool.path("partial/a.part"), version.bytes)
    case "left claim": try world.move("done/a", "cur/a:host.1.00000000")
    case "stray payload": try writeFile(spool.path("files/b.bin"), version.bytes)
    case "left temporary": try writeFile(spool.path("files/.spoolrun-1-2"), version.bytes)
    default: Issue.record("unknown damage")
    }
    #expect(try !invariants.atEnd(after: []).isEmpty)
  }

  /// What a case says of requests after a kill: data is fetched once.
  @Test func dataThatIsForgotten() throws {
    let world = try World(isInMemory: false, onOtherFileSystem: false)
    try world.addHalf(of: .current)
    let waiting = try #require(try JobFile.all(in: world.spool).first)
    let overlap = JobFile.Expectation.from(resumePoint(after: Version.half))
    #expect(try waiting.expectation(in: world.spool) == .either(.from(Version.half), overlap))
    try writeFile(world.spool.path("partial/a.part"), Version.previous.bytes)
    let spliced = try #require(try JobFile.all(in: world.spool).first)
    #expect(try spliced.expectation(in: world.spool) == .anything)
  }
}
