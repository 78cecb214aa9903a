import Glibc
import Testing
import TestSupport

/// Two faults in one life of a spool: the second strikes later in the same run, or in the recovery from the first. All
/// pairs are too many, so they are drawn; the seed and a pair's number name it.
///
/// 150 of them. CRASH_PAIRS=10000 in the environment says how many, CRASH_SEED=2 which, CRASH_PAIR=77 draws that one
/// alone.
struct Pairs {
  private let seed = environment("CRASH_SEED") ?? 1
  private let numbers: Range<UInt64>

  private static let catalogue = Fault.kills + Fault.errors + Fault.rarer + Fault.harmless

  init() {
    let only = environment("CRASH_PAIR")
    numbers = only.map { $0..<$0 + 1 } ?? 0..<(environment("CRASH_PAIRS") ?? 150)
  }

  private struct Pair: Sendable {
    let number: UInt64
    let scenario: Scenario
    let faults: [Fault]
  }

  /// Plays them all; problems become issues.
  func play() async throws {
    // Two workers make calls in an order that no number names.
    let hasOther = try await Need.otherFileSystem.isMet()
    let scenarios = Scenario.chosen.filter { $0.workers == 1 && (!$0.isOnOtherFileSystem || hasOther) }
    var lengths: [String: [CallEvent]] = [:]
    var pairs: [Pair] = []
    for number in numbers {
      var generator = SeededGenerator(seed: seed &* 1_000_003 &+ number)
      let drawn = scenarios.randomElement(using: &generator)
      let scenario = try #require(drawn, "no scenario to draw from")
      if lengths[scenario.name] == nil {
        lengths[scenario.name] = try await MatrixCase(scenario: scenario, faults: []).play().events
      }
      pairs.append(draw(number, scenario, lengths[scenario.name] ?? [], &generator))
    }
    let outcomes = try await withThrowingTaskGroup(of: (Pair, MatrixCase.Outcome).self) { group in
      for pair in pairs {
        group.addTask { try await Matrix.slots.withSlot { (pair, try await play(pair)) } }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    report(outcomes)
  }

  /// The first within an undisturbed run, the second there or in what comes of the first.
  private func draw(_ number: UInt64, _ scenario: Scenario, _ events: [CallEvent], _ generator: inout SeededGenerator)
    -> Pair
  {
    let faults = (1...2).map { order in
      let fault = Self.catalogue.randomElement(using: &generator) ?? Fault.kills[0]
      let calls = max(1, fault.counted.count(in: events))
      return fault.at(Int.random(in: 1...(order == 1 ? calls : 2 * calls), using: &generator))
    }
    return Pair(number: number, scenario: scenario, faults: faults)
  }

  private func play(_ pair: Pair) async throws -> MatrixCase.Outcome {
    do {
      return try await MatrixCase(scenario: pair.scenario, faults: pair.faults).play()
    } catch let error as TestSupportError {
      return MatrixCase.Outcome(problems: ["\(error)"])
    }
  }

  private func report(_ outcomes: [(Pair, MatrixCase.Outcome)]) {
    var struck = [0, 0, 0]
    for (pair, outcome) in outcomes.sorted(by: { $0.0.number < $1.0.number }) {
      struck[outcome.strikes.count] += 1
      if outcome.problems.isEmpty { continue }
      Issue.record(
        """
        CRASH_SEED=\(seed) CRASH_PAIR=\(pair.number): \(pair.scenario.name), \(pair.faults[0]) and \(pair.faults[1]): \
        \(outcome.problems.joined(separator: "\n"))
        """)
    }
    // Else the faults are drawn where nothing comes any more. Of a few pairs, chance says how many.
    if outcomes.count >= 100 {
      #expect(struck[2] * 10 > outcomes.count, "of \(outcomes.count) pairs \(struck[2]) struck twice")
    }
    print("crash matrix: pairs from seed \(seed): \(struck[2]) struck twice, \(struck[1]) once, \(struck[0]) not")
  }
}

private func environment(_ name: String) -> UInt64? {
  getenv(name).flatMap { UInt64(String(cString: $0)) }
}
