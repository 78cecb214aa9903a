internal import Spool

/// Decides which directories to read, which jobs to look at, and which job to start next. Pure: it gets what was found
/// and how jobs ended as events, and returns the next action.
///
/// Times are milliseconds of the loop's clock; due times are seconds since the epoch.
struct Scheduler {
  enum Reading: Equatable {
    /// Read these directories from the start: see ``began(_:at:)``.
    case begin([Directory])
    /// Read ``PrioritisedBacklog/piece`` names of `urgent/`, or of the other directories: see ``found(_:took:)``.
    case read(urgent: Bool)
  }

  var backlog = PrioritisedBacklog()
  var slots: Slots
  var passes = Passes()
  private(set) var spaceWait = SpaceWait()
  /// When the first waiting job that a pass over this directory saw is due.
  private var dues: [Directory: Int64] = [:]
  private var later = LaterCandidates()
  /// Whether passes were requested after the last job's end.
  private(set) var isFresh = false
  /// When the last pass began, and how long its reading has kept the loop busy.
  private var passBegan: Int64 = 0
  private var passTook: Int64 = 0
  private var rescan: Rescan
  private var nextSearch: Int64 = 0
  /// How many names may still be read in this turn, because transfers wait meanwhile.
  private var namesLeft = PrioritisedBacklog.horizon

  init(_ limits: TransferLimits, _ rescan: Rescan = Rescan(isBlind: false, interval: nil)) {
    slots = Slots(limits)
    self.rescan = rescan
  }

  // MARK: passes

  /// - Returns: false if it was blind before.
  mutating func becomeBlind(_ interval: Int64?) -> Bool {
    if rescan.isBlind { return false }
    rescan = Rescan(isBlind: true, interval: interval)
    return true
  }

  mutating func requestPass() {
    passes.request()
    isFresh = true
    backlog.requestPass()
    slots.outputs.hasPassedOver = false
  }

  var nextDue: Int64? { dues.values.min() }

  /// Requests a pass over the directories in which a job has become due. Such passes take about a tenth of the time at
  /// most: where many jobs wait, some job is always due.
  /// - Parameter time: in seconds since the epoch.
  mutating func requestDuePass(at now: Int64, _ time: Int64) {
    if untilDuePass(at: now) == 0 { passes.request(Set(dues.filter { $0.value <= time }.keys)) }
  }

  private func untilDuePass(at now: Int64) -> Int64 { max(0, passBegan + 10 * passTook - now) }

  /// Requests a pass over everything, and says when the next one is due.
  mutating func requestPeriodicPass(at now: Int64) {
    requestPass()
    rescan.passes(at: now, took: passTook)
  }

  /// Whether the next pass is due. While many jobs do not fit on the disk the pass is slow, and would never end if it
  /// were restarted each time.
  func isPassDue(at now: Int64) -> Bool { rescan.isPassDue(at: now) && !isLookingForSpace(at: now) }

  /// Whether to look now if another host has changed a directory: if a job that it dropped could start, and no pass is
  /// about to find it.
  mutating func looksForChanges(at now: Int64) -> Bool {
    guard rescan.isLookDue(at: now), passes.areSettled, !isLookingForSpace(at: now),
      slots.areFree || slots.areIdle || slots.hasLow
    else { return false }
    rescan.looks(at: now)
    return true
  }

  func untilPass(at now: Int64) -> Int64 { rescan.untilNext(at: now) }

  /// Whether another pass is wanted, because nothing is left of the last one.
  /// - Parameter isStale: whether the last pass counts as too old.
  func wantsPass(at now: Int64, isStale: Bool) -> Bool {
    // A pass would find the jobs that wait for an output again, so it comes when none is left. They do not delay a pass
    // for other jobs that were passed over.
    let isDone = slots.outputs.count == 0 && (isStale || slots.outputs.hasPassedOver)
    let isWanted = backlog.needsPass || backlog.hasOnlySuspects && isDone
    return isWanted && !passes.areRunning && mayPass(at: now)
  }

  /// Whether another pass may begin now. While jobs run, passes may take at most about a tenth of the time.
  private func mayPass(at now: Int64) -> Bool { slots.areIdle || now - passBegan >= 10 * passTook }

  /// Only for ten intervals, because the search may be blocked by a busy host, and only another pass sees new jobs.
  private func isLookingForSpace(at now: Int64) -> Bool {
    guard !spaceWait.isEmpty, now - passBegan < 10 * Rescan.standardInterval else { return false }
    return passes.areRunning || !backlog.isEmpty && spaceWait.isGoingOn(at: now)
  }

  /// Forgets all passes, because the directories are gone.
  mutating func abandonPasses() { passes = Passes() }

  // MARK: reading

  mutating func beginTurn() { namesLeft = PrioritisedBacklog.horizon }

  var canReadOn: Bool { !passes.ready.isEmpty || hasUrgentRoomAhead || hasRoomAhead }

  private var hasUrgentRoomAhead: Bool { passes.isUrgentRunning && backlog.hasUrgentRoom }
  private var hasRoomAhead: Bool { passes.areOthersRunning && backlog.hasRoom }

  /// What to read next; nil if the backlog is full or this turn has read enough.
  func nextReading() -> Reading? {
    if !passes.ready.isEmpty { return .begin(passes.ready) }
    guard namesLeft > 0 else { return nil }
    return hasUrgentRoomAhead || hasRoomAhead ? .read(urgent: hasUrgentRoomAhead) : nil
  }

  mutating func began(_ directories: [Directory], at now: Int64) {
    for directory in directories { passes.began(directory) }
    backlog.beginPass(over: directories)
    slots.outputs.forget(directories)
    for directory in directories { dues[directory] = nil }
    guard directories.contains(.new) else { return }
    (passBegan, passTook) = (now, 0)
    // A pass over `new/` finds them again.
    spaceWait.removeAll()
  }

  /// - Parameter took: milliseconds.
  mutating func found(_ candidates: [Candidate], took: Int64) {
    backlog.add(candidates)
    namesLeft -= PrioritisedBacklog.piece
    passTook += took
  }

  /// - Parameter time: in seconds since the epoch; 0 is at once, for a change that only a pass can find.
  mutating func willBeDue(at time: Int64, in directory: Directory) {
    dues[directory] = min(dues[directory] ?? .max, time)
  }

  func isDue(at time: Int64) -> Bool { nextDue.map { $0 <= time } ?? false }

  /// Notes that a chosen job cannot run before it is due.
  /// - Parameter time: in seconds since the epoch.
  mutating func willBeDue(_ choice: Choice, at time: Int64) {
    if choice.candidate.origin == .cur { return hold(choice.candidate, until: time) }
    willBeDue(at: time, in: choice.candidate.origin)
    if choice.peek.priority == .high { later.note(choice.candidate, at: time) }
  }

  /// Notes that a claim is not to be taken over before `time`, in seconds since the epoch.
  mutating func hold(_ claim: Candidate, until time: Int64) { later.note(claim, at: time) }

  /// The same for a job that waits for its next attempt.
  mutating func willRetry(_ name: FileName, _ priority: Priority, at time: Int64) {
    let candidate = Candidate(name: name, origin: .partial, modified: time)
    willBeDue(Choice(candidate: candidate, peek: Peek(host: nil, priority: priority)), at: time)
  }

  /// Adds the jobs of high priority that have become due, and the claims whose lease has ended, without a pass.
  mutating func addDue(at time: Int64) {
    for candidate in later.take(by: time) {
      if candidate.origin == .cur { backlog.add([candidate]) } else { backlog.appendHigh(candidate) }
    }
  }

  /// In milliseconds, of the loop's clock as well; `time` is in seconds since the epoch.
  func untilDue(at now: Int64, _ time: Int64) -> Int64 {
    func until(_ due: Int64?) -> Int64 { due.map { max(0, min($0 - time, 3600)) * 1000 } ?? Rescan.standardInterval }
    return min(max(until(nextDue), untilDuePass(at: now)), until(later.next))
  }

  // MARK: starting

  /// Whether a job waits and there is a slot for it, perhaps one that another has to give up.
  var isSlotWanted: Bool { !hasNoCandidates && (slots.areFree || backlog.isUrgent && slots.hasLow) }

  /// The next step towards starting a job; nil if no job may start now, or there is none.
  mutating func nextStep(at now: Int64, _ rests: ServerRests = ServerRests()) -> ScheduleStep? {
    guard spaceWait.mayGoOn(at: now) else { return nil }
    let free = slots.free(at: now, rests)
    while let next = backlog.next(slots, free) {
      switch next {
      case .look, .search: return next
      case .start(let choice): if !slots.outputs.mustWait(choice) { return .start(free.directed(choice)) }
      case .park(let id):
        slots.park(id)
        return next
      }
    }
    guard slots.areFree else { return nil }
    // It is looked at again, because a person may have changed it meanwhile.
    if let candidate = slots.outputs.next(free) { return .look(candidate) }
    // All candidates read ahead wait for busy hosts: search for a job of another host. This takes at most a twentieth
    // of the loop's time, so a million jobs of a busy host take about ten minutes.
    if passes.areOthersRunning, !canReadOn, now >= nextSearch { return .search(250) }
    if canReadOn { return nil }
    while let last = backlog.nextSuspect(free, isIdle: slots.areIdle) ?? backlog.nextLow(slots, free) {
      if !slots.outputs.mustWait(last) { return .start(free.directed(last)) }
    }
    return nil
  }

  /// Puts a chosen job back before all others of its host, none of which may start until then: see ``SpoolLimits``.
  mutating func putBack(_ choice: Choice, until time: Int64, isForTurn: Bool = false) {
    backlog.putBack(choice)
    slots.fill(choice.host, until: time, isForTurn: isForTurn)
  }

  /// Leaves a job that a search found to a later pass, unless there might be a free slot for it.
  /// - Returns: whether there might.
  mutating func keepOrPassOver(_ peek: Peek, at now: Int64, _ rests: ServerRests = ServerRests()) -> Bool {
    if backlog.admits(peek, slots.free(at: now, rests), slots.limits) { return true }
    backlog.passOver(peek.priority)
    return false
  }

  mutating func searched(_ found: [(Candidate, Peek)], from start: Int64, to end: Int64) {
    for (candidate, peek) in found { backlog.add(candidate, peek) }
    nextSearch = end + 19 * (end - start + 1)
  }

  /// - Returns: whether this is new for the job.
  mutating func noteLackOfSpace(_ choice: Choice, at now: Int64) -> Bool {
    spaceWait.add(choice.candidate.name, needing: choice.peek.needed ?? 0, at: now)
  }

  /// Notes that one of the jobs that wait for space fits now.
  mutating func spaceCame() {
    spaceWait.spaceCame()
    requestPass()
  }

  /// How many milliseconds to wait for the next event, at most `most`.
  func untilNextStep(at now: Int64, most: Int64) -> Int64 {
    let most = min(most, slots.untilFree(at: now))
    guard passes.areOthersRunning, slots.areFree, spaceWait.mayGoOn(at: now) else { return most }
    return min(most, max(0, nextSearch - now))
  }

  // MARK: what runs

  mutating func started(_ id: UInt64, _ choice: Choice) {
    let isAlone = Probation.wantsToBeAlone(choice.peek.deaths)
    slots.start(id, host: choice.host, isAlone: isAlone, choice.peek.priority)
    backlog.started(choice.peek.priority)
    slots.outputs.started(id, choice)
  }

  /// Notes what the transfers of these jobs have received so far, in bytes.
  mutating func measure(_ received: [UInt64: UInt64], at now: Int64) {
    for (id, bytes) in received { slots.note(id, received: bytes) }
    slots.grow(at: now)
  }

  mutating func ended(_ id: UInt64) {
    slots.end(id)
    slots.outputs.ended(id)
    isFresh = false
  }
}

extension Scheduler {
  /// All that are known, in no particular order.
  var candidates: [Candidate] { backlog.candidates + slots.outputs.candidates }

  var hasNoCandidates: Bool { backlog.isEmpty && slots.outputs.count == 0 }

  /// Whether nothing is left to do, according to a pass that began after the last job's end.
  var isSettled: Bool {
    backlog.isEmpty && passes.areSettled && isFresh && !backlog.isSomethingPassedOver && !slots.outputs.hasPassedOver
  }

  var onlySpaceIsWantedFor: Bool { backlog.isEmpty && isFresh && passes.areSettled && !spaceWait.isEmpty }

  /// Whether no job may start because all that are left wait for servers or proxies that rest.
  func onlyServersAreWantedFor(at now: Int64, _ rests: ServerRests) -> Bool {
    guard slots.areIdle, passes.areSettled, !hasNoCandidates, !rests.isEmpty else { return false }
    let free = slots.free(at: now, rests)
    return backlog.areHeldBack(by: free) && slots.outputs.areHeldBack(by: free)
  }

  var areMore: Bool { passes.areRunning || backlog.isSomethingPassedOver || slots.outputs.hasPassedOver }
}

/// What is looked at when its time comes, without a pass over everything: claims of other workers, whose leases end,
/// and jobs of high priority that wait for their next attempt, which a pass would find late among many others. Times
/// are in seconds since the epoch.
private struct LaterCandidates {
  private var known: [FileName: (candidate: Candidate, time: Int64)] = [:]
  /// Maximum number that are remembered; a pass finds the others.
  private static let most = 2000

  mutating func note(_ candidate: Candidate, at time: Int64) {
    if known.count < Self.most || known[candidate.name] != nil { known[candidate.name] = (candidate, time) }
  }

  var next: Int64? { known.values.lazy.map(\.time).min() }

  /// Those whose time has come, oldest first. They are forgotten.
  mutating func take(by time: Int64) -> [Candidate] {
    let taken = known.values.filter { $0.time <= time }.map(\.candidate).sorted { $0.isBefore($1) }
    for candidate in taken { known[candidate.name] = nil }
    return taken
  }
}

/// Jobs found since the last pass that do not fit on the disk.
struct SpaceWait {
  /// After this many jobs there is a pause, because checking all jobs of a long backlog would block the transfers.
  static let most = 1000
  /// In milliseconds.
  static let pause: Int64 = 1000

  /// The smallest number of bytes that one of them needs; nil if there are none.
  private(set) var least: UInt64?
  private var told: Set<FileName> = []
  private var inVain = 0
  private var pausesUntil: Int64 = 0

  var isEmpty: Bool { least == nil }

  /// Whether more candidates may be checked at this time, in milliseconds.
  func mayGoOn(at time: Int64) -> Bool { time >= pausesUntil }

  /// Whether candidates were checked recently: during the pause and for as long after it.
  func isGoingOn(at time: Int64) -> Bool { time < pausesUntil + Self.pause }

  /// - Returns: whether it is new since there last was space.
  mutating func add(_ name: FileName, needing bytes: UInt64, at time: Int64) -> Bool {
    least = min(least ?? bytes, bytes)
    inVain += 1
    if inVain >= Self.most { (inVain, pausesUntil) = (0, time + Self.pause) }
    // Then all are reported again. This bounds the memory, because other users can create any number of jobs.
    if told.count >= 10 * Self.most { told = [] }
    return told.insert(name).inserted
  }

  mutating func removeAll() { least = nil }

  mutating func spaceCame() { told = [] }
}
