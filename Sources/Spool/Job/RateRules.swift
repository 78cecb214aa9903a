/// The rate limit of a transfer by its priority and the time of day: the first clause that applies counts
/// (spool.5, RATE LIMITS). If none applies, there is no limit.
package struct RateRules: Sendable, Equatable {
  /// `500k low 08:00-23:00`
  package struct Clause: Sendable, Equatable {
    /// nil for no limit.
    package var bytesPerSecond: UInt64?
    /// The only priority that it applies to; nil for all.
    package var priority: Priority?
    /// The only time of day that it applies to; nil for all.
    package var hours: DayHours?
  }

  /// In the order of the text: the first that applies counts.
  package let clauses: [Clause]

  /// - Parameter clauses: the first that applies counts.
  package init(_ clauses: [Clause]) { self.clauses = clauses }

  /// The same limit for all, at any time.
  package init(bytesPerSecond: UInt64) { clauses = [Clause(bytesPerSecond: bytesPerSecond)] }

  /// The number of the clause that applies.
  /// - Parameter minute: of the day, by the local clock.
  package func clause(for priority: Priority, at minute: Int) -> Int? {
    clauses.firstIndex { clause in
      (clause.priority ?? priority) == priority && clause.hours?.contains(minute) ?? true
    }
  }

  /// nil for no limit.
  package func bytesPerSecond(for priority: Priority, at minute: Int) -> UInt64? {
    clause(for: priority, at: minute).flatMap { clauses[$0].bytesPerSecond }
  }
}

/// A part of each day, by the local clock.
package struct DayHours: Sendable, Equatable {
  /// Minutes of the day, from 0 to 1439.
  package let start: Int
  /// Not included. At or before the start, it is on the next day: `23:00-07:00`.
  package let end: Int

  /// Minutes of the day, from 0 to 1439.
  package init(from start: Int, to end: Int) { (self.start, self.end) = (start, end) }

  /// - Parameter minute: of the day, by the local clock.
  package func contains(_ minute: Int) -> Bool {
    start < end ? (start..<end).contains(minute) : minute >= start || minute < end
  }
}

// MARK: text

extension RateRules {
  static let minimum: UInt64 = 1024

  /// Reads `2M 08:00-23:00, none`: clauses with commas between. A clause is a rate or `none`, and perhaps a priority
  /// and a time of day, in any order.
  /// - Throws: what is wrong with it.
  init(_ text: String) throws(InvalidValue) {
    var clauses: [Clause] = []
    for part in text.split(at: ",", omittingEmptySubsequences: false) { clauses.append(try Clause(part)) }
    self.clauses = clauses
  }

  /// ``init(_:)`` reads the same from it.
  package var text: String { clauses.map(\.text).joined(separator: ", ") }

  /// What a person gave as an option.
  /// - Throws: ``Defect``.
  package static func read(_ text: String) throws(Defect) -> RateRules {
    do throws(InvalidValue) { return try RateRules(text) } catch { throw Defect(line: nil, reason: error.reason) }
  }
}

extension RateRules.Clause {
  fileprivate init(_ text: Substring) throws(InvalidValue) {
    var rate: UInt64??
    for word in words(text) {
      if rate == nil, word == "none" {
        rate = .some(nil)
      } else if priority == nil, let found = Priority(rawValue: String(word)) {
        priority = found
      } else if hours == nil, let found = DayHours(word) {
        hours = found
      } else if rate == nil, let found = byteCount(word), found >= RateRules.minimum {
        rate = found
      } else {
        throw Self.invalid
      }
    }
    guard let rate else { throw Self.invalid }
    bytesPerSecond = rate
  }

  private static let invalid = InvalidValue(
    "must be bytes per second, at least 1k, such as 500k or 2M; or clauses, such as `low 500k, 2M 08:00-23:00, none`")

  fileprivate var text: String {
    let words = [bytesPerSecond.map(byteCountText) ?? "none", priority?.rawValue, hours?.text]
    return words.compactMap { $0 }.joined(separator: " ")
  }
}

extension DayHours {
  /// `HH:MM-HH:MM`; 24:00 is the end of the day.
  fileprivate init?(_ text: Substring) {
    let parts = text.split(at: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let start = Self.minute(parts[0]), let end = Self.minute(parts[1]), start < 24 * 60
    else { return nil }
    self.init(from: start, to: end % (24 * 60))
  }

  private static func minute(_ text: Substring) -> Int? {
    let parts = text.split(at: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, (1...2).contains(parts[0].utf8.count), parts[1].utf8.count == 2,
      let hour = decimal(parts[0]), let minute = decimal(parts[1]), minute < 60, hour < 24 || hour == 24 && minute == 0
    else { return nil }
    return Int(hour * 60 + minute)
  }

  fileprivate var text: String { "\(Self.text(start))-\(end == 0 ? "24:00" : Self.text(end))" }

  private static func text(_ minute: Int) -> String {
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(two(minute / 60)):\(two(minute % 60))"
  }
}
