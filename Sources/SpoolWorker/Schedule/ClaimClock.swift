internal import Spool

/// The time by which a claim is judged. Only the age of another host's claim and of a file that may still be written
/// needs the file system's own clock to the second. Reading that clock means writing a file; for the rest it is enough
/// what ``Spool/now()`` knows of it.
struct ClaimClock {
  private let spool: Spool
  private var cached: (time: Timestamp, at: Int64)?
  /// How long the machine has slept since it booted, and when this was seen to grow, in milliseconds.
  private var asleep = Host.current.asleepMilliseconds()
  private var wokeAt: Int64 = .min / 2
  /// In milliseconds.
  private static let validity: Int64 = 1000

  /// Seconds after a sleep of the machine in which the owners of claims may still wake up.
  static let waking: Int64 = 5

  init(_ spool: Spool) { self.spool = spool }

  /// Whether the machine has just slept. Then all its workers seem to have been silent for as long.
  mutating func hasJustWoken() -> Bool {
    let (now, asleep) = (LoopExecutor.milliseconds(), Host.current.asleepMilliseconds())
    if asleep - self.asleep > 1000 { (self.asleep, wokeAt) = (asleep, now) }
    return now - wokeAt < Self.waking * 1000
  }

  mutating func now(for candidate: Candidate) throws(SpoolError) -> Timestamp {
    let now = spool.now()
    if candidate.origin == .partial || candidate.origin == .standing { return now }
    if candidate.origin == .cur, let owner = ClaimName(candidate.name)?.owner, spool.sharesLocks(with: owner) {
      return now
    }
    // Old by any clock that is not wrong by hours.
    if candidate.origin.takesDrops, candidate.modified + 86_400 < now.seconds { return now }
    if let cached, LoopExecutor.milliseconds() - cached.at < Self.validity { return cached.time }
    let time = try spool.fileSystemTime()
    cached = (time, LoopExecutor.milliseconds())
    return time
  }
}
