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

  /// The jobs that failed for want of a network, once.
  mutating func takeThoseForNetwork() -> [Backlog.Candidate] {
    defer { forNetwork = [] }
    return forNetwork.map { Backlog.Candidate(name: $0, origin: .partial, modified: 0, isForced: true) }
  }
}
