internal import Spool

struct Slots {
  private struct Transfer {
    let host: String
    let priority: Priority
    /// Bytes that it has received, as far as ``Slots/note(_:received:)`` was told.
    var received: UInt64 = 0
    var isBeingParked = false
  }

  var limits: TransferLimits
  /// Transfers by host, and by job. A job in its commit no longer counts.
  private var byHost: [String: Int] = [:]
  private var transfers: [UInt64: Transfer] = [:]
  private var running: Set<UInt64> = []
  /// Hosts from which the spool's workers together have all transfers that they may have, or whose pace wants a pause:
  /// when to look again, and how many transfers of them this worker has meanwhile.
  private var full: [String: (until: Int64, share: Int, isForTurn: Bool)] = [:]
  /// More hosts than the backlog can have: a turn that has filled them all would begin anew with the first of them.
  private static let mostFull = 16_000
  private static let mostRemembered = 1000
  /// The outputs that running jobs have, and the jobs that wait for these.
  var outputs = OutputWait()
  /// A job that may have killed workers and so runs alone.
  private var alone: UInt64?
  /// Running `failed` hooks of rejected files.
  var tellings = 0

  init(_ limits: TransferLimits) { self.limits = limits }

  var areFree: Bool { areFree(within: limits) }

  func areFree(within limits: TransferLimits) -> Bool {
    alone == nil && transfers.count < limits.jobs && running.count - transfers.count + tellings < limits.commits
  }

  var areIdle: Bool { running.isEmpty }

  /// Whether the end of the run has to wait for a job or a hook.
  var areBusy: Bool { !running.isEmpty || tellings > 0 }

  func free(at now: Int64, _ rests: ServerRests = ServerRests()) -> FreeSlots {
    // By itself, or each look at the filter copies all of this.
    let running = byHost
    let full = full.filter { now < $0.value.until && running[$0.key] ?? 0 >= $0.value.share }
    return FreeSlots(limits: limits, running: running, full: full.mapValues(\.isForTurn), rests: rests, now: now)
  }

  /// No further job of the host may start until then, because other workers have its slots, or it is not its turn.
  mutating func fill(_ host: String, until time: Int64, isForTurn: Bool) {
    if full.count >= Self.mostFull { full = [:] }
    full[host] = (time, byHost[host] ?? 0, isForTurn)
  }

  /// Forgets hosts whose time has come. To be called once a turn.
  mutating func sweep(at now: Int64) {
    if full.count >= Self.mostRemembered { full = full.filter { now < $0.value.until } }
  }

  /// Milliseconds until the next look for a slot that other workers have.
  func untilFree(at now: Int64) -> Int64 {
    full.values.lazy.map(\.until).filter { $0 > now }.min().map { $0 - now } ?? .max
  }

  mutating func start(_ id: UInt64, host: String, isAlone: Bool, _ priority: Priority = .normal) {
    running.insert(id)
    transfers[id] = Transfer(host: host, priority: priority)
    byHost[host, default: 0] += 1
    if limits.areGrowing { limits.growths[host, default: TransferGrowth()].start(byHost[host] ?? 0) }
    if isAlone { alone = id }
  }

  /// The job may run in parallel with others from now on.
  mutating func clear(_ id: UInt64) { if alone == id { alone = nil } }

  /// The job no longer needs its connection.
  mutating func transferred(_ id: UInt64) {
    guard let host = transfers.removeValue(forKey: id)?.host else { return }
    let left = (byHost[host] ?? 1) - 1
    byHost[host] = left > 0 ? left : nil
    clear(id)
  }

  mutating func end(_ id: UInt64) {
    transferred(id)
    running.remove(id)
  }

  // MARK: as many transfers as bring more

  /// - Parameter received: the bytes that the job's transfer has received so far.
  /// - Parameter end: when it ends; nil if it goes on.
  mutating func note(_ id: UInt64, received: UInt64, end: Int64? = nil) {
    guard limits.areGrowing, let transfer = transfers[id], received > transfer.received else { return }
    limits.growths[transfer.host, default: TransferGrowth()].receive(received - transfer.received)
    transfers[id]?.received = received
    guard let end, limits.ownMost(of: transfer.host) == nil else { return }
    let most = limits.perHost
    limits.growths[transfer.host]?.judge(limit: most, at: end)
  }

  /// To be called a few times a second, once ``note(_:received:)`` was told of each transfer.
  mutating func grow(at now: Int64) {
    guard limits.areGrowing else { return }
    let most = limits.perHost
    for (host, count) in byHost where limits.ownMost(of: host) == nil {
      limits.growths[host, default: TransferGrowth()].look(transfers: count, limit: most, at: now)
    }
    if limits.growths.count > Self.mostRemembered {
      limits.growths = limits.growths.filter { byHost[$0.key] != nil }
    }
  }

  // MARK: slots for jobs of high priority

  /// Whether a job of low priority could give up its slot.
  var hasLow: Bool { transfers.values.contains { $0.priority == .low } }

  /// How many jobs were told to give up their slots, and have not yet.
  var beingParked: Int { transfers.values.count(where: \.isBeingParked) }

  mutating func park(_ id: UInt64) { transfers[id]?.isBeingParked = true }

  /// The job of low priority that started last, of those without which a job for this host could start; nil if one
  /// could start anyway, or if there is none.
  /// - Parameter isFull: whether no further one for this host may start now.
  func youngestLow(inTheWayOf host: String, isFull: Bool) -> UInt64? {
    let isHostFull = (byHost[host] ?? 0) >= limits.most(of: host) || isFull
    guard isHostFull || transfers.count >= limits.jobs || alone != nil else { return nil }
    return transfers.filter { _, transfer in
      transfer.priority == .low && !transfer.isBeingParked && (!isHostFull || transfer.host == host)
    }.keys.max()
  }
}

struct FreeSlots {
  let limits: TransferLimits
  let running: [String: Int]
  /// Hosts of which no further job may start: whether only their turn is missing, or other workers have the slots.
  var full: [String: Bool] = [:]
  var rests = ServerRests()
  /// In milliseconds.
  var now: Int64 = 0

  /// Whether a server of the job does not rest, and has a free slot.
  func areFree(for peek: Peek) -> Bool {
    guard let host = peek.host else { return true }
    if isHeldBack(peek) { return false }
    let server = way(for: peek).first ?? host
    return load(of: server) < min(limits.most(of: server), rests.limit(of: server)) && full[server] == nil
  }

  /// The first way of the job that does not rest; empty if there is none.
  func way(for peek: Peek) -> ServerRests.Way {
    peek.ways.first { !rests.isClosed($0, at: now, wantedAt: peek.wantedAt) } ?? []
  }

  func isHeldBack(_ peek: Peek) -> Bool {
    if rests.isEmpty || peek.ways.isEmpty || !way(for: peek).isEmpty { return false }
    // One whose patience is over is given up.
    return !peek.ways.allSatisfy { rests.isAway($0, peek.patience, at: now) }
  }

  func directed(_ choice: Choice) -> Choice {
    var choice = choice
    choice.way = way(for: choice.peek)
    return choice
  }

  func within(_ limits: TransferLimits) -> FreeSlots {
    FreeSlots(limits: limits, running: running, full: full, rests: rests, now: now)
  }

  func load(of host: String) -> Int { running[host] ?? 0 }
}

/// The outputs of the running jobs, and the jobs that wait until one of these ends. Two jobs with one output would
/// fetch the same bytes beside each other, and only one of them could publish.
struct OutputWait {
  /// The maximum number of jobs that wait here. More are found again by a pass.
  static let most = 1000

  private var outputs: [UInt64: ExactText] = [:]
  private var uses: [ExactText: Int] = [:]
  /// By output, oldest first.
  private var waiting: [ExactText: ArraySlice<Choice>] = [:]
  /// Outputs for which jobs wait, and which perhaps no job has now.
  private var free: [ExactText] = []
  private(set) var count = 0
  /// Whether more jobs have to wait than fit here. A pass finds them again when none is left here.
  var hasPassedOver = false

  /// Lets a job wait here if a running one has its output.
  /// - Returns: whether it has to wait.
  mutating func mustWait(_ choice: Choice) -> Bool {
    guard let output = choice.peek.output, uses[output] != nil else { return false }
    guard count < Self.most else {
      hasPassedOver = true
      return true
    }
    waiting[output, default: []].append(choice)
    count += 1
    return true
  }

  mutating func started(_ id: UInt64, _ choice: Choice) {
    guard let output = choice.peek.output else { return }
    outputs[id] = output
    uses[output, default: 0] += 1
  }

  mutating func ended(_ id: UInt64) {
    guard let output = outputs.removeValue(forKey: id), let number = uses[output] else { return }
    uses[output] = number > 1 ? number - 1 : nil
    if number == 1, waiting[output] != nil { free.append(output) }
  }

  /// The next job that may start because the running one with its output has ended. The others wait until this one has
  /// ended, or turns out to be gone: then a later call returns the next one.
  mutating func next(_ slots: FreeSlots) -> Candidate? {
    free.removeAll { uses[$0] != nil || waiting[$0] == nil }
    for output in free {
      guard let choice = waiting[output]?.first, slots.areFree(for: choice.peek) else { continue }
      waiting[output]?.removeFirst()
      if waiting[output]?.isEmpty == true { waiting[output] = nil }
      count -= 1
      return choice.candidate
    }
    return nil
  }

  var candidates: [Candidate] { waiting.values.joined().map(\.candidate) }

  /// Whether all jobs here that come first wait for servers that rest.
  func areHeldBack(by slots: FreeSlots) -> Bool { waiting.values.allSatisfy { slots.isHeldBack($0.first!.peek) } }

  /// Forgets the jobs that a pass over these directories finds again.
  mutating func forget(_ directories: [Directory]) {
    waiting = waiting.mapValues { $0.filter { !$0.candidate.isFound(byPassOver: directories) }[...] }
      .filter { !$0.value.isEmpty }
    count = waiting.values.reduce(0) { $0 + $1.count }
  }
}
