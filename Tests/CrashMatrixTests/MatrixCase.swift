import Glibc
import TestSupport

/// One case: a scenario from start to end, with a fault at one call or with none.
struct MatrixCase {
  struct Outcome: Sendable {
    var problems: [String] = []
    /// The call that the fault struck; nil: the run has no such call.
    var struck: CallEvent?
    var events: [CallEvent] = []
    /// How many times workers had to be started.
    var rounds = 0
    /// Bytes of the record that ``events`` has.
    var recordLength = 0
  }

  let scenario: Scenario
  let fault: Fault?
  /// Of the run without a fault.
  var usualRounds: Int?

  private static let maximumRounds = 8

  func play() async throws -> Outcome {
    let world = try World(onOtherFileSystem: scenario.isOnOtherFileSystem)
    let server = try ScriptedServer { request, reply in
      world.note(request)
      try scenario.answer(world, request, reply)
    }
    world.base = server.url("")
    try scenario.setUp(world)
    var outcome = Outcome()
    try await settle(world, &outcome)
    outcome.problems += server.problems
    if !outcome.problems.isEmpty { outcome.problems.append(contentsOf: report(world, outcome)) }
    return outcome
  }

  private func settle(_ world: World, _ outcome: inout Outcome) async throws {
    let invariants = Invariants(scenario: scenario, world: world)
    var expectations: [(output: String, asked: Int, expectation: JobFile.Expectation)] = []
    while outcome.rounds < Self.maximumRounds, outcome.rounds == 0 || isUnsettled(world) {
      outcome.rounds += 1
      for name in world.spool.names("partial") where !name.hasSuffix(".part") { try world.spool.makeDue(name) }
      let wasStruck = outcome.struck != nil
      let results = try await runWorkers(world, outcome)
      for result in results { outcome.problems += exitProblems(result, wasStruck) }
      if wasStruck || fault == nil, results.count == 1, results[0].status == .exited(0), isUnsettled(world) {
        outcome.problems.append("round \(outcome.rounds): exit status 0, and not all is done")
      }
      outcome.events += try CallEvent.record(at: world.recordPath, from: &outcome.recordLength)
      outcome.struck = outcome.events.first { $0.phase == .struck }
      outcome.problems += try invariants.always().map { "after round \(outcome.rounds): \($0)" }
      if !wasStruck, outcome.struck != nil, fault?.isKill == true {
        for file in try JobFile.all(in: world.spool) where file.state != "done" && file.state != "failed" {
          guard let output = file.output else { continue }
          expectations.append((output, world.requests(for: output).count, try file.expectation(in: world.spool)))
        }
      }
    }
    outcome.problems += try invariants.atEnd(after: fault)
    outcome.problems += expectations.flatMap { requestProblems(world, $0.output, $0.asked, $0.expectation) }
    outcome.problems += repetitionProblems(world, outcome)
    outcome.problems += CommitOrder(scenario: scenario, events: outcome.events, fault: fault).problems()
    if let usualRounds, fault?.isHarmless == true, outcome.struck?.isSync != true, outcome.rounds != usualRounds {
      outcome.problems.append("\(outcome.rounds) rounds, not \(usualRounds): the fault was noticed")
    }
  }

  private func isUnsettled(_ world: World) -> Bool {
    ["new", "cur", "partial"].contains { !world.spool.names($0).filter { !$0.hasSuffix(".part") }.isEmpty }
  }

  private func runWorkers(_ world: World, _ outcome: Outcome) async throws -> [CommandResult] {
    var arguments = [world.spool.root, "record=\(world.recordPath)", "checkpoint=8192"] + scenario.options(world)
    let clean = arguments
    if let fault, outcome.struck == nil, outcome.rounds == 1 || scenario.workers == 1 {
      arguments.append("fault=\(fault.plan(max(1, fault.number - fault.counted.count(in: outcome.events))))")
    }
    let rig = try productPath("FaultRig")
    let workers = try (0..<(outcome.rounds == 1 ? scenario.workers : 1)).map { index in
      try RunningCommand([rig] + (index == 0 ? arguments : clean), timeout: .seconds(40))
    }
    var results: [CommandResult] = []
    for worker in workers { results.append(try await worker.result()) }
    return results
  }

  private func exitProblems(_ result: CommandResult, _ wasStruck: Bool) -> [String] {
    let givesUp = scenario.jobs.contains { $0.end == .failed }
    switch result.status {
    case .killed(signal: SIGKILL) where fault?.isKill == true && !wasStruck: return []
    case .exited(0), .exited(75): return []
    case .exited(1) where givesUp: return []
    case .exited(73), .exited(74), .exited(78):
      if let fault, !wasStruck, !fault.isKill, !fault.isHarmless || fault.argument == "EINTR" { return [] }
      fallthrough
    default: return ["the worker ended with \(result.status): \(result.errors)"]
    }
  }

  private func requestProblems(_ world: World, _ output: String, _ asked: Int, _ expectation: JobFile.Expectation)
    -> [String]
  {
    let later = world.requests(for: output).dropFirst(asked)
    let isMet: Bool =
      switch expectation {
      case .anything: true
      case .nothing: later.isEmpty
      case .from(let offset): later.first.map { $0.rangeStart == offset } ?? false
      case .atLeast(let offset): later.allSatisfy { $0.rangeStart ?? 0 >= offset }
      }
    return isMet
      ? [] : ["\(output): after the kill \(expectation) was to be asked for, not \(later.map(\.description))"]
  }

  /// Workers that share a spool fetch nothing twice, but for what one of them had in hand when it was killed.
  private func repetitionProblems(_ world: World, _ outcome: Outcome) -> [String] {
    guard scenario.workers > 1, fault == nil || fault?.isKill == true else { return [] }
    let limit = outcome.struck == nil ? 1 : 2
    return scenario.jobs.map(\.output).filter { world.requests(for: $0).count > limit }.map {
      "\($0) was asked for \(world.requests(for: $0).count) times"
    }
  }

  private func report(_ world: World, _ outcome: Outcome) -> [String] {
    let jobs = ["a", "a~2", "b", "c", "d", "e"]
    let tail = outcome.events.drop { $0.phase != .struck }.prefix(40).map { "  \($0)" }
    return ["struck: \(outcome.struck.map { "\($0)" } ?? "nothing")"] + tail
      + jobs.map { world.spool.listing(of: $0) }.filter { !$0.isEmpty }
  }
}
