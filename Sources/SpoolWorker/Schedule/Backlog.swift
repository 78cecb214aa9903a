internal import Spool

/// The next step towards starting a job.
enum ScheduleStep: Equatable {
  /// Read its text: see ``PrioritisedBacklog/add(_:_:)``.
  case look(Candidate)
  /// Claim it.
  case start(Choice)
  /// Stop this running job and put it back, because one of high priority needs its slot.
  case park(UInt64)
  /// Read this many names and the texts of these jobs, and keep the jobs whose host has a free slot: see
  /// ``Scheduler/searched(_:from:to:)``.
  case search(Int)
}

/// The jobs of one priority that could run now, oldest first, and fair between hosts: the host with the fewest running
/// transfers goes first. Jobs that may have killed workers come last.
struct Backlog {
  /// How many candidates are read ahead to learn their hosts.
  private static let lookAhead = 1000

  /// Newest first, so that the oldest is removed from the end.
  private var unread: [Candidate] = []
  /// Each queue's candidates (``Choice/queue``), oldest first. Slices lose their first element in constant time.
  private var byHost: [String: ArraySlice<Choice>] = [:]
  /// How many of these there are.
  private(set) var readCount = 0
  /// Candidates that open no connection.
  private var hostless: [Choice] = []
  private var suspects: [Choice] = []

  init(_ candidates: [Candidate] = []) { add(candidates) }

  mutating func add(_ candidates: [Candidate]) {
    if candidates.isEmpty { return }
    unread = (unread + candidates).sorted { $1.isBefore($0) }
  }

  mutating func append(_ candidate: Candidate) { unread.insert(candidate, at: 0) }

  /// Adds a candidate whose text has been read, after those of the same host.
  mutating func add(_ candidate: Candidate, _ peek: Peek) {
    let choice = Choice(candidate: candidate, peek: peek)
    guard peek.host != nil else { return hostless.append(choice) }
    if peek.deaths > 0 { return suspects.append(choice) }
    byHost[choice.queue, default: []].append(choice)
    readCount += 1
  }

  /// Adds a candidate that was chosen, before all others of its host.
  mutating func putBack(_ choice: Choice) {
    guard choice.peek.host != nil, choice.peek.deaths == 0 else { return add(choice.candidate, choice.peek) }
    byHost[choice.queue] = [choice] + (byHost[choice.queue] ?? [])
    readCount += 1
  }

  mutating func removeAll(where isUnwanted: (Candidate) -> Bool) {
    unread.removeAll(where: isUnwanted)
    byHost = byHost.mapValues { $0.filter { !isUnwanted($0.candidate) }[...] }.filter { !$0.value.isEmpty }
    readCount = byHost.values.reduce(0) { $0 + $1.count }
    hostless.removeAll { isUnwanted($0.candidate) }
    suspects.removeAll { isUnwanted($0.candidate) }
  }

  var count: Int { unread.count + readCount + hostless.count + suspects.count }

  /// All candidates, in no particular order.
  var candidates: [Candidate] { unread + (byHost.values.joined() + hostless + suspects).map(\.candidate) }

  var isEmpty: Bool { hasOnlySuspects && suspects.isEmpty }

  /// Whether no candidate is known that may run in parallel with others.
  var hasOnlySuspects: Bool { unread.isEmpty && readCount == 0 && hostless.isEmpty }

  /// Whether all candidates have been looked at and wait for servers that rest.
  func areHeldBack(by slots: FreeSlots) -> Bool {
    unread.isEmpty && hostless.isEmpty && suspects.allSatisfy { slots.isHeldBack($0.peek) }
      && byHost.keys.allSatisfy { slots.isHeldBack(first($0).peek) }
  }

  /// The next candidate with a free slot, or the candidate to read first.
  mutating func next(_ slots: FreeSlots) -> ScheduleStep? {
    if let choice = hostless.popLast() { return .start(choice) }
    if readCount >= Self.lookAhead || unread.isEmpty {
      let eligible = byHost.keys.filter { slots.areFree(for: first($0).peek) }
      if let best = eligible.min(by: { isBefore($0, $1, slots) }) { return .start(take(best)) }
    }
    return unread.popLast().map { .look($0) }
  }

  /// The next job that may have killed workers: the one with the fewest deaths, then the oldest.
  /// - Parameter isIdle: whether no job runs.
  mutating func nextSuspect(_ slots: FreeSlots, isIdle: Bool) -> Choice? {
    let eligible = suspects.indices.filter {
      slots.areFree(for: suspects[$0].peek) && (isIdle || !Probation.wantsToBeAlone(suspects[$0].peek.deaths))
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
  mutating func nextUnread() -> Candidate? { readCount < Self.lookAhead ? unread.popLast() : nil }

  var hasUnread: Bool { !unread.isEmpty }

  /// The oldest of each host.
  var firsts: [Choice] { byHost.keys.map { first($0) } }

  func contains(_ candidate: Candidate) -> Bool {
    func isSame(_ other: Candidate) -> Bool { other.name == candidate.name && other.origin == candidate.origin }
    return unread.contains(where: isSame) || hostless.contains { isSame($0.candidate) }
      || suspects.contains { isSame($0.candidate) } || byHost.values.joined().contains { isSame($0.candidate) }
  }

  private func isBefore(_ left: String, _ right: String, _ slots: FreeSlots) -> Bool {
    let (leftLoad, rightLoad) = (slots.load(of: first(left).host), slots.load(of: first(right).host))
    if leftLoad != rightLoad { return leftLoad < rightLoad }
    return first(left).candidate.isBefore(first(right).candidate)
  }

  private func first(_ host: String) -> Choice { byHost[host]!.first! }

  private mutating func take(_ host: String) -> Choice {
    readCount -= 1
    var queue = byHost.removeValue(forKey: host)!
    let choice = queue.removeFirst()
    // A slice keeps the memory of what was taken from its front.
    if queue.startIndex >= Self.lookAhead { queue = Array(queue)[...] }
    if !queue.isEmpty { byHost[host] = queue }
    return choice
  }
}

/// The jobs that could run now, with a ``Backlog`` for each priority. A job in `urgent/` has high priority, and any
/// other counts as normal until its text has been read.
struct PrioritisedBacklog {
  /// Maximum number of candidates of each priority. Among them, jobs start oldest first and fairly between hosts.
  static let horizon = 4000
  /// How many names are read at a time.
  static let piece = 1000
  /// After so many jobs of higher priority in a row, one of lower priority that has waited for a day starts first.
  private static let inARow = 9

  private var high = Backlog()
  private var normal = Backlog()
  private var low = Backlog()
  /// How many jobs of higher priority have started since the last one of this priority.
  private var passed: [Priority: Int] = [:]
  /// Priorities of which something was seen that is not here, so that another pass is needed to find it.
  private var passedOver: Set<Priority> = []

  // MARK: what is known

  var count: Int { high.count + normal.count + low.count }

  var candidates: [Candidate] { high.candidates + normal.candidates + low.candidates }

  var isEmpty: Bool { high.isEmpty && normal.isEmpty && low.isEmpty }

  var hasOnlySuspects: Bool { high.hasOnlySuspects && normal.hasOnlySuspects && low.hasOnlySuspects }

  /// Whether a job of high priority waits, perhaps for the slot of another job.
  var isUrgent: Bool { !high.isEmpty }

  /// What is read counts as normal until it is looked at, and may all turn out to be low.
  var hasRoom: Bool { normal.count + low.count <= Self.horizon - Self.piece }
  var hasUrgentRoom: Bool { high.count <= Self.horizon - Self.piece }

  var isSomethingPassedOver: Bool { !passedOver.isEmpty }

  func areHeldBack(by slots: FreeSlots) -> Bool {
    high.areHeldBack(by: slots) && normal.areHeldBack(by: slots) && low.areHeldBack(by: slots)
  }

  /// Whether a pass would find jobs that were passed over, and those that are here would not keep them waiting.
  var needsPass: Bool {
    passedOver.contains { priority in Priority.allCases.allSatisfy { $0 > priority || self[$0].hasOnlySuspects } }
  }

  private subscript(_ priority: Priority) -> Backlog { self[keyPath: Self.backlog(of: priority)] }

  private static func backlog(of priority: Priority) -> WritableKeyPath<PrioritisedBacklog, Backlog> {
    switch priority {
    case .high: \.high
    case .normal: \.normal
    case .low: \.low
    }
  }

  // MARK: adding

  mutating func add(_ candidates: [Candidate]) {
    high.add(candidates.filter { $0.origin == .urgent })
    normal.add(candidates.filter { $0.origin != .urgent })
  }

  mutating func append(_ candidate: Candidate) {
    if candidate.origin == .urgent { high.append(candidate) } else { normal.append(candidate) }
  }

  /// Adds a job of high priority, wherever it is, unless a pass has found it.
  mutating func appendHigh(_ candidate: Candidate) { if !high.contains(candidate) { high.append(candidate) } }

  func isFull(for directory: Directory) -> Bool { (directory == .urgent ? high : normal).count >= Self.horizon }

  /// Whether a job that was just dropped has to wait until others have been looked at.
  var hasUnread: Bool { normal.hasUnread }

  mutating func add(_ candidate: Candidate, _ peek: Peek) {
    switch peek.priority {
    case .high:
      if high.count >= Self.horizon { return passOver(.high) }
      // Those outside of `urgent/` stay when a pass begins, and are found again by it.
      if candidate.origin != .urgent, high.contains(candidate) { return }
      high.add(candidate, peek)
    case .normal: normal.add(candidate, peek)
    case .low: if low.count < Self.horizon { low.add(candidate, peek) } else { passOver(.low) }
    }
  }

  mutating func putBack(_ choice: Choice) { self[keyPath: Self.backlog(of: choice.peek.priority)].putBack(choice) }

  mutating func passOver(_ priority: Priority) { passedOver.insert(priority) }

  /// Whether there is room for a job that a search has found, and perhaps a slot.
  func admits(_ peek: Peek, _ slots: FreeSlots, _ limits: TransferLimits) -> Bool {
    switch peek.priority {
    case .high: high.count < Self.horizon
    case .normal: slots.areFree(for: peek)
    case .low: low.count < Self.horizon && slots.within(limits.forLow).areFree(for: peek)
    }
  }

  /// A pass begins, which finds the jobs of these directories again.
  ///
  /// Jobs of high priority outside of `urgent/` stay: among many others they would be found late.
  mutating func beginPass(over directories: [Directory]) {
    if directories.contains(.urgent) { high.removeAll { $0.origin == .urgent } }
    normal.removeAll { $0.isFound(byPassOver: directories) }
    low.removeAll { $0.isFound(byPassOver: directories) }
  }

  mutating func requestPass() { passedOver = [] }

  // MARK: choosing

  /// A job of high or normal priority, or one whose turn it is.
  /// - Parameter free: what is free of `slots` now.
  mutating func next(_ slots: Slots, _ free: FreeSlots) -> ScheduleStep? {
    guard slots.areFree else {
      // Its host and its priority have to be known before another job is parked for it.
      if let candidate = high.nextUnread() ?? (slots.hasLow ? normal.nextUnread() : nil) { return .look(candidate) }
      return outranked(slots, free).map { .park($0) }
    }
    for priority in [Priority.low, .normal] where passed[priority] ?? 0 >= Self.inARow {
      if let choice = self[keyPath: Self.backlog(of: priority)].nextAged(free) { return .start(choice) }
      // There may be one among those that have not been read.
      if self[priority].readCount == 0, let candidate = normal.nextUnread() { return .look(candidate) }
    }
    if let next = high.next(free) { return next }
    if let id = outranked(slots, free) { return .park(id) }
    return normal.next(free)
  }

  /// One of low priority comes with ``nextLow(_:_:)``.
  mutating func nextSuspect(_ free: FreeSlots, isIdle: Bool) -> Choice? {
    high.nextSuspect(free, isIdle: isIdle) ?? normal.nextSuspect(free, isIdle: isIdle)
  }

  /// A job of low priority, for when no other can start.
  mutating func nextLow(_ slots: Slots, _ free: FreeSlots) -> Choice? {
    let limits = slots.limits.forLow
    guard slots.areFree(within: limits) else { return nil }
    if case .start(let choice) = low.next(free.within(limits)) { return choice }
    return low.nextSuspect(free.within(limits), isIdle: slots.areIdle)
  }

  mutating func started(_ priority: Priority) {
    passed[priority] = 0
    for lower in Priority.allCases where lower > priority { passed[lower, default: 0] += 1 }
  }

  /// The youngest running job of low priority whose slot one of high priority needs; nil if enough are being parked.
  private func outranked(_ slots: Slots, _ free: FreeSlots) -> UInt64? {
    guard high.readCount > 0, slots.hasLow, slots.beingParked < high.readCount else { return nil }
    // A slot does not help one that waits for its turn.
    let blocked = high.firsts.filter { !free.isHeldBack($0.peek) && free.full[$0.host] != true }
    return blocked.compactMap { slots.youngestLow(inTheWayOf: $0.host, isFull: free.full[$0.host] != nil) }.max()
  }
}
