internal import Spool

/// The jobs of one priority that could run now, oldest first, and fair between hosts: the host with the fewest running
/// transfers goes first. Jobs that may have killed workers come last.
struct Backlog {
  /// The next step towards starting a job.
  enum Next: Equatable {
    /// Read its text: see ``Backlog/add(_:_:)``.
    case look(Candidate)
    case run(Choice)
  }

  /// How many candidates are read ahead to learn their hosts.
  private static let lookAhead = 1000

  /// Newest first, so that the oldest is removed from the end.
  private var unread: [Candidate] = []
  /// Each host's candidates, oldest first from `start`.
  private var byHost: [String: (choices: [Choice], start: Int)] = [:]
  private var read = 0
  /// Candidates that open no connection.
  private var hostless: [Choice] = []
  private var suspects: [Choice] = []

  init(_ candidates: [Candidate] = []) { add(candidates) }

  /// Adds candidates, sorted by age.
  mutating func add(_ candidates: [Candidate]) {
    if candidates.isEmpty { return }
    unread = (unread + candidates).sorted { $1.isBefore($0) }
  }

  /// Adds the newest candidate.
  mutating func append(_ candidate: Candidate) { unread.insert(candidate, at: 0) }

  /// Adds a candidate whose text has been read, after those of the same host.
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

  /// All candidates, in no particular order.
  var candidates: [Candidate] {
    unread + (byHost.values.flatMap { $0.choices[$0.start...] } + hostless + suspects).map(\.candidate)
  }

  var isEmpty: Bool { hasOnlySuspects && suspects.isEmpty }

  /// Whether no candidate is known that may run in parallel with others.
  var hasOnlySuspects: Bool { unread.isEmpty && read == 0 && hostless.isEmpty }

  /// Whether all candidates have been looked at and wait for a proxy.
  func areHeldBack(by slots: FreeSlots) -> Bool {
    unread.isEmpty && hostless.isEmpty && suspects.allSatisfy { slots.waitsForProxy($0.peek) }
      && byHost.keys.allSatisfy { slots.waitsForProxy(first($0).peek) }
  }

  /// The next candidate with a free slot, or the candidate to read first.
  mutating func next(_ slots: FreeSlots) -> Next? {
    if let choice = hostless.popLast() { return .run(choice) }
    let eligible = byHost.keys.filter { slots.areFree(for: first($0).peek) }
    if read >= Self.lookAhead || unread.isEmpty, let best = eligible.min(by: { isBefore($0, $1, slots) }) {
      return .run(take(best))
    }
    return unread.popLast().map { .look($0) }
  }

  /// The next job that may have killed workers: the one with the fewest deaths, then the oldest.
  /// - Parameter isIdle: whether no job runs.
  mutating func nextSuspect(_ slots: FreeSlots, isIdle: Bool) -> Choice? {
    let eligible = suspects.indices.filter {
      slots.areFree(for: suspects[$0].peek) && (isIdle || !Suspicion.wantsToBeAlone(suspects[$0].peek.deaths))
    }
    let best = eligible.min {
      let (left, right) = (suspects[$0], suspects[$1])
      if left.peek.deaths != right.peek.deaths { return left.peek.deaths < right.peek.deaths }
      return left.candidate.isBefore(right.candidate)
    }
    return best.map { suspects.remove(at: $0) }
  }

  /// The first candidate with a free slot that has waited for a day.
  mutating func nextAged(_ slots: FreeSlots) -> Choice? {
    let eligible = byHost.keys.filter { first($0).peek.isAged && slots.areFree(for: first($0).peek) }
    return eligible.min { isBefore($0, $1, slots) }.map { take($0) }
  }

  /// The candidate to read first, also while no job may start.
  mutating func nextUnread() -> Candidate? { read < Self.lookAhead ? unread.popLast() : nil }

  var hasUnread: Bool { !unread.isEmpty }

  /// How many candidates' texts have been read.
  var readCount: Int { read }
  /// The oldest of these of each host.
  var firsts: [Choice] { byHost.keys.map { first($0) } }

  func contains(_ candidate: Candidate) -> Bool {
    func isSame(_ other: Candidate) -> Bool { other.name == candidate.name && other.origin == candidate.origin }
    return unread.contains(where: isSame) || hostless.contains { isSame($0.candidate) }
      || suspects.contains { isSame($0.candidate) }
      || byHost.values.contains { $0.choices[$0.start...].contains { isSame($0.candidate) } }
  }

  private func isBefore(_ left: String, _ right: String, _ slots: FreeSlots) -> Bool {
    let (leftLoad, rightLoad) = (slots.load(of: left), slots.load(of: right))
    if leftLoad != rightLoad { return leftLoad < rightLoad }
    return first(left).candidate.isBefore(first(right).candidate)
  }

  private func first(_ host: String) -> Choice {
    let queue = byHost[host]!
    return queue.choices[queue.start]
  }

  private mutating func take(_ host: String) -> Choice {
    var queue = byHost.removeValue(forKey: host)!
    let choice = queue.choices[queue.start]
    queue.start += 1
    read -= 1
    if queue.start == queue.choices.count { return choice }
    // A queue that never gets empty would keep all its former elements.
    if queue.start >= Self.lookAhead {
      queue.choices.removeFirst(queue.start)
      queue.start = 0
    }
    byHost[host] = queue
    return choice
  }
}
