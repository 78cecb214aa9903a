internal import Spool

/// Keeps jobs of higher priority from starving the others: after nine of them in a row, a job of lower priority that
/// has waited for a day starts first. Pure.
struct Turns {
  static let inARow = 9

  /// How many jobs of higher priority have started since the last one of this priority.
  private var passed: [Priority: Int] = [:]

  mutating func started(_ priority: Priority) {
    passed[priority] = 0
    for lower in Priority.allCases where lower > priority { passed[lower, default: 0] += 1 }
  }

  /// Whether a job of this priority that has waited for a day starts before those of higher priority.
  func isDue(_ priority: Priority) -> Bool { (passed[priority] ?? 0) >= Self.inARow }
}
