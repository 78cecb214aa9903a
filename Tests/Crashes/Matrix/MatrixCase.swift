import Glibc
import TestSupport

/// One case: a scenario from start to end, with faults at some calls or with none.
struct MatrixCase {
  struct Outcome: Sendable {
    var problems: [String] = []
    /// The calls that were struck, by the fault's place in the list.
    var strikes: [Int: CallEvent] = [:]
    /// The call that the first fault struck; nil: the run has no such call.
    var struck: CallEvent? { strikes[0] }
    var events: [CallEvent] = []
    /// The directories in which there was something before the first worker.
    var occupied: [String] = []
    /// How many times workers had to be started.
    var rounds = 0
    /// Bytes of the record that ``events`` has.
    var recordLength = 0
  }

  let scenario: Scenario
  /// Each counts the calls of all rounds together.
  let faults: [Fault]
  /// Of the run without a fault.
  var usualRounds: Int?

  private static let maximumRounds = 8
  private static let rigs = Result { ForkServers([try productPath("FaultRig"), "serve"]) }

  func play() async throws -> Outcome {
    let world = try await World(
      isInMemory: Need.otherFileSystem.isMet(), onOtherFileSystem: scenario.isOnOtherFileSystem)
    let server = try ScriptedServer { request, reply in
      world.note(request)
      try scenario.answer(world, request, reply)
    }
    world.base = server.url("")
    try scenario.setUp(world)
    var outcome = Outcome()
    outcome.occupied = TemporarySpool.states.filter { !world.spool.names($0).isEmpty }
    try await settle(world, server, &outcome)
    outcome.problems += server.problems
    if !outcome.problems.isEmpty { outcome.problems.append(contentsOf: report(world, outcome)) }
    return outcome
  }

  private func settle(_ world: World, _ server: ScriptedServer, _ outcome: inout Outcome) async throws {
    let invariants = Invariants(scenario: scenario, world: world)
    var expectations: [(output: String, asked: Int, expectation: JobFile.Expectation)] = []
    while outcome.rounds < Self.maximumRounds, outcome.rounds == 0 || isUnsettled(world) {
      outcome.rounds += 1
      for name in world.spool.names("partial") where !name.hasSuffix(".part") { try world.spool.makeDue(name) }
      if world.hasUncheckedOrder { try world.makeOrderDue() }
      let pending = faults.indices.filter { outcome.strikes[$0] == nil }
      let results = try await runWorkers(world, outcome, pending)
      if results.contains(where: { $0.status == .killed(signal: SIGKILL) }) {
        try await locksAreFree(world)
        try await server.forgetEndedClients()
      }
      for result in results { outcome.problems += exitProblems(result, pending.map { faults[$0] }) }
      if pending.isEmpty, results.count == 1, results[0].status == .exited(0), isUnsettled(world) {
        outcome.problems.append("round \(outcome.rounds): exit status 0, and not all is done")
      }
      let events = try CallEvent.record(at: world.recordPath, from: &outcome.recordLength)
      outcome.events += events
      for event in events where event.phase == .struck {
        if let index = Int(event.note), pending.indices.contains(index) { outcome.strikes[pending[index]] = event }
      }
      outcome.problems += try invariants.always().map { "after round \(outcome.rounds): \($0)" }
      if pending.contains(where: { outcome.strikes[$0] != nil }), faults.allSatisfy(\.isKill) {
        for file in try JobFile.all(in: world.spool) where file.state != "done" && file.state != "failed" {
          guard let output = file.output else { continue }
          expectations.append((output, world.requests(for: output).count, try file.expectation(in: world.spool)))
        }
      }
    }
    outcome.problems += try invariants.atEnd(after: faults)
    outcome.problems += expectations.flatMap { requestProblems(world, $0.output, $0.asked, $0.expectation) }
    outcome.problems += repetitionProblems(world, outcome)
    outcome.problems += CommitOrder(scenario: scenario, events: outcome.events).problems()
    if let usualRounds, faults.count == 1, faults[0].isHarmless, outcome.struck?.isSync != true,
      outcome.rounds != usualRounds
    {
      outcome.problems.append("\(outcome.rounds) rounds, not \(usualRounds): the fault was noticed")
    }
  }

  private func isUnsettled(_ world: World) -> Bool {
    let directories = ["new", "urgent", "cur", "partial"]
    return world.hasUncheckedOrder
      || directories.contains { !world.spool.names($0).filter { !$0.hasSuffix(".part") }.isEmpty }
  }

  /// Between fork and exec, a hook's process has the locks of the worker that was killed, and the next one would take
  /// that for alive.
  private func locksAreFree(_ world: World) async throws {
    try await waitUntil("the locks of a killed worker are free") {
      ["cur", "partial"].allSatisfy { directory in
        world.spool.names(directory).allSatisfy { name in
          let file = open(world.spool.path("\(directory)/\(name)"), O_RDONLY | O_CLOEXEC)
          defer { close(file) }
          return file < 0 || flock(file, LOCK_EX | LOCK_NB) == 0
        }
      }
    }
  }

  private func runWorkers(_ world: World, _ outcome: Outcome, _ pending: [Int]) async throws -> [CommandResult] {
    var arguments = [world.spool.root, "record=\(world.recordPath)", "checkpoint=8192"] + scenario.options(world)
    let clean = arguments
    if !pending.isEmpty, outcome.rounds == 1 || scenario.workers == 1 {
      let plans = pending.map {
        faults[$0].plan(max(1, faults[$0].number - faults[$0].counted.count(in: outcome.events)))
      }
      arguments.append("fault=\(plans.joined(separator: ","))")
    }
    let count = outcome.rounds == 1 ? scenario.workers : 1
    return try await withThrowingTaskGroup(of: CommandResult.self) { group in
      for index in 0..<count {
        let arguments = index == 0 ? arguments : clean
        group.addTask { try await Self.rigs.get().run(arguments, outputPath: world.outside("output.\(index)")) }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
  }

  /// - Parameter pending: the faults that may have struck it.
  private func exitProblems(_ result: CommandResult, _ pending: [Fault]) -> [String] {
    let givesUp = scenario.jobs.contains { $0.end == .failed }
    switch result.status {
    case .killed(signal: SIGKILL) where pending.contains(where: \.isKill): return []
    case .exited(0), .exited(75): return []
    case .exited(1) where givesUp: return []
    // One file that cannot be read keeps its own job waiting.
    case .exited(1) where pending.contains(where: \.isError) && result.errors.contains("barred"): return []
    case .exited(73), .exited(74), .exited(78):
      if pending.contains(where: { $0.isError || $0.argument == "EINTR" }) { return [] }
      fallthrough
    default: return ["the worker ended with \(result.status): \(result.errors)"]
    }
  }

  private func requestProblems(_ world: World, _ output: String, _ asked: Int, _ expectation: JobFile.Expectation)
    -> [String]
  {
    let all = world.requests(for: output).dropFirst(asked)
    // The first one may have been for the version alone.
    let isCheck = scenario.isWatched && all.first.map { $0.rangeStart == nil } ?? false
    let problems = requestProblems(all, output, expectation)
    return isCheck && !problems.isEmpty ? requestProblems(all.dropFirst(), output, expectation) : problems
  }

  private func requestProblems(_ later: ArraySlice<ServerRequest>, _ output: String, _ expectation: JobFile.Expectation)
    -> [String]
  {
    func isMet(_ expectation: JobFile.Expectation) -> Bool {
      switch expectation {
      case .anything: true
      case .nothing: later.isEmpty
      case .from(let offset): later.first.map { $0.rangeStart ?? 0 == offset } ?? false
      case .atLeast(let offset): later.allSatisfy { $0.rangeStart ?? 0 >= offset }
      case .either(let one, let other): isMet(one) || isMet(other)
      }
    }
    return isMet(expectation)
      ? [] : ["\(output): after the kill \(expectation) was to be asked for, not \(later.map(\.description))"]
  }

  /// Workers that share a spool fetch nothing twice, but for what one of them had in hand when it was killed.
  private func repetitionProblems(_ world: World, _ outcome: Outcome) -> [String] {
    guard scenario.workers > 1, faults.allSatisfy(\.isKill) else { return [] }
    let limit = outcome.struck == nil ? 1 : 2
    return scenario.jobs.map(\.output).filter { world.requests(for: $0).count > limit }.map {
      "\($0) was asked for \(world.requests(for: $0).count) times"
    }
  }

  private func report(_ world: World, _ outcome: Outcome) -> [String] {
    let jobs = ["a", "a~2", "b", "c", "d", "e"]
    let tail = outcome.events.drop { $0.phase != .struck }.prefix(40).map { "  \($0)" }
    let struck = outcome.strikes.sorted { $0.key < $1.key }.map { "\($0.value)" }
    return ["struck: \(struck.isEmpty ? "nothing" : struck.joined(separator: "; "))"] + tail
      + jobs.map { world.spool.listing(of: $0) }.filter { !$0.isEmpty }
  }
}
