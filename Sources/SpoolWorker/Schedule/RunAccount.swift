internal import Spool

/// What a run did so far.
final class RunAccount {
  var summary = RunSummary()
  private(set) var waiting = WaitingJobs()
  /// Bytes by which the data of jobs that have ended grew.
  private(set) var gained: UInt64 = 0
  /// How many jobs have ended.
  private(set) var ended = 0
  /// What cannot be moved and was reported already.
  private var barred: Set<FileName> = []
  /// After so many they are reported anew: other users can put any number there, one after another.
  private static let mostBarred = 1000

  /// A job was found that cannot be taken or moved, and stays where it is.
  /// - Returns: whether it is news: each pass sees it again.
  func noteBarred(_ name: FileName) -> Bool {
    guard !barred.contains(name) else { return false }
    if barred.count >= Self.mostBarred { barred = [] }
    barred.insert(name)
    summary.givenUp += 1
    return true
  }

  func noteRejected() { summary.givenUp += 1 }

  /// There is no space even to claim it.
  func noteUnclaimable(_ name: FileName) {
    waiting.ended(name, isWaiting: true)
    summary.waiting = waiting.count
  }

  /// - Parameters:
  ///   - first: the job's name when it was claimed; it may have got another on its way.
  ///   - gained: bytes by which its data grew.
  func noteEnd(_ end: AttemptEnd, of name: FileName, first: FileName, gained: UInt64) {
    self.gained &+= gained
    ended += 1
    waiting.ended(first, isWaiting: false)
    waiting.ended(name, isWaiting: end.fate == .waiting)
    if end.fate == .waiting { waiting.failed(name, wantsNetwork: end.wantsNetwork) }
    summary.waiting = waiting.count
    switch end.fate {
    case .done: summary.done += 1
    case .givenUp: summary.givenUp += 1
    case .cancelled: summary.cancelled += 1
    case .waiting, .moved: break
    }
  }

  /// Jobs that failed on this machine's way to the network, once.
  func takeThoseForNetwork() -> [Candidate] { waiting.takeThoseForNetwork() }

  /// See ``WaitingJobs/recount(in:)``.
  func recountWaiting(in spool: Spool) throws(SpoolError) -> Timestamp? { try waiting.recount(in: spool) }
}
