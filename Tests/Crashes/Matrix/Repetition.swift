import TestSupport

/// Which faults of a sweep would only repeat another one: after it, the spool is the same, and so is what the next
/// worker meets.
struct Repetition {
  let scenario: Scenario
  /// Of a run without a fault.
  let clean: MatrixCase.Outcome
  /// The same of the scenario whose start stands for that of others.
  let model: MatrixCase.Outcome

  /// The scenario whose start stands for that of others.
  static let modelName = "fresh"

  func contains(_ fault: Fault, at number: Int) -> Bool {
    // Several workers make calls in an order that no number names, and of a stride each strike stands for others
    // already.
    guard scenario.workers == 1, scenario.stride == 1 else { return false }
    switch (fault.action, fault.counted) {
    case ("kill-after", _): return nextBeginsLater(fault, number)
    case ("fail", .any): return number <= sharedStart
    default: return false
    }
  }

  /// Whether the call returned while no other of its class was under way, and the next event of its class is the
  /// beginning of a call of the same process. What a kill between the two leaves, another kill leaves too: that before
  /// the next call.
  private func nextBeginsLater(_ fault: Fault, _ number: Int) -> Bool {
    let events = clean.events.filter { fault.counted.contains($0.kind) && $0.phase != .struck }
    var begun = 0
    var running = 0
    for (index, event) in events.enumerated() {
      if event.phase == .begun { running += 1 }
      if event.phase == .returned { running -= 1 }
      if event.phase == .begun || event.phase == .failed { begun += 1 }
      guard begun == number else { continue }
      guard event.phase == .begun, running == 1, index + 2 < events.count else { return false }
      let next = events[index + 2]
      return events[index + 1].completes(event) && next.phase == .begun && next.process == event.process
    }
    return false
  }

  /// How many calls a worker makes before it looks at a job, where these are the ones that it makes in the model; else
  /// 0. A worker that one of these fails for leaves a spool as it was, with jobs in `new` alone.
  private var sharedStart: Int {
    guard scenario.name != Self.modelName, clean.occupied == ["new"], model.occupied == ["new"] else { return 0 }
    let start = Self.start(clean)
    return start == Self.start(model) ? start.count : 0
  }

  private static func start(_ outcome: MatrixCase.Outcome) -> [String] {
    let states = TemporarySpool.states.map { "\($0)/" }
    return outcome.events.filter { $0.phase == .begun || $0.phase == .failed }
      .prefix { event in !states.contains { event.path.hasPrefix($0) } }
      .map { "\($0.kind) \($0.path.replacing(/spoolrun-test\.\w+/, with: "T"))" }
  }
}
