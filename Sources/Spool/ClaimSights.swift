/// For how long claims have not changed, as this worker has seen it: where each host sets the times of files by its own
/// clock, nothing else shows for how long an owner has been silent. Pure.
///
/// Times are by ``secondsSinceBoot()``.
struct ClaimSights {
  private var seen: [FileName: (stamp: FileStatus.Stamp, since: Int64)] = [:]
  /// Maximum number of claims that are remembered; after that all begin anew.
  private static let most = 1000

  /// Each heartbeat and each line of the journal changes the stamp.
  /// - Returns: seconds since the stamp was first seen.
  mutating func silence(of claim: FileName, _ stamp: FileStatus.Stamp, at now: Int64) -> Int64 {
    if let last = seen[claim], last.stamp == stamp { return now - last.since }
    if seen.count >= Self.most { seen = [:] }
    seen[claim] = (stamp, now)
    return 0
  }
}
