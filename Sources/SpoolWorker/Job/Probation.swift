internal import Spool

/// The time that a job that may have killed workers has to run before it is cleared.
struct Probation {
  /// How many workers died during attempts of the job.
  let deaths: Int
  private let period: Int64
  /// In milliseconds of the loop's clock; nil before the attempt begins, and if there were no deaths.
  private var endsAt: Int64?

  /// - Parameter period: in milliseconds.
  init(deaths: Int, period: Int64) {
    self.deaths = deaths
    self.period = period
  }

  /// The failure that the job is given up with, if too many workers died.
  /// - Parameter attempts: the job's own `attempts:`.
  func failure(attempts: Int?) -> Failure? { Suspicion.failure(deaths, attempts: attempts) }

  mutating func begin(at now: Int64) {
    if deaths > 0, endsAt == nil { endsAt = now + period }
  }

  /// Whether the job is to be cleared now. Returns true once.
  mutating func isOver(at now: Int64) -> Bool {
    guard let endsAt, now >= endsAt else { return false }
    self.endsAt = .max
    return true
  }
}
