internal import Glibc
internal import Spool
internal import Transfer

extension WorkerOptions {
  /// The rates that transfers share at this moment.
  var sharedRates: [SharedRate] { limitRate?.sharedRates(at: LocalTime.minuteOfDay()) ?? [] }
}

extension RateRules {
  /// The rates that transfers share at this minute of the day: one for each clause that applies to any.
  func sharedRates(at minute: Int) -> [SharedRate] {
    let priorities = Dictionary(grouping: Priority.allCases) { clause(for: $0, at: minute) }
    return clauses.indices.compactMap { index in
      guard let members = priorities[index], let rate = clauses[index].bytesPerSecond else { return nil }
      return SharedRate(of: Set(members.map(\.rateClass)), bytesPerSecond: rate)
    }
  }
}

extension Priority {
  /// What the engine calls jobs of this priority: see ``SharedRate``.
  var rateClass: Int {
    switch self {
    case .high: 0
    case .normal: 1
    case .low: 2
    }
  }
}

enum LocalTime {
  /// The minute of the day by the local clock, from 0 to 1439.
  static func minuteOfDay() -> Int {
    var (now, parts) = (time(nil), tm())
    localtime_r(&now, &parts)
    return Int(parts.tm_hour) * 60 + Int(parts.tm_min)
  }
}
