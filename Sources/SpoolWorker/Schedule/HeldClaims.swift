internal import Spool

/// The claims of other workers, and when their leases end. They are looked at then, without a pass over everything.
struct HeldClaims: Equatable {
  private var ends: [FileName: (candidate: Candidate, end: Int64)] = [:]
  /// Maximum number of claims that are remembered; a pass finds the others.
  private static let most = 1000

  /// - Parameter end: in seconds since the epoch.
  mutating func note(_ candidate: Candidate, until end: Int64) {
    if ends.count < Self.most || ends[candidate.name] != nil { ends[candidate.name] = (candidate, end) }
  }

  /// When the first lease ends, in seconds since the epoch; nil if there is none.
  var next: Int64? { ends.values.lazy.map(\.end).min() }

  /// The claims whose lease has ended by `time`. They are forgotten.
  mutating func takeEnded(by time: Int64) -> [Candidate] {
    let ended = ends.values.filter { $0.end <= time }.map(\.candidate)
    for candidate in ended { ends[candidate.name] = nil }
    return ended
  }

  static func == (left: HeldClaims, right: HeldClaims) -> Bool {
    left.ends.mapValues(\.end) == right.ends.mapValues(\.end)
  }
}
