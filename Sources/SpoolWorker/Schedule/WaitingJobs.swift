internal import Spool

/// The jobs that a run has put back for another attempt, in bounded memory: with a host that is down, that may be all of a million.
struct WaitingJobs {
  /// Beyond this no more are counted.
  static let mostCounted = 10_000
  /// Beyond this the rest wait for their time, which comes within about a minute.
  static let mostForNetwork = 1000

  private var names: Set<FileName> = []
  private var areMore = false
  private var forNetwork: Set<FileName> = []

  /// How many wait: right up to ``mostCounted``, and never 0 for more.
  var count: Int { names.count + (areMore ? 1 : 0) }

  /// A job may fail and come back within one run: only how it stands at the end counts.
  mutating func ended(_ name: FileName, isWaiting: Bool) {
    if !isWaiting {
      names.remove(name)
    } else if names.count < Self.mostCounted {
      names.insert(name)
    } else if !names.contains(name) {
      areMore = true
    }
  }

  mutating func failed(_ name: FileName, wantsNetwork: Bool) {
    if !wantsNetwork {
      forNetwork.remove(name)
    } else if forNetwork.count < Self.mostForNetwork {
      forNetwork.insert(name)
    }
  }

  /// Counts only those that still wait: what was held, cancelled, or taken by another worker meanwhile does not any more.
  /// - Returns: the first of their next attempts; nil where none waits for its time.
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
    if let status = try spool.status(.partial, name) { return .waitsUntil(status.modified) }
    if try spool.status(.new, name) != nil { return .waits }
    // Left where it was, because not even its move could be made.
    guard let job = JobName(name) else { return .gone }
    return try spool.status(.cur, ClaimName.fileName(job, spool.owner)) != nil ? .waits : .gone
  }

  /// The jobs that failed for want of a network, once.
  mutating func takeThoseForNetwork() -> [Candidate] {
    defer { forNetwork = [] }
    return forNetwork.map { Candidate(name: $0, origin: .partial, modified: 0, isForced: true) }
  }
}
