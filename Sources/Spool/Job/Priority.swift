/// Which waiting jobs start before others (spool.5, PRIORITY), the first to start first.
package enum Priority: String, CaseIterable, Sendable, Comparable {
  case high, normal, low

  /// Whether jobs of `left` start before those of `right`.
  package static func < (left: Priority, right: Priority) -> Bool { left.place < right.place }

  private var place: Int {
    switch self {
    case .high: 0
    case .normal: 1
    case .low: 2
    }
  }
}

extension Directory {
  /// Where a job of this priority is dropped.
  init(forDropsOf priority: Priority?) { self = priority == .high ? .urgent : .new }
}
