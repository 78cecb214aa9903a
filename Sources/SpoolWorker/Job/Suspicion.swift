internal import Spool

/// What becomes of jobs in whose attempts workers died: each may be why. Others go first, always; one that was there
/// twice runs alone; and one that goes on like that is given up.
enum Suspicion {
  /// Deaths from which on a job runs without another transfer beside it, so that none but this one is suspected of the
  /// next.
  private static let alone = 2
  /// Deaths below which no job is given up: power cuts are among them.
  private static let fewest = 3

  static func wantsToBeAlone(_ deaths: Int) -> Bool { deaths >= alone }

  /// - Parameter attempts: the job's own `attempts:`.
  static func failure(_ deaths: Int, attempts: Int?) -> Failure? {
    guard deaths >= max(fewest, attempts ?? JobRequest.defaultAttempts) else { return nil }
    return Failure(
      .killsWorker,
      "\(deaths) workers in a row died while they worked on it: find out of what, such as memory (journalctl, dmesg), then use spoolrun retry"
    )
  }
}
