internal import Spool

/// The results of a run so far.
final class RunAccount {
  var summary = RunSummary()
  let began = Timestamp.now()
  private(set) var waiting = WaitingJobs()
  let presence = PresenceKeeper()
  /// How many jobs were claimed, how often another worker was faster, and how often a job had gone before.
  private(set) var claims: (own: Int, lost: Int, missed: Int) = (0, 0, 0)
  /// How many jobs have ended.
  private(set) var ended = 0
  /// Unmovable files that have been reported already.
  private var barred: Set<FileName> = []
  /// Unfinished files whose missing newline has been reported already.
  private var newlineMissing: Set<FileName> = []
  /// Dropped files that were left because they may still be written, and where they are.
  private var unsettled: [FileName: Directory] = [:]
  /// After this many, all are reported again. This bounds the memory, because other users can create any number of such
  /// files.
  private static let mostBarred = 1000

  /// Counts a job that can be neither claimed nor moved, and stays where it is.
  /// - Returns: whether it is new. Each pass finds it again.
  func noteBarred(_ name: FileName) -> Bool {
    guard !barred.contains(name) else { return false }
    if barred.count >= Self.mostBarred { barred = [] }
    barred.insert(name)
    summary.givenUp += 1
    return true
  }

  /// - Returns: whether it is new.
  func noteNewlineMissing(_ name: FileName) -> Bool {
    if newlineMissing.count >= Self.mostBarred { newlineMissing = [] }
    return newlineMissing.insert(name).inserted
  }

  /// Counts a dropped file that was left because it may still be written. At most ``mostBarred`` are counted.
  func noteUnsettled(_ name: FileName, in directory: Directory) {
    if unsettled.count < Self.mostBarred { unsettled[name] = directory }
  }

  /// How many of these are still there and were not run since.
  func recountUnsettled(in spool: Spool) throws(SpoolError) -> Int {
    for (name, directory) in unsettled where try spool.status(directory, name) == nil { unsettled[name] = nil }
    return unsettled.count
  }

  func noteClaimed() { claims.own += 1 }
  func noteLost() { claims.lost += 1 }
  func noteMissed() { claims.missed += 1 }

  func noteRejected() { summary.givenUp += 1 }

  /// Counts a job that waits for the end of another worker's job with the same output.
  /// - Returns: whether it is new.
  func noteOutputAwaited(_ name: FileName) -> Bool {
    let count = waiting.count
    noteUnclaimable(name)
    return waiting.count > count
  }

  /// Counts a job that cannot be claimed for lack of space.
  func noteUnclaimable(_ name: FileName) {
    waiting.ended(name, isWaiting: true)
    summary.waiting = waiting.count
  }

  /// - Parameters:
  ///   - first: the job's name when it was claimed; it may have been renumbered since.
  ///   - gained: bytes by which its data grew.
  func noteEnd(_ end: AttemptEnd, of name: FileName, first: FileName, gained: UInt64) {
    summary.gained &+= gained
    ended += 1
    waiting.ended(first, isWaiting: false)
    waiting.ended(name, isWaiting: end.fate == .waiting)
    if end.fate == .waiting {
      waiting.failed(name, wantsNetwork: end.connectivity.isBarred, in: end.isOrder ? .standing : .partial)
    }
    summary.waiting = waiting.count
    switch end.fate {
    case .done: summary.done += 1
    case .givenUp: summary.givenUp += 1
    case .cancelled: summary.cancelled += 1
    case .waiting, .moved, .checked: break
    }
  }

  /// Returns the jobs that failed for lack of a network, once.
  func takeThoseForNetwork() -> [Candidate] { waiting.takeThoseForNetwork() }

  /// See ``WaitingJobs/recount(in:)``.
  func recountWaiting(in spool: Spool) throws(SpoolError) -> Timestamp? { try waiting.recount(in: spool) }
}
