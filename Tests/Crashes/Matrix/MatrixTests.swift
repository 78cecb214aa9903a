import TestSupport
import Testing

@Suite
struct MatrixTests {
  @Test(.timeLimit(.minutes(120)), arguments: Scenario.chosen)
  func killed(scenario: Scenario) async throws { try await Matrix(scenario: scenario, faults: Fault.kills).sweep() }

  @Test(.timeLimit(.minutes(120)), arguments: Scenario.chosen)
  func failing(scenario: Scenario) async throws { try await Matrix(scenario: scenario, faults: Fault.errors).sweep() }

  @Test(.timeLimit(.minutes(120)), arguments: Scenario.chosen)
  func unnoticed(scenario: Scenario) async throws {
    try await Matrix(scenario: scenario, faults: Fault.harmless).sweep()
  }

  @Test(.timeLimit(.minutes(240))) func struckTwice() async throws { try await Pairs().play() }

  /// A commit is cut after `verified:`, and the data's fsync fails for whoever goes on with it: what was verified is
  /// not published from that inode.
  @Test(.timeLimit(.minutes(120))) func theFsyncOfACutCommitFails() async throws {
    let outcome = try await play([
      Blow(Fault(action: "kill-before", counted: .state)) { $0.kind == "link" },
      Blow(Fault(action: "fail", counted: .state, argument: "ENOSPC")) { $0.isSync && $0.path == "partial/a.part" },
    ])
    let failed = try #require(outcome.strikes[1])
    let published = try #require(outcome.events.last { $0.phase == .begun && $0.kind == "link" })
    #expect(published.target == "a.bin" && published.inode != failed.inode)
  }

  /// The receipt's fsync fails, with all that the worker does after it. The next worker's disk is full, so that it can
  /// neither copy the job nor note its doubt.
  @Test(.timeLimit(.minutes(120))) func theFsyncOfAReceiptFailsAndTheDiskIsFull() async throws {
    _ = try await play([
      Blow(Fault(action: "fail-from", counted: .any, argument: "ESTALE"), isAtLast: true) {
        $0.isSync && $0.path.hasPrefix("cur/a:")
      },
      Blow(Fault(action: "fail-from", counted: .room, argument: "EDQUOT")) {
        $0.kind == "create" && $0.path.hasPrefix("tmp/a:")
      },
    ])
  }

  // MARK: faults that strike certain calls

  /// A fault, and the call that it is to strike: the first such call after that of the fault before it, or the last
  /// one.
  private struct Blow {
    let fault: Fault
    let isAtLast: Bool
    let isMeant: (CallEvent) -> Bool

    init(_ fault: Fault, isAtLast: Bool = false, isMeant: @escaping (CallEvent) -> Bool) {
      (self.fault, self.isAtLast, self.isMeant) = (fault, isAtLast, isMeant)
    }
  }

  /// Plays the scenario `fresh` with these faults, which must leave no problem.
  ///
  /// How many calls a run makes depends on how long they take, because a worker looks at its claim a few times a
  /// second. So a run in which a fault has struck another call is made again.
  private func play(_ blows: [Blow]) async throws -> MatrixCase.Outcome {
    let scenario = try #require(Scenario.all.first { $0.name == "fresh" })
    for _ in 1...20 {
      guard let faults = try await faults(for: blows, scenario) else { continue }
      let outcome = try await MatrixCase(scenario: scenario, faults: faults).play()
      #expect(outcome.problems == [])
      if blows.enumerated().allSatisfy({ index, blow in outcome.strikes[index].map(blow.isMeant) == true }) {
        return outcome
      }
    }
    throw TestSupportError("in 20 runs the faults have never struck the calls that they are meant for")
  }

  /// - Returns: nil if a run had no such call.
  private func faults(for blows: [Blow], _ scenario: Scenario) async throws -> [Fault]? {
    var faults: [Fault] = []
    for blow in blows {
      let events = try await MatrixCase(scenario: scenario, faults: faults).play().events
      let struck = events.lastIndex { $0.phase == .struck } ?? -1
      let calls = events.indices.filter { $0 > struck && events[$0].phase == .begun && blow.isMeant(events[$0]) }
      guard let call = blow.isAtLast ? calls.last : calls.first else { return nil }
      faults.append(blow.fault.at(blow.fault.counted.count(in: Array(events[...call]))))
    }
    return faults
  }
}
