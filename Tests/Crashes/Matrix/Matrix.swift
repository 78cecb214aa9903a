import Glibc
import Synchronization
import Testing
import TestSupport

/// All faults of some kinds at all calls of a scenario.
struct Matrix {
  let scenario: Scenario
  let faults: [Fault]

  /// More cases at once than cores: they wait for ticks of the worker and for its processes.
  static let slots = Slots(12)
  private static let reportedFailures = 3
  private static let model = Model()

  /// Runs the scenario without a fault, then once for each call and fault; problems become issues.
  func sweep() async throws {
    if scenario.isOnOtherFileSystem, try await !Need.otherFileSystem.isMet() {
      print("crash matrix: \(scenario.name): SKIPPED, /dev/shm is no other file system here")
      try Test.cancel("/dev/shm is no other file system here")
    }
    let clean = try await playUndisturbed()
    if !clean.problems.isEmpty {
      Issue.record("\(scenario.name), without a fault: \(clean.problems.joined(separator: "\n"))")
      return
    }
    let model = try await Self.model.outcome()
    let repetition = Repetition(scenario: scenario, clean: clean, model: model)
    // Side by side, because each ends with some runs that have to follow one another.
    let summary = try await withThrowingTaskGroup(of: (Int, String).self) { group in
      for (index, fault) in faults.enumerated() {
        group.addTask { (index, try await sweep(fault, clean, repetition)) }
      }
      return try await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
    }
    print("crash matrix: \(scenario.name): \(summary.joined(separator: ", "))")
  }

  private func sweep(_ fault: Fault, _ clean: MatrixCase.Outcome, _ repetition: Repetition) async throws -> String {
    let sites = fault.counted.count(in: clean.events)
    let numbers = stride(from: 1, through: max(1, sites), by: scenario.stride)
    let chosen = numbers.filter { !repetition.contains(fault, at: $0) && isOfToday($0) }
    let spared = Array(numbers).count - chosen.count
    var outcomes = try await withThrowingTaskGroup(of: (Fault, MatrixCase.Outcome).self) { group in
      for number in chosen {
        group.addTask { try await play(fault.at(number), clean) }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    // A run can have a call more than the one that was counted.
    var next = sites + 1
    while true {
      let extra = try await play(fault.at(next), clean)
      outcomes.append(extra)
      guard extra.1.struck != nil, next < sites + 40 else { break }
      next += 1
    }
    let struck = outcomes.count { $0.1.struck != nil }
    if scenario.workers == 1, let least = try await leastSites(fault, sites, struck: struck + spared) {
      Issue.record("\(scenario.name): \(fault.action) struck \(struck + spared) of \(least) calls")
    }
    let failures = outcomes.filter { !$0.1.problems.isEmpty }.sorted { $0.0.number < $1.0.number }
    for (fault, outcome) in failures.prefix(Self.reportedFailures) {
      Issue.record("\(scenario.name), \(fault): \(outcome.problems.joined(separator: "\n"))")
    }
    if failures.count > Self.reportedFailures {
      let rest = failures.dropFirst(Self.reportedFailures).map { "\($0.0): \($0.1.problems[0])" }
      Issue.record("\(scenario.name): \(rest.count) more: \(rest.joined(separator: "\n"))")
    }
    let repeated = spared == 0 ? "" : " (\(spared) more are as others or of other days)"
    return "\(struck) \(fault.action)\(fault.argument.map { " \($0)" } ?? "")\(repeated)"
  }

  /// The simulated world kills workers at any call and fails calls too, a thousand times as often. So each day has an
  /// eighth of the calls, unless CRASH_MATRIX names a scenario or is `all` (`make matrix`).
  private func isOfToday(_ number: Int) -> Bool {
    getenv("CRASH_MATRIX") != nil || number % 8 == time(nil) / 86_400 % 8
  }

  /// Checkpoints and looks at claims come by the clock, and how many jobs share a flush is chance: so a loaded machine
  /// makes more calls than an idle one, and only where fewer were struck than in any of several runs without a fault
  /// has something been left out.
  /// - Returns: nil where enough were struck.
  private func leastSites(_ fault: Fault, _ sites: Int, struck: Int) async throws -> Int? {
    var least = sites
    for _ in 0..<4 {
      if struck * scenario.stride + max(8, least / (scenario.stride > 1 ? 3 : 10)) >= least { return nil }
      least = min(least, fault.counted.count(in: try await playUndisturbed().events))
    }
    return least
  }

  private func playUndisturbed() async throws -> MatrixCase.Outcome {
    try await Self.slots.withSlot { try await MatrixCase(scenario: scenario, faults: []).play() }
  }

  private func play(_ fault: Fault, _ clean: MatrixCase.Outcome) async throws -> (Fault, MatrixCase.Outcome) {
    try await Self.slots.withSlot {
      do {
        return (fault, try await MatrixCase(scenario: scenario, faults: [fault], usualRounds: clean.rounds).play())
      } catch let error as TestSupportError {
        return (fault, MatrixCase.Outcome(problems: ["\(error)"]))
      }
    }
  }
}

/// A run without a fault of the scenario whose start stands for that of others; made once.
private actor Model {
  private var run: Task<MatrixCase.Outcome, any Error>?

  func outcome() async throws -> MatrixCase.Outcome {
    let run =
      run
      ?? Task {
        let scenario = try #require(Scenario.all.first { $0.name == Repetition.modelName })
        return try await Matrix.slots.withSlot { try await MatrixCase(scenario: scenario, faults: []).play() }
      }
    self.run = run
    return try await run.value
  }
}
