internal import Spool

/// The time by which a claim is judged. Only the age of another host's claim and of a file that may still be written
/// needs the file system's own clock to the second. Reading that clock means writing a file; for the rest it is enough
/// what ``Spool/now()`` knows of it.
struct ClaimClock {
  private let spool: Spool
  private var cached: (time: Timestamp, at: Int64)?
  /// In milliseconds.
  private static let validity: Int64 = 1000

  init(_ spool: Spool) { self.spool = spool }

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
