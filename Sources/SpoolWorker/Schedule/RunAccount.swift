internal import Spool

final class RunAccount {
  var summary = RunSummary()
  let began = Timestamp.now()
  var waiting = WaitingJobs()
  let presence = PresenceKeeper()
  /// How many jobs were claimed, how often another worker was faster, and how often a job had gone before.
  var claims: (own: Int, lost: Int, missed: Int) = (0, 0, 0)
  private(set) var ended = 0
  /// The paths of unmovable files that have been reported already.
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
  func noteBarred(_ path: Path) -> Bool {
    if barred.count >= Self.mostBarred { barred = [] }
    guard barred.insert(FileName(path.bytes)).inserted else { return false }
    summary.givenUp += 1
    return true
  }

  func isBarred(_ path: Path) -> Bool { barred.contains(FileName(path.bytes)) }

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

  /// - Parameter first: the job's name when it was claimed; it may have been renumbered since.
  /// - Parameter gained: bytes by which its data grew.
  func noteEnd(_ end: AttemptEnd, of name: FileName, first: FileName, gained: UInt64) {
    summary.gained &+= gained
    ended += 1
    waiting.ended(first, isWaiting: false)
    waiting.ended(name, isWaiting: end.fate == .waiting)
    if end.fate == .waiting {
      let due = end.retry?.seconds ?? .min
      waiting.failed(name, awaiting: end.awaited, until: due, in: end.isOrder ? .standing : .partial)
    }
    summary.waiting = waiting.count
    switch end.fate {
    case .done: summary.done += 1
    case .givenUp: summary.givenUp += 1
    case .cancelled: summary.cancelled += 1
    case .waiting, .moved, .checked: break
    }
  }
}

/// Keeps this worker's file in `workers/`: when it is made, written and touched. A worker can do without it, so no
/// error of it ends anything.
final class PresenceKeeper {
  private var presence: Presence?
  private var said: WorkerReport?
  /// In milliseconds of the loop's clock.
  private var beatAt: Int64 = .min / 2
  private var lookedAt: Int64 = .min / 2
  private var sweptAt: Int64 = .min / 2
  private(set) var problem: SpoolError?
  /// Milliseconds between two changes of what the file says.
  private static let pause: Int64 = 1000

  func isDue(at now: Int64) -> Bool { now - lookedAt >= Self.pause }

  /// Milliseconds until the next heartbeat, which comes when it ``isDue(at:)`` to say something: whoever waited less
  /// would not sleep at all until then.
  func untilBeat(at now: Int64, in spool: Spool) -> Int64 {
    max(0, beatAt + Leases(spool).heartbeatInterval - now, lookedAt + Self.pause - now)
  }

  /// - Returns: whether there is a ``problem`` that is new.
  func say(_ report: WorkerReport, in spool: Spool, at now: Int64) -> Bool {
    lookedAt = now
    guard Leases(spool).isBeatDue(since: beatAt, at: now) || report != said else { return false }
    (beatAt, said) = (now, report)
    let isKnown = problem != nil
    do throws(SpoolError) {
      if try presence?.beat(report) != true { presence = try Presence(of: spool, report) }
      if now - sweptAt >= Leases(spool).heartbeatInterval {
        sweptAt = now
        try WorkerFiles(spool).sweep()
      }
      problem = nil
      return false
    } catch {
      problem = error
      return !isKnown
    }
  }

  /// Removes the file. If that fails, another worker does it.
  func end() {
    try? presence?.end()
    presence = nil
  }
}

/// The jobs that a run has put back for another attempt, in bounded memory: if a host is down, these may be a million
/// jobs.
struct WaitingJobs {
  static let mostCounted = 10_000
  /// The remaining jobs wait until they are due.
  static let mostAwaiting = 1000

  private var names: Set<FileName> = []
  private var areMore = false
  private var awaiting: [FileName: (directory: Directory, keys: [String], due: Int64)] = [:]

  /// The number of waiting jobs: exact up to ``mostCounted``, and never 0 if there are more.
  var count: Int { names.count + (areMore ? 1 : 0) }

  /// How many of them do not run again.
  func count(besides running: Set<FileName>) -> Int { count - running.count(where: names.contains) }

  /// The number of jobs that failed for lack of a network: exact up to ``mostAwaiting``.
  var countForNetwork: Int { awaiting.values.count { $0.keys.contains(ServerRests.network) } }
  /// Whether one awaits nothing of these.
  func awaitOthers(than keys: [String]) -> Bool {
    awaiting.values.contains { waiting in !waiting.keys.contains { $0 == ServerRests.network || keys.contains($0) } }
  }

  /// A job may fail and come back within one run. Only its state at the end counts.
  mutating func ended(_ name: FileName, isWaiting: Bool) {
    if !isWaiting {
      names.remove(name)
      awaiting[name] = nil
    } else if names.count < Self.mostCounted {
      names.insert(name)
    } else if !names.contains(name) {
      areMore = true
    }
  }

  /// - Parameter keys: ``ServerRests/network``, or the servers and proxies whose rest may end before the job is due.
  /// - Parameter due: in seconds since the epoch.
  /// - Parameter directory: where it waits.
  mutating func failed(
    _ name: FileName, awaiting keys: [String], until due: Int64, in directory: Directory = .partial
  ) {
    if keys.isEmpty {
      awaiting[name] = nil
    } else if awaiting.count < Self.mostAwaiting || awaiting[name] != nil {
      awaiting[name] = (directory, keys, due)
    }
  }

  /// Removes the jobs that no longer wait, because they were paused, cancelled, or claimed by another worker.
  /// - Returns: the time of the first next attempt; nil if no job waits for one.
  mutating func recount(in spool: Spool) throws(SpoolError) -> Timestamp? {
    var first: Int64?
    var left: Set<FileName> = []
    for name in names {
      let (isThere, due) = try Self.look(for: name, in: spool)
      if let due { first = min(first ?? due, due) }
      if isThere { left.insert(name) } else { awaiting[name] = nil }
    }
    names = left
    return first.map { Timestamp(seconds: $0) }
  }

  /// - Returns: whether the job waits, and until when, in seconds since the epoch.
  private static func look(for name: FileName, in spool: Spool) throws(SpoolError) -> (isThere: Bool, due: Int64?) {
    for directory in [Directory.partial, .standing] {
      if let status = try spool.status(directory, name) { return (true, status.modified) }
    }
    for directory in [Directory.new, .urgent] where try spool.status(directory, name) != nil { return (true, nil) }
    // It may still be in cur/, because even its move failed.
    guard let job = JobName(name) else { return (false, nil) }
    return (try spool.status(.cur, ClaimName.fileName(job, spool.owner)) != nil, nil)
  }

  /// Returns the jobs that await one of these, once.
  mutating func take(awaiting keys: Set<String>) -> [Candidate] {
    let taken = awaiting.filter { !keys.isDisjoint(with: $0.value.keys) }
    for name in taken.keys { awaiting[name] = nil }
    return taken.map { Candidate(name: $0.key, origin: $0.value.directory, modified: 0, knownDue: $0.value.due) }
  }
}
