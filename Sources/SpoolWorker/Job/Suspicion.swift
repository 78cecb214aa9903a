internal import Spool
internal import Transfer

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

extension Worker {
  /// What a candidate's text says of where and when it is to run.
  func prospect(of candidate: Backlog.Candidate) -> Backlog.Prospect {
    // A job that cannot be read, or names no URL, is for the claim to judge; it needs no room on any host.
    guard let text = try? spool.job(candidate.origin, candidate.name), let url = text.request.urls.first,
      let parts = try? URLParts(url.text)
    else { return Backlog.Prospect(host: nil, deaths: 0) }
    // Who sends a job through `new/` begins anew.
    let deaths = candidate.origin == .new || hasWaited(candidate) ? 0 : text.journal.deaths(askedBy: spool.owner)
    return Backlog.Prospect(host: "\(parts.scheme)://\(parts.host):\(parts.port)", deaths: deaths)
  }

  /// Whether others have gone before it for long enough, where there are always some: since this worker began, and
  /// since the last heartbeat of the one that had it.
  private func hasWaited(_ candidate: Backlog.Candidate) -> Bool {
    guard LoopExecutor.milliseconds() - began >= options.probation else { return false }
    let age = (Timestamp.now().seconds - candidate.modified) * 1000
    // A time in the future says nothing.
    return age < 0 || age >= options.probation
  }
}
