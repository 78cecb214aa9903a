internal import Spool

/// The jobs that a run has put back for another attempt, in bounded memory: if a host is down, these may be a million
/// jobs.
struct WaitingJobs {
  /// No more jobs than this are counted.
  static let mostCounted = 10_000
  /// The remaining jobs wait until they are due, which takes about a minute.
  static let mostForNetwork = 1000

  private var names: Set<FileName> = []
  private var areMore = false
  private var forNetwork: [FileName: Directory] = [:]

  /// The number of waiting jobs: exact up to ``mostCounted``, and never 0 if there are more.
  var count: Int { names.count + (areMore ? 1 : 0) }

  /// The number of jobs that failed for lack of a network: exact up to ``mostForNetwork``.
  var countForNetwork: Int { forNetwork.count }

  /// A job may fail and come back within one run. Only its state at the end counts.
  mutating func ended(_ name: FileName, isWaiting: Bool) {
    if !isWaiting {
      names.remove(name)
    } else if names.count < Self.mostCounted {
      names.insert(name)
    } else if !names.contains(name) {
      areMore = true
    }
  }

  /// - Parameter directory: where it waits.
  mutating func failed(_ name: FileName, wantsNetwork: Bool, in directory: Directory = .partial) {
    if !wantsNetwork {
      forNetwork[name] = nil
    } else if forNetwork.count < Self.mostForNetwork {
      forNetwork[name] = directory
    }
  }

  /// Removes the jobs that no longer wait, because they were paused, cancelled, or claimed by another worker.
  /// - Returns: the time of the first next attempt; nil if no job waits for one.
  mutating func recount(in spool: Spool) throws(SpoolError) -> Timestamp? {
    var first: Int64?
    var left: Set<FileName> = []
    for name in names {
      switch try Self.standing(name, in: spool) {
      case .gone: continue
      case .waits: break
      case .waitsUntil(let due): first = min(first ?? due, due)
      }
      left.insert(name)
    }
    names = left
    return first.map { Timestamp(seconds: $0) }
  }

  private enum Standing {
    case gone
    case waits
    /// In seconds since the epoch.
    case waitsUntil(Int64)
  }

  private static func standing(_ name: FileName, in spool: Spool) throws(SpoolError) -> Standing {
    for directory in [Directory.partial, .standing] {
      if let status = try spool.status(directory, name) { return .waitsUntil(status.modified) }
    }
    for directory in [Directory.new, .urgent] where try spool.status(directory, name) != nil { return .waits }
    // It may still be in cur/, because even its move failed.
    guard let job = JobName(name) else { return .gone }
    return try spool.status(.cur, ClaimName.fileName(job, spool.owner)) != nil ? .waits : .gone
  }

  /// Returns the jobs that failed for lack of a network, once.
  mutating func takeThoseForNetwork() -> [Candidate] {
    defer { forNetwork = [:] }
    return forNetwork.map { Candidate(name: $0.key, origin: $0.value, modified: 0, isForced: true) }
  }
}
