internal import Spool

/// How jobs are treated during whose attempts workers died, as each of them may be the cause. Other jobs always go
/// first. After two deaths a job runs alone. After more it is given up.
enum Suspicion {
  /// The number of deaths from which a job runs alone, so that only this job is suspected of the next death.
  private static let alone = 2
  /// No job is given up with fewer deaths, because power cuts count as deaths, too.
  private static let fewest = 3

  /// How many deaths count.
  /// - Parameter isByLease: whether only the end of its lease tells that the last worker died. It was most likely lost
  ///   with its host, or cut off, and its jobs should not wait behind a long backlog. If a job is the cause, the second
  ///   death says so.
  static func counted(_ deaths: Int, isByLease: Bool) -> Int { isByLease && deaths == 1 ? 0 : deaths }

  static func wantsToBeAlone(_ deaths: Int) -> Bool { deaths >= alone }

  /// - Parameter attempts: the job's own `attempts:`.
  static func failure(_ deaths: Int, attempts: Int?) -> Failure? {
    guard deaths >= max(fewest, attempts ?? JobRequest.defaultAttempts) else { return nil }
    let advice = "find the cause, for example lack of memory (journalctl, dmesg), then run spoolrun retry"
    return Failure(.killsWorker, "\(deaths) workers in a row died while they ran this job: \(advice)")
  }
}
