internal import Spool

/// The jobs that could run now, with a ``Backlog`` for each priority. A job in `urgent/` has high priority, and any
/// other counts as normal until its text has been read.
struct PrioritisedBacklog {
  /// The next step towards starting a job.
  enum Next: Equatable {
    /// Read its text: see ``PrioritisedBacklog/add(_:_:)``.
    case look(Candidate)
    case run(Choice)
    /// Park this running job, to start one of high priority.
    case park(UInt64)
  }

  /// Maximum number of candidates of each priority. Among them, jobs start oldest first and fairly between hosts.
  static let horizon = 4000
  /// How many names are read at a time.
  static let piece = 1000
  /// Maximum number of remembered retries.
  private static let mostRetries = 1000

  private var high = Backlog()
  private var normal = Backlog()
  private var low = Backlog()
  private var turns = Turns()
  /// Priorities of which something was seen that is not here, so that another pass is needed to find it.
  private var passedOver: Set<Priority> = []
  /// Jobs of high priority that wait for their next attempt, and when it is due, in seconds since the epoch. A pass
  /// would find them late among many others.
  private var retries: [(candidate: Candidate, due: Int64)] = []

  // MARK: what is known

  var count: Int { high.count + normal.count + low.count }

  /// All candidates, in no particular order.
  var candidates: [Candidate] { high.candidates + normal.candidates + low.candidates }

  var isEmpty: Bool { high.isEmpty && normal.isEmpty && low.isEmpty }

  /// Whether no candidate is known that may run in parallel with others.
  var hasOnlySuspects: Bool { high.hasOnlySuspects && normal.hasOnlySuspects && low.hasOnlySuspects }

  /// Whether a job of high priority waits, perhaps for the slot of another job.
  var isUrgent: Bool { !high.isEmpty }

  /// Whether a piece of the directories fits.
  var hasRoom: Bool { normal.count <= Self.horizon - Self.piece && low.count < Self.horizon }
  /// The same for `urgent/`.
  var hasUrgentRoom: Bool { high.count <= Self.horizon - Self.piece }

  var isSomethingPassedOver: Bool { !passedOver.isEmpty }

  /// Whether all candidates have been looked at and wait for a proxy.
  func areHeldBack(by slots: FreeSlots) -> Bool {
    high.areHeldBack(by: slots) && normal.areHeldBack(by: slots) && low.areHeldBack(by: slots)
  }

  /// Whether a pass would find jobs that were passed over, and those that are here would not keep them waiting.
  var needsPass: Bool {
    passedOver.contains { priority in
      Priority.allCases.allSatisfy { $0 > priority || self[$0].hasOnlySuspects }
    }
  }

  private subscript(_ priority: Priority) -> Backlog {
    switch priority {
    case .high: high
    case .normal: normal
    case .low: low
    }
  }

  // MARK: adding

  /// Adds candidates, sorted by age.
  mutating func add(_ candidates: [Candidate]) {
    high.add(candidates.filter { $0.origin == .urgent })
    normal.add(candidates.filter { $0.origin != .urgent })
  }

  /// Adds the newest candidate.
  mutating func append(_ candidate: Candidate) {
    if candidate.origin == .urgent { high.append(candidate) } else { normal.append(candidate) }
  }

  /// Whether there is no more room for what was found in a directory.
  func isFull(for directory: Directory) -> Bool {
    (directory == .urgent ? high : normal).count >= Self.horizon
  }

  /// Whether a job that was just dropped has to wait until others have been looked at.
  var hasUnread: Bool { normal.hasUnread }

  /// Adds a candidate whose text has been read, after those of the same priority and host.
  mutating func add(_ candidate: Candidate, _ peek: Peek) {
    switch peek.priority {
    case .high:
      // Those outside of `urgent/` stay when a pass begins, and are found again by it.
      if candidate.origin != .urgent, high.contains(candidate) { return }
      high.add(candidate, peek)
    case .normal: normal.add(candidate, peek)
    case .low:
      if low.count < Self.horizon { low.add(candidate, peek) } else { passOver(.low) }
    }
  }

  mutating func passOver(_ priority: Priority) { passedOver.insert(priority) }

  /// Whether there is room for a job that a search has found, and perhaps a slot.
  func admits(_ peek: Peek, _ slots: FreeSlots, _ limits: Slots.Limits) -> Bool {
    switch peek.priority {
    case .high: high.count < Self.horizon
    case .normal: slots.areFree(for: peek)
    case .low: low.count < Self.horizon && slots.within(perHost: limits.forLow.perHost).areFree(for: peek)
    }
  }

  /// A pass begins, which finds the jobs of these directories again.
  ///
  /// Jobs of high priority outside of `urgent/` stay: among many others they would be found late.
  mutating func beginPass(over directories: [Directory]) {
    if directories.contains(.urgent) { high.removeAll { $0.origin == .urgent } }
    normal.removeAll { directories.contains($0.origin) }
    low.removeAll { directories.contains($0.origin) }
  }

  /// Passes over everything were requested.
  mutating func requestPass() { passedOver = [] }

  // MARK: retries

  /// Remembers a job of high priority until it is due.
  /// - Parameter due: in seconds since the epoch.
  mutating func remember(_ candidate: Candidate, due: Int64) {
    retries.removeAll { $0.candidate.name == candidate.name }
    if retries.count < Self.mostRetries { retries.append((candidate, due)) }
  }

  /// Adds the remembered jobs that are due.
  /// - Parameter time: in seconds since the epoch.
  mutating func addDue(at time: Int64) {
    guard retries.contains(where: { $0.due <= time }) else { return }
    for retry in retries where retry.due <= time && !high.contains(retry.candidate) { high.append(retry.candidate) }
    retries.removeAll { $0.due <= time }
  }

  // MARK: choosing

  /// A job of high or normal priority, or one whose turn it is.
  /// - Parameter free: what is free of `slots` now.
  mutating func next(_ slots: Slots, _ free: FreeSlots) -> Next? {
    guard slots.areFree else {
      // Its host and its priority have to be known before another job is parked for it.
      if let candidate = high.nextUnread() ?? (slots.hasLow ? normal.nextUnread() : nil) { return .look(candidate) }
      return outranked(slots, free).map { .park($0) }
    }
    for priority in [Priority.low, .normal] where turns.isDue(priority) {
      if let choice = nextAged(priority, free) { return .run(choice) }
      // There may be one among those that have not been read.
      if self[priority].readCount == 0, let candidate = normal.nextUnread() { return .look(candidate) }
    }
    if let next = high.next(free) { return Next(next) }
    if let id = outranked(slots, free) { return .park(id) }
    return normal.next(free).map { Next($0) }
  }

  /// A job of high or normal priority that may have killed workers; see ``Backlog/nextSuspect(_:isIdle:)``.
  mutating func nextSuspect(_ free: FreeSlots, isIdle: Bool) -> Choice? {
    high.nextSuspect(free, isIdle: isIdle) ?? normal.nextSuspect(free, isIdle: isIdle)
  }

  /// A job of low priority, for when no other can start.
  mutating func nextLow(_ slots: Slots, _ free: FreeSlots) -> Choice? {
    let limits = slots.limits.forLow
    guard slots.areFree(within: limits) else { return nil }
    if case .run(let choice) = low.next(free.within(perHost: limits.perHost)) { return choice }
    return low.nextSuspect(free.within(perHost: limits.perHost), isIdle: slots.areIdle)
  }

  mutating func started(_ priority: Priority) { turns.started(priority) }

  private mutating func nextAged(_ priority: Priority, _ free: FreeSlots) -> Choice? {
    switch priority {
    case .high: nil
    case .normal: normal.nextAged(free)
    case .low: low.nextAged(free)
    }
  }

  /// The youngest running job of low priority whose slot one of high priority needs; nil if enough are being parked.
  private func outranked(_ slots: Slots, _ free: FreeSlots) -> UInt64? {
    guard high.readCount > 0, slots.hasLow, slots.beingParked < high.readCount else { return nil }
    let blocked = high.firsts.filter { !free.waitsForProxy($0.peek) }
    return blocked.compactMap { slots.youngestLow(inTheWayOf: $0.host) }.max()
  }
}

extension PrioritisedBacklog.Next {
  fileprivate init(_ next: Backlog.Next) {
    switch next {
    case .look(let candidate): self = .look(candidate)
    case .run(let choice): self = .run(choice)
    }
  }
}
