internal import Spool
internal import Transfer

/// The limits of a worker that hold for all workers of its spool together, as far as these see each other's locks:
/// transfers from one server, and rates. Where there are no such locks, the worker keeps its limits by itself.
@WorkerLoop final class SpoolLimits {
  private typealias Slot = (server: String, number: Int)

  /// Milliseconds between two looks for a slot that other workers have.
  static let pause: Int64 = 1000
  /// Milliseconds between two looks for signs of life.
  private static let longPause: Int64 = 10_000
  private static let mostWaits = 10_000
  /// After an error, milliseconds for which a worker keeps its limits by itself.
  private static let aloneTime: Int64 = 60_000
  /// Milliseconds for which the lowest limit of the spool's workers is known.
  private static let validity: Int64 = 200

  private let spool: Spool
  private let log: @Sendable (Event) -> Void
  private let options: () -> WorkerOptions
  /// Milliseconds between two requests to a server; nil for any number.
  private let pace: (String) -> Int64?
  private var slots: SharedSlots?
  private var aloneUntil = Int64.min
  /// The slots that transfers have, and the classes of all transfers.
  private var held: [UInt64: Slot] = [:]
  private var running: [UInt64: Int] = [:]
  private var taken: Slot?
  /// Slots of transfers that have just ended, for the next jobs of the same servers.
  private var spare: [Slot] = []
  /// The lowest limit of the spool's workers, below this worker's own. Small files begin much more often than it is
  /// asked for.
  private var lowest = LastAnswer<Int, Int>()
  /// Since when other workers have had all slots of a server.
  private var waits: [String: Int64] = [:]
  /// Since when the others see that this worker wants slots; nil if it wants none.
  private var wantsSince: Int64?
  /// Whether another worker wants a slot of this server.
  private var wanted = LastAnswer<String, Bool>()
  /// Whether the other workers have given no sign of life for a lease.
  private var silence = LastAnswer<String?, Bool>()
  /// When the next job, and the next request, of a server with a pace may start, by what this worker has started.
  private var nextStart: [String: Int64] = [:]
  private var nextRequest: [String: Int64] = [:]
  private var others = SharedSlots.Others()
  private var lookedAt: Int64 = .min / 2

  init(
    _ spool: Spool, log: @escaping @Sendable (Event) -> Void, options: @escaping () -> WorkerOptions,
    pace: @escaping (String) -> Int64?
  ) { (self.spool, self.log, self.options, self.pace) = (spool, log, options, pace) }

  // MARK: slots of servers

  /// Takes a slot for a job that is about to be claimed: of the server that it begins with, perhaps a mirror.
  /// - Parameter now: in milliseconds of the loop's clock.
  /// - Returns: nil if it may be claimed; else milliseconds to wait, because the spool's workers have as many transfers
  ///   from its server as they may, or its pace wants a pause: then it is not its turn, whoever gives up a slot.
  func take(_ server: String, _ priority: Priority, at now: Int64) -> (wait: Int64, isForTurn: Bool)? {
    keepTaken()
    if server.isEmpty { return nil }
    let slots = opened()
    if let wait = untilTurn(server, at: now) { return (wait, true) }
    guard let slots else { return nil }
    let isTaken = orFail { () throws(SpoolError) in try takeSlot(of: server, priority, slots, at: now) }
    return isTaken ?? true ? nil : (Self.pause, false)
  }

  private func takeSlot(of server: String, _ priority: Priority, _ slots: SharedSlots, at now: Int64)
    throws(SpoolError) -> Bool
  {
    let limits = TransferLimits(options())
    let own = limits.ownMost(of: server)
    let most =
      if let own { own } else {
        try lowest.answer(to: limits.perHost, at: now, for: Self.validity) { () throws(SpoolError) in
          try slots.lowestLimit(below: limits.perHost)
        }
      }
    let limit = priority == .low ? max(1, most - 1) : most
    var inHand: [Int] = []
    inHand.reserveCapacity(held.count + spare.count)
    for slot in held.values where slot.server == server { inHand.append(slot.number) }
    for slot in spare where slot.server == server { inHand.append(slot.number) }
    var isWanted = false
    if !inHand.isEmpty {
      isWanted = try wanted.answer(to: server, at: now, for: Self.validity) { () throws(SpoolError) in
        try slots.isWanted(server)
      }
    }
    // Gives up what is more than its share.
    while isWanted, try isOverShare(inHand.count, limit, slots),
      let index = spare.firstIndex(where: { $0.server == server })
    {
      let slot = spare.remove(at: index)
      inHand.removeAll { $0 == slot.number }
      try slots.give(slot.number, of: server)
    }
    if let index = spare.firstIndex(where: { $0.server == server && $0.number < limit }) {
      taken = spare.remove(at: index)
      return true
    }
    if isWanted, try isOverShare(inHand.count + 1, limit, slots) { return false }
    if let number = try slots.take(of: server, limit: limit, except: Set(inHand)) {
      taken = (server, number)
      waits[server] = nil
      return true
    }
    if try !isOverShare(inHand.count + 1, limit, slots) {
      try slots.want(server)
      wantsSince = wantsSince ?? now
    }
    return try areHoldersSilent(server, at: now)
  }

  /// Whether so many slots are more than a worker's equal share.
  private func isOverShare(_ count: Int, _ limit: Int, _ slots: SharedSlots) throws(SpoolError) -> Bool {
    try count > max(1, limit / slots.workers())
  }

  /// What is still wanted is said again at the next look for a slot.
  private func forgetWants(_ slots: SharedSlots, at now: Int64) {
    guard let since = wantsSince, now - since >= 3 * Self.pause else { return }
    wantsSince = nil
    orFail { () throws(SpoolError) in try slots.wantNothing() }
  }

  /// Whether other workers have had the slots of this server for a lease, and are silent for as long. A worker that was
  /// stopped keeps its slots, but not its jobs.
  private func areHoldersSilent(_ server: String, at now: Int64) throws(SpoolError) -> Bool {
    if waits.count > Self.mostWaits { waits = [:] }
    let since = waits[server] ?? now
    waits[server] = since
    guard now - since >= Leases(spool).length * 1000 else { return false }
    return try silence.answer(to: nil, at: now, for: Self.longPause) { () throws(SpoolError) in
      let (own, leases, now) = (spool.owner.text, Leases(spool), spool.now())
      return try WorkerFiles(spool).all().allSatisfy { $0.owner.text == own || leases.isOver(since: $0.beat, now: now) }
    }
  }

  /// The job for which a slot of this server was taken runs.
  /// - Returns: whether it is the only one.
  func started(_ id: UInt64, _ server: String, _ priority: Priority) -> Bool {
    held[id] = taken
    taken = nil
    if let pace = pace(server) {
      if nextStart.count > Self.mostWaits { nextStart = [:] }
      let now = LoopExecutor.milliseconds()
      nextStart[server] = max(now, nextStart[server] ?? now) + pace
    }
    running[id] = priority.place
    return running.count == 1
  }

  /// The job needs its connection no longer.
  func ended(_ id: UInt64) {
    running[id] = nil
    if let slot = held.removeValue(forKey: id) { spare.append(slot) }
  }

  /// Whether a job of this worker may probe the server. One worker of the spool does at a time.
  func takeProbe(of server: String) -> Bool {
    guard let slots = opened() else { return true }
    return orFail { () throws(SpoolError) in
      if try slots.takeProbe(of: server) { return true }
      return try areHoldersSilent(server, at: LoopExecutor.milliseconds())
    } ?? true
  }

  func giveProbe(of server: String) { orFail { () throws(SpoolError) in try slots?.giveProbe(of: server) } }

  /// How many transfers of this worker the server has; nil if that is not known.
  func transfers(from server: String) -> Int? { slots == nil ? nil : held.values.count { $0.server == server } }

  /// A slot whose job could not be claimed is for the next one.
  private func keepTaken() {
    if let slot = taken { spare.append(slot) }
    taken = nil
  }

  /// Leaves slots that no job has needed to other workers.
  func giveSpareBack() {
    keepTaken()
    guard let slots, !spare.isEmpty else { return }
    orFail { () throws(SpoolError) in
      while let slot = spare.popLast() { try slots.give(slot.number, of: slot.server) }
    }
  }

  // MARK: paces

  /// How long before the turn of its first request a job may start, in milliseconds.
  private static let head: Int64 = 100

  /// Milliseconds until a job of this server may start, so that its first request does not wait long; nil for none.
  private func untilTurn(_ server: String, at now: Int64) -> Int64? {
    guard let pace = pace(server) else { return nil }
    let wall = Host.current.wallMilliseconds()
    // If the file cannot be read, the request finds out.
    let shared = try? slots?.untilTurn(at: server, every: pace, now: wall)
    let wait = max(shared ?? 0, min(pace, (nextStart[server] ?? now) - now)) - Self.head
    return wait > 0 ? wait : nil
  }

  /// Takes the turn of a request to this server.
  /// - Returns: nil if it may be sent now; else when to ask again, in milliseconds of the loop's clock.
  func turn(at server: String) -> Int64? {
    guard let pace = pace(server) else { return nil }
    let now = LoopExecutor.milliseconds()
    if let next = nextRequest[server], next > now, next <= now + pace { return next }
    if let slots = opened(), now >= aloneUntil {
      let wait = orFail { () throws(SpoolError) in
        try slots.turn(at: server, every: pace, now: Host.current.wallMilliseconds())
      }
      if let wait = wait ?? nil { return now + wait }
    }
    if nextRequest.count > Self.mostWaits { nextRequest = [:] }
    nextRequest[server] = now + pace
    return nil
  }

  private func opened() -> SharedSlots? {
    guard slots == nil, LoopExecutor.milliseconds() >= aloneUntil else { return slots }
    orFail { () throws(SpoolError) in
      slots = try SharedSlots(of: spool)
      try slots?.say(limit: options().perHost)
      try tellIfApart()
    }
    return slots
  }

  /// A worker of another host that runs jobs has locks, if they are shared.
  private func tellIfApart() throws(SpoolError) {
    guard !spool.kind.isLocal, let slots, try !slots.areOthers() else { return }
    let other = try WorkerFiles(spool).all().first { worker in
      worker.owner.host != spool.owner.host && worker.report?.runs ?? 0 > 0
        && Leases(spool).isAlive(worker.owner, beat: worker.beat, now: spool.now())
    }
    guard let other else { return }
    let reason = "the locks of \(escaped(other.owner.host)) are not seen here, so the limits hold for each host"
    log(Event("own-limits", .info, Fields().with("reason", reason)))
  }

  /// nil after an error: then the worker keeps its limits by itself for a while.
  @discardableResult
  private func orFail<Result>(_ body: () throws(SpoolError) -> Result) -> Result? {
    do throws(SpoolError) {
      return try body()
    } catch {
      fail(error)
      return nil
    }
  }

  private func fail(_ error: SpoolError) {
    // A full disk takes no slot away.
    if error.isLackOfSpace, slots != nil, LoopExecutor.milliseconds() < aloneUntil { return }
    aloneUntil = LoopExecutor.milliseconds() + Self.aloneTime
    if !error.isLackOfSpace { (slots, held, spare, taken, others) = (nil, [:], [], nil, SharedSlots.Others()) }
    log(Event("own-limits", .info, Fields().with("reason", "\(error)")))
  }

  // MARK: rates

  /// The rates that this worker's transfers share now. To be called a few times a second.
  func sharedRates() -> [SharedRate] {
    let own = options().sharedRates
    guard let slots else { return own }
    var counts = [Int](repeating: 0, count: SharedSlots.classes)
    for rateClass in running.values { counts[rateClass] += 1 }
    let now = LoopExecutor.milliseconds()
    forgetWants(slots, at: now)
    // Elsewhere, each look is a question to a server.
    if spool.kind.isLocal || now - lookedAt >= Self.pause {
      lookedAt = now
      let rates = counts.indices.map { rateClass in own.first { $0.covers(rateClass) }?.bytesPerSecond }
      orFail { () throws(SpoolError) in
        try slots.say(transfers: counts, rates: rates)
        others = running.isEmpty ? SharedSlots.Others() : try slots.others()
      }
    }
    return RateShare.rates(own, running: counts, others)
  }
}

/// The last answer to a question, which counts for a while. Times are in milliseconds.
struct LastAnswer<Question: Equatable, Answer> {
  private var last: (question: Question, answer: Answer, at: Int64)?

  mutating func answer(
    to question: Question, at now: Int64, for validity: Int64, _ ask: () throws(SpoolError) -> Answer
  ) throws(SpoolError) -> Answer {
    if let last, last.question == question, now - last.at < validity { return last.answer }
    let answer = try ask()
    last = (question, answer, now)
    return answer
  }
}

/// A worker's part of the rates that hold for all workers of its spool. Pure.
enum RateShare {
  /// - Parameter own: what the worker was told.
  /// - Parameter running: its transfers, by class.
  static func rates(_ own: [SharedRate], running: [Int], _ others: SharedSlots.Others) -> [SharedRate] {
    let classes = running.indices
    let ofNobody = classes.filter { rateClass in !own.contains { $0.covers(rateClass) } }
    // Classes with one rate are most likely one clause of the worker that said so.
    let foreign = Dictionary(grouping: ofNobody) { others.rates[$0] }.compactMap { rate, classes in
      rate.map { SharedRate(of: Set(classes), bytesPerSecond: $0) }
    }
    return (own + foreign.sorted { $0.bytesPerSecond < $1.bytesPerSecond }).map { pool in
      let covered = classes.filter { pool.covers($0) }
      let rate = covered.compactMap { others.rates[$0] }.reduce(pool.bytesPerSecond, min)
      // A worker that has no transfer yet is about to begin one.
      let mine = max(1, covered.reduce(0) { $0 + running[$1] })
      let all = mine + covered.reduce(0) { $0 + others.transfers[$1] }
      return SharedRate(of: pool.classes, bytesPerSecond: max(1, UInt64(Double(rate) * Double(mine) / Double(all))))
    }
  }
}
