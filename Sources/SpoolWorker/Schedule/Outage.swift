/// How a worker that keeps running bears with errors of its spool: when it looks where the spool's path leads, what it
/// says, and when it gives up. Pure.
///
/// Times are milliseconds of the loop's clock.
struct Outage: Equatable {
  /// What an error means.
  enum Trouble {
    /// The spool's directories or their mount are gone. They may come back at any time.
    case gone
    /// The mount may have been gone for a moment: that was its answer, but now the spool can be read.
    case doubtful
    case other
  }

  enum Reaction: Equatable {
    /// Wait, and say so.
    case tell
    case wait
    case end
  }

  /// When the path is to be looked at again.
  private(set) var nextLook: Int64 = 0
  /// When the first error came; nil if the spool can be read.
  private var began: Int64?

  /// Between looks for a spool whose path does not exist.
  private static let interval: Int64 = 2000
  /// How long errors of doubtful cause may last: one that stays is of a file, and no wait would end.
  static let patience: Int64 = 60_000

  mutating func looked(at now: Int64, isInPlace: Bool) {
    nextLook = now + (isInPlace ? Scheduler.interval : Self.interval)
  }

  mutating func failed(_ cause: Trouble, at now: Int64) -> Reaction {
    if cause == .other || cause == .doubtful && now - (began ?? now) >= Self.patience { return .end }
    // Errors may come more often than that.
    if nextLook <= now || nextLook > now + Self.interval { nextLook = now + Self.interval }
    defer { began = began ?? now }
    return began == nil ? .tell : .wait
  }

  /// All directories could be read.
  /// - Returns: whether that is new.
  mutating func ended() -> Bool {
    defer { began = nil }
    return began != nil
  }
}
