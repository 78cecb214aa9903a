internal import Spool

/// The jobs that could run now, oldest first, and fair between hosts: the host with the fewest transfers under way goes
/// first. What may have killed workers comes last.
struct Backlog {
  struct Candidate {
    let name: FileName
    let origin: Directory
    let modified: Int64
    /// It runs although its time has not come.
    var isForced = false
  }

  /// What a candidate's text says.
  struct Prospect {
    /// nil for one that needs no room on any, such as a malformed job.
    let host: String?
    /// Of how many workers' deaths it is suspected, where others are to go first.
    let deaths: Int
  }

  /// What is to run next.
  struct Choice {
    let candidate: Candidate
    /// Empty for one that needs no room on any.
    let host: String
    var deaths = 0
  }

  /// How many candidates are read ahead to learn their hosts.
  private static let lookAhead = 1000

  /// Newest first, so that the oldest is taken off the end.
  private var unread: [Candidate] = []
  /// Each host's candidates, oldest first from `start`.
  private var byHost: [String: (candidates: [Candidate], start: Int)] = [:]
  private var read = 0
  private var suspects: [Choice] = []

  init(_ candidates: [Candidate] = []) { add(candidates) }

  /// More, each to its place by age.
  mutating func add(_ candidates: [Candidate]) {
    if candidates.isEmpty { return }
    // Of one second's, the shorter names first: a job before its `~2`, job-9 before job-10.
    unread = (unread + candidates).sorted { ($0.modified, $0.name.bytes.count) > ($1.modified, $1.name.bytes.count) }
  }

  /// One more, which came last.
  mutating func append(_ candidate: Candidate) { unread.insert(candidate, at: 0) }

  mutating func removeAll(where isUnwanted: (Candidate) -> Bool) {
    unread.removeAll(where: isUnwanted)
    byHost = byHost.compactMapValues { queue in
      let left = queue.candidates[queue.start...].filter { !isUnwanted($0) }
      return left.isEmpty ? nil : (left, 0)
    }
    read = byHost.values.reduce(0) { $0 + $1.candidates.count }
    suspects.removeAll { isUnwanted($0.candidate) }
  }

  var count: Int { unread.count + read + suspects.count }

  /// All, in no order.
  var candidates: [Candidate] {
    unread + byHost.values.flatMap { $0.candidates[$0.start...] } + suspects.map(\.candidate)
  }

  var isEmpty: Bool { hasOnlySuspects && suspects.isEmpty }

  /// There is nothing that may run beside others, as far as the candidates were read.
  var hasOnlySuspects: Bool { unread.isEmpty && read == 0 }

  /// The next candidate of a host that has room.
  /// - Parameters:
  ///   - running: transfers under way by host.
  ///   - prospect: called for each candidate once.
  mutating func next(perHost: Int, running: [String: Int], prospect: (Candidate) -> Prospect) -> Choice? {
    while true {
      let eligible = byHost.keys.filter { (running[$0] ?? 0) < perHost }
      if read >= Self.lookAhead || unread.isEmpty, let best = eligible.min(by: { isBefore($0, $1, running) }) {
        return Choice(candidate: take(best), host: best)
      }
      guard let candidate = unread.popLast() else { return nil }
      let prospect = prospect(candidate)
      guard let host = prospect.host else { return Choice(candidate: candidate, host: "") }
      if prospect.deaths > 0 {
        suspects.append(Choice(candidate: candidate, host: host, deaths: prospect.deaths))
      } else {
        byHost[host, default: ([], 0)].candidates.append(candidate)
        read += 1
      }
    }
  }

  /// The next of those that let others go first: with the fewest deaths, then the oldest.
  /// - Parameter isIdle: nothing runs.
  mutating func nextSuspect(perHost: Int, running: [String: Int], isIdle: Bool) -> Choice? {
    let eligible = suspects.indices.filter {
      Suspicion.wantsToBeAlone(suspects[$0].deaths) ? isIdle : (running[suspects[$0].host] ?? 0) < perHost
    }
    let best = eligible.min {
      let (left, right) = (suspects[$0], suspects[$1])
      return (left.deaths, left.candidate.modified) < (right.deaths, right.candidate.modified)
    }
    return best.map { suspects.remove(at: $0) }
  }

  private func isBefore(_ left: String, _ right: String, _ running: [String: Int]) -> Bool {
    let (leftLoad, rightLoad) = (running[left] ?? 0, running[right] ?? 0)
    if leftLoad != rightLoad { return leftLoad < rightLoad }
    return first(left).modified < first(right).modified
  }

  private func first(_ host: String) -> Candidate {
    let queue = byHost[host]!
    return queue.candidates[queue.start]
  }

  private mutating func take(_ host: String) -> Candidate {
    var queue = byHost.removeValue(forKey: host)!
    let candidate = queue.candidates[queue.start]
    queue.start += 1
    read -= 1
    if queue.start == queue.candidates.count { return candidate }
    // One that is filled up all the time would keep all that it ever had.
    if queue.start >= Self.lookAhead {
      queue.candidates.removeFirst(queue.start)
      queue.start = 0
    }
    byHost[host] = queue
    return candidate
  }
}
