internal import Spool

/// Which directories are read, which jobs are looked at, and which starts next. Pure: it is told what was found and what
/// became of it, and says what to do.
///
/// Times are milliseconds of the loop's clock; due times are seconds since the epoch.
struct Scheduler {
  enum Reading: Equatable {
    /// Begin these directories from their start: see ``began(_:at:)``.
    case begin([Directory])
    /// Read so many names: see ``found(_:names:took:)``.
    case read(Int)
  }

  enum Step: Equatable {
    /// Look at its text: see ``looked(at:_:)``.
    case look(Candidate)
    /// Claim it.
    case start(Choice)
    /// Read so many names, look at those jobs, and keep whose host has room: see ``searched(_:passedOver:from:to:)``.
    case search(Int)
  }

  /// How often all is looked at, whatever inotify says.
  static let interval: Int64 = 60_000
  /// Candidates that are looked ahead at: oldest first and fair between hosts among so many.
  static let horizon = 4000
  static let piece = 1000

  private(set) var backlog = Backlog()
  private(set) var slots: Slots
  private(set) var passes = Passes()
  private(set) var spaceWait = SpaceWait()
  /// When the first job falls due that a pass saw waiting.
  private(set) var nextDue: Int64?
  /// The passes that were requested last cover all that ended until now.
  private(set) var isFresh = false
  /// Something was seen that is not in the backlog: only another pass finds it.
  private var isSomethingPassedOver = false
  /// When the last pass began, and how long the loop was kept by reading since.
  private var passBegan: Int64 = 0
  private var passTook: Int64 = 0
  private var nextPass: Int64 = 0
  private var nextSearch: Int64 = 0
  /// How many names may still be read in this turn: transfers wait meanwhile.
  private var namesLeft = Self.horizon

  init(_ limits: Slots.Limits) { slots = Slots(limits) }

  // MARK: passes

  /// Wants all looked at that is there from now on.
  mutating func requestPass() {
    passes.request()
    isFresh = true
    isSomethingPassedOver = false
  }

  /// The same once a minute.
  mutating func requestPeriodicPass(at now: Int64) {
    requestPass()
    nextPass = now + Self.interval
  }

  /// Whether the minute is over. While jobs are passed over for want of space the pass is slow, and begun anew each
  /// minute it would never end.
  func isPassDue(at now: Int64) -> Bool { now >= nextPass && !isLookingForSpace(at: now) }

  func untilPass(at now: Int64) -> Int64 { max(0, nextPass - now) }

  /// Whether a pass may find more: nothing is left of the last one.
  /// - Parameter isStale: whether the last one counts as too old.
  func wantsPass(at now: Int64, isStale: Bool) -> Bool {
    backlog.hasOnlySuspects && !passes.areUnderWay && (isStale || isSomethingPassedOver) && mayPass(at: now)
  }

  /// Whether a pass is worth its time while jobs run: where the last one took long, most of the time is for the transfers.
  private func mayPass(at now: Int64) -> Bool { slots.areIdle || now - passBegan >= 10 * passTook }

  /// Not for long, because it may stand still behind a host that is busy, and only another one sees what is new.
  private func isLookingForSpace(at now: Int64) -> Bool {
    guard !spaceWait.isEmpty, now - passBegan < 10 * Self.interval else { return false }
    return passes.areUnderWay || !backlog.isEmpty && spaceWait.isGoingOn(at: now)
  }

  /// The directories are gone, and what was read of them with them.
  mutating func abandonPasses() { passes = Passes() }

  /// Nothing is left to do, as far as a pass can tell that began after the last job's end.
  var isSettled: Bool { backlog.isEmpty && passes.areSettled && isFresh && !isSomethingPassedOver }

  /// All that is left waits for space.
  var onlySpaceIsWantedFor: Bool { backlog.isEmpty && isFresh && passes.areSettled && !spaceWait.isEmpty }

  /// There is more to run than is in the backlog.
  var areMore: Bool { passes.areUnderWay || isSomethingPassedOver }

  // MARK: reading

  mutating func beginTurn() { namesLeft = Self.horizon }

  /// There is more to read at once.
  var canReadOn: Bool { !passes.ready.isEmpty || hasRoomAhead }

  private var hasRoomAhead: Bool { passes.areUnderWay && backlog.count <= Self.horizon - Self.piece }

  /// What to read next, until there is enough to choose from, but not for long.
  func nextReading() -> Reading? {
    if !passes.ready.isEmpty { return .begin(passes.ready) }
    return hasRoomAhead && namesLeft > 0 ? .read(Self.piece) : nil
  }

  mutating func began(_ directories: [Directory], at now: Int64) {
    (passBegan, passTook) = (now, 0)
    for directory in directories { passes.began(directory) }
    backlog.removeAll { directories.contains($0.origin) }
    spaceWait.removeAll()
    if directories.contains(.partial) { nextDue = nil }
  }

  /// The directory whose next name is to be read.
  mutating func nextDirectory() -> Directory? { passes.next() }

  mutating func ended(_ directory: Directory) { passes.ended(directory) }

  /// - Parameter took: milliseconds.
  mutating func found(_ candidates: [Candidate], names: Int, took: Int64) {
    backlog.add(candidates)
    namesLeft -= names
    passTook += took
  }

  /// A job that was just dropped or changed.
  mutating func appeared(_ candidate: Candidate) { backlog.append(candidate) }

  /// There are enough candidates: one that appears is left to another pass.
  mutating func passesOver() -> Bool {
    guard backlog.count >= Self.horizon else { return false }
    isSomethingPassedOver = true
    return true
  }

  /// Takes in jobs that may run whatever their time.
  mutating func force(_ candidates: [Candidate]) { backlog.add(candidates) }

  /// - Parameter time: in seconds since the epoch.
  mutating func willBeDue(at time: Int64) { nextDue = min(nextDue ?? .max, time) }

  func isDue(at time: Int64) -> Bool { nextDue.map { $0 <= time } ?? false }

  /// In milliseconds; time is in seconds since the epoch.
  func untilDue(at time: Int64) -> Int64 {
    nextDue.map { max(0, min($0 - time, 3600)) * 1000 } ?? Self.interval
  }

  /// What is to be seen cannot be foreseen: another pass has to look.
  mutating func isDueNow() { nextDue = 0 }

  // MARK: starting

  /// What leads to the next start; nil where nothing may start now, or nothing is there.
  mutating func nextStep(at now: Int64) -> Step? {
    guard slots.areFree, spaceWait.mayGoOn(at: now) else { return nil }
    switch backlog.next(perHost: slots.limits.perHost, running: slots.byHost) {
    case .look(let candidate): return .look(candidate)
    case .run(let choice): return .start(choice)
    case nil: break
    }
    // Where all that was looked ahead at waits for hosts that have no room: on to one that has. A twentieth of the
    // loop's time at most: a million jobs of a busy host are passed in some ten minutes.
    if passes.areUnderWay, !canReadOn, now >= nextSearch { return .search(250) }
    if canReadOn { return nil }
    let suspect = backlog.nextSuspect(
      perHost: slots.limits.perHost, running: slots.byHost, isIdle: slots.areIdle)
    return suspect.map { .start($0) }
  }

  mutating func looked(at candidate: Candidate, _ peek: Peek) { backlog.add(candidate, peek) }

  /// Whether a job that a search found is worth keeping; the next pass finds the others again.
  mutating func keeps(_ peek: Peek) -> Bool {
    if slots.areFree(for: peek.host) { return true }
    isSomethingPassedOver = true
    return false
  }

  mutating func searched(_ found: [(Candidate, Peek)], from start: Int64, to end: Int64) {
    for (candidate, peek) in found { backlog.add(candidate, peek) }
    nextSearch = end + 19 * (end - start + 1)
  }

  /// The chosen one has no room on the disk.
  /// - Returns: whether that is news.
  mutating func lacksSpace(_ choice: Choice, at now: Int64) -> Bool {
    spaceWait.add(choice.candidate.name, needing: choice.peek.needed ?? 0, at: now)
  }

  /// One of those that wait for space fits by now.
  mutating func spaceCame() {
    spaceWait.spaceCame()
    requestPass()
  }

  /// How long to wait for something to happen, at most `most`.
  func untilNextStep(at now: Int64, most: Int64) -> Int64 {
    guard passes.areUnderWay, slots.areFree, spaceWait.mayGoOn(at: now) else { return most }
    return min(most, max(0, nextSearch - now))
  }

  // MARK: what runs

  mutating func started(_ id: UInt64, _ choice: Choice) {
    slots.start(id, host: choice.host, isAlone: Suspicion.wantsToBeAlone(choice.peek.deaths))
  }

  mutating func reached(_ milestone: Attempt.Milestone, _ id: UInt64) {
    switch milestone {
    case .cleared: slots.clear(id)
    case .transferred: slots.transferred(id)
    }
  }

  mutating func ended(_ id: UInt64) {
    slots.end(id)
    isFresh = false
  }

  mutating func beginTelling() { slots.beginTelling() }
  mutating func endTelling() { slots.endTelling() }
}
