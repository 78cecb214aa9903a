internal import Spool

/// The rate limit of one job, which changes with the time of day and with `defaults`.
@WorkerLoop
struct JobRate {
  private let priority: Priority
  private let own: RateRules?
  private let inherited: () -> RateRules?

  /// - Parameter inherited: what `defaults` says now.
  init(_ claim: Claim, inherited: @escaping () -> RateRules?) {
    (own, priority) = (claim.text.request.limitRate, claim.priority)
    self.inherited = inherited
  }

  /// ``TransferEngine/limit(group:to:of:)``
  var rateClass: Int { priority.rateClass }

  /// At this moment; nil for no limit.
  var bytesPerSecond: UInt64? {
    (own ?? inherited())?.bytesPerSecond(for: priority, at: LocalTime.minuteOfDay())
  }
}
