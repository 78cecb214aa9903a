internal import Spool

/// The jobs that could run now, oldest first, and fair between hosts: the host with the fewest transfers under way goes
/// first. What may have killed workers comes last.
struct Backlog {
  /// What is to be done for the next job.
  enum Next: Equatable {
    /// Its text has to be looked at: see ``Backlog/add(_:_:)``.
    case look(Candidate)
    case run(Choice)
  }

  /// How many candidates are looked at ahead to learn their hosts.
  private static let lookAhead = 1000

  /// Newest first, so that the oldest is taken off the end.
  private var unread: [Candidate] = []
  /// Each host's candidates, oldest first from `start`.
  private var byHost: [String: (choices: [Choice], start: Int)] = [:]
  private var read = 0
  /// Those that open no connection.
  private var hostless: [Choice] = []
  private var suspects: [Choice] = []

  init(_ candidates: [Candidate] = []) { add(candidates) }

  /// Takes in more, each to its place by age.
  mutating func add(_ candidates: [Candidate]) {
    if candidates.isEmpty { return }
    // Of one second's, the shorter names first: a job before its `~2`, job-9 before job-10.
    unread = (unread + candidates).sorted { ($0.modified, $0.name.bytes.count) > ($1.modified, $1.name.bytes.count) }
  }

  /// Takes in one more, which came last.
  mutating func append(_ candidate: Candidate) { unread.insert(candidate, at: 0) }

  /// Takes in one whose text was looked at, behind those of its host.
  mutating func add(_ candidate: Candidate, _ peek: Peek) {
    let choice = Choice(candidate: candidate, peek: peek)
    guard let host = peek.host else { return hostless.append(choice) }
    if peek.deaths > 0 { return suspects.append(choice) }
    byHost[host, default: ([], 0)].choices.append(choice)
    read += 1
  }

  mutating func removeAll(where isUnwanted: (Candidate) -> Bool) {
    unread.removeAll(where: isUnwanted)
    byHost = byHost.compactMapValues { queue in
      let left = queue.choices[queue.start...].filter { !isUnwanted($0.candidate) }
      return left.isEmpty ? nil : (left, 0)
    }
    read = byHost.values.reduce(0) { $0 + $1.choices.count }
    hostless.removeAll { isUnwanted($0.candidate) }
    suspects.removeAll { isUnwanted($0.candidate) }
  }

  var count: Int { unread.count + read + hostless.count + suspects.count }

  /// All, in no order.
  var candidates: [Candidate] {
    unread + (byHost.values.flatMap { $0.choices[$0.start...] } + hostless + suspects).map(\.candidate)
  }

  var isEmpty: Bool { hasOnlySuspects && suspects.isEmpty }

  /// There is nothing that may run beside others, as far as the candidates were looked at.
  var hasOnlySuspects: Bool { unread.isEmpty && read == 0 && hostless.isEmpty }

  /// The next candidate of a host that has room, or what has to be looked at to know it.
  /// - Parameter running: transfers under way by host.
  mutating func next(perHost: Int, running: [String: Int]) -> Next? {
    if let choice = hostless.popLast() { return .run(choice) }
    let eligible = byHost.keys.filter { (running[$0] ?? 0) < perHost }
    if read >= Self.lookAhead || unread.isEmpty, let best = eligible.min(by: { isBefore($0, $1, running) }) {
      return .run(take(best))
    }
    return unread.popLast().map { .look($0) }
  }

  /// The next of those that let others go first: with the fewest deaths, then the oldest.
  /// - Parameter isIdle: nothing runs.
  mutating func nextSuspect(perHost: Int, running: [String: Int], isIdle: Bool) -> Choice? {
    let eligible = suspects.indices.filter {
      Suspicion.wantsToBeAlone(suspects[$0].peek.deaths) ? isIdle : (running[suspects[$0].host] ?? 0) < perHost
    }
    let best = eligible.min {
      let (left, right) = (suspects[$0], suspects[$1])
      return (left.peek.deaths, left.candidate.modified) < (right.peek.deaths, right.candidate.modified)
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
    return queue.choices[queue.start].candidate
  }

  private mutating func take(_ host: String) -> Choice {
    var queue = byHost.removeValue(forKey: host)!
    let choice = queue.choices[queue.start]
    queue.start += 1
    read -= 1
    if queue.start == queue.choices.count { return choice }
    // One that is filled up all the time would keep all that it ever had.
    if queue.start >= Self.lookAhead {
      queue.choices.removeFirst(queue.start)
      queue.start = 0
    }
    byHost[host] = queue
    return choice
  }
}
