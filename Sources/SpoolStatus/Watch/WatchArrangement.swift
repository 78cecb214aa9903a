internal import Spool

/// How `status --watch` orders the jobs of each state.
package enum WatchSort: String, CaseIterable, Sendable {
  /// As the worker takes them, and the latest failures first.
  case turn
  case name, size, rate, attempts

  /// Whether `one` is before `other`; equal ones keep their order.
  func precedes(_ one: JobStatus, _ other: JobStatus) -> Bool {
    switch self {
    case .turn: false
    case .name: one.name.bytes.lexicographicallyPrecedes(other.name.bytes)
    case .size: (one.total ?? one.bytes ?? 0) > (other.total ?? other.bytes ?? 0)
    case .rate: (one.rate ?? -1) > (other.rate ?? -1)
    case .attempts: (one.attempts ?? 0) > (other.attempts ?? 0)
    }
  }
}

extension SpoolSnapshot {
  /// The same with the jobs and orders that match `filter`, in this order. The numbers still count all.
  package func arranged(by sort: WatchSort, matching filter: String) -> SpoolSnapshot {
    var result = self
    let wanted = filter.lowercased()
    for (state, group) in jobs {
      var kept = wanted.isEmpty ? group : group.filter { $0.says(wanted) }
      if sort != .turn {
        // sort(by:) is stable as it is, but does not promise it.
        kept = kept.enumerated().sorted { one, other in
          if sort.precedes(one.element, other.element) { return true }
          return !sort.precedes(other.element, one.element) && one.offset < other.offset
        }.map(\.element)
      }
      result.jobs[state] = kept
    }
    if !wanted.isEmpty { result.orders = orders.filter { $0.name.display.lowercased().contains(wanted) } }
    return result
  }

  /// What can be selected, in the order of the table.
  package var subjects: [TableSubject] {
    JobState.allCases.flatMap { jobs[$0] ?? [] }.map(\.subject) + orders.map(\.subject)
  }
}

extension JobStatus {
  /// Whether what the table shows of it contains `text`, which is in lower case.
  fileprivate func says(_ text: String) -> Bool {
    let shown = [
      name.display, state.rawValue, problem?.code, problem.map { escaped($0.reason) }, waits?.sentence, target?.host,
    ]
    return shown.contains { $0?.lowercased().contains(text) ?? false }
  }
}
