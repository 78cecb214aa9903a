internal import CLinux
internal import Glibc
package import Spool
internal import SystemPackage

extension Worker {
  /// Runs jobs as they are dropped and become due. Returns soon after `stopSignals` becomes readable, or after the
  /// spool's path leads to another spool, the ``successor``; with ``WorkerOptions/endsWhenDone`` also when all is done.
  /// - Throws: ``SpoolError`` that ends the worker.
  package func watch(stopSignals: Int32) async throws(SpoolError) -> RunSummary {
    admission.stays = true
    // Checked at the start, so that a missing libcurl is reported before the first job arrives.
    guard dispatcher.loadLibcurl() else { return account.summary }
    prepare()
    keepPresence()
    let options = environment.options
    let links = WorkerLoop.executor.surroundings.watchNetwork()
    WorkerLoop.executor.watched = links.map { [$0.descriptor] } ?? []
    let watch = try SpoolWatch(spool, runsAll: options.only == nil, delay: options.endsWhenDone ? 500 : 0)
    noteLimit(of: watch)
    if !options.endsWhenDone { log(Event("watching", .info)) }
    var (outage, end) = (Outage(), WatchEnd(options))
    await run(stopSignals: stopSignals) { () throws(SpoolError) in
      if self.successor != nil { return self.isBusy ? Self.tickInterval : nil }
      let now = LoopExecutor.milliseconds()
      if links?.hasNews() == true, WorkerLoop.executor.surroundings.hasAddress() {
        // Jobs that failed for lack of a network are tried again at once, not when they are due.
        self.environment.servers.networkChanged()
      }
      do throws(SpoolError) {
        try self.attend(watch, &outage, at: now)
      } catch {
        if options.endsWhenDone, error.errno == .noSuchFileOrDirectory { throw error }
        try self.endure(error, &outage, at: now)
      }
      if options.endsWhenDone, try self.isOver(&end, at: Host.current.awakeMilliseconds()) { return nil }
      if self.successor != nil { return 0 }
      let scheduler = self.dispatcher.scheduler
      if self.dispatcher.canGoOn { return 0 }
      if !scheduler.slots.areIdle { return self.untilNextTurn(Self.tickInterval) }
      if !scheduler.backlog.isEmpty || !scheduler.spaceWait.isEmpty {
        return min(2000, scheduler.slots.untilFree(at: now))
      }
      if !self.environment.servers.rests.isEmpty { return 2000 }
      self.rest()
      let beat = max(self.account.presence.untilBeat(at: now, in: spool), self.untilTick(at: now))
      let most = min(
        scheduler.untilPass(at: now), outage.nextLook - now, scheduler.untilDue(at: now, spool.now().seconds))
      return min(most, beat, end.nextLook(at: Host.current.awakeMilliseconds()))
    }
    // Jobs that wait in a spool that was replaced do not count for this run.
    if successor == nil { tellWaiting(nil) }
    return account.summary
  }

  /// Whether a worker that ends when all is done has done all, or nothing has come for too long.
  private func isOver(_ end: inout WatchEnd, at now: Int64) throws(SpoolError) -> Bool {
    let summary = account.summary
    let gained = dispatcher.attempts.reduce(summary.gained) { $0 &+ $1.gained }
    end.note(gained &+ UInt64(summary.done + summary.givenUp), at: now)
    guard !isBusy, end.nextLook(at: now) <= 0 else { return false }
    return end.isOver(isAnyJobLeft: try isAnyJobLeft(), at: now)
  }

  private func isAnyJobLeft() throws(SpoolError) -> Bool {
    guard let only = environment.options.only else {
      return try JobSearch(spool).isAnyJob(in: [.new, .urgent, .cur, .partial]) { !account.isBarred(Path($0, $1)) }
    }
    for name in only {
      for directory in [Directory.partial, .new, .urgent] where try spool.status(directory, name) != nil { return true }
    }
    return false
  }

  /// Looks where the spool's path leads if it is time, handles changes, and starts jobs.
  private func attend(_ watch: SpoolWatch, _ outage: inout Outage, at now: Int64) throws(SpoolError) {
    let news = watch.read()
    if news.needsScan || now >= outage.nextLook {
      let isInPlace = try lookForSuccessor()
      if successor != nil { return }
      outage.looked(at: now, isInPlace: isInPlace)
    }
    let looksAtAll = try look(watch, news, at: now)
    try dispatcher.turn()
    guard outage.ended(all: looksAtAll) else { return }
    log(Event("spool-back", .warning))
    // It gave up a pass, and a job that it had chosen.
    dispatcher.requestPass()
  }

  /// Waits where the spool may come back: inotify or the next look reports it.
  private func endure(_ error: SpoolError, _ outage: inout Outage, at now: Int64) throws(SpoolError) {
    let cause: Outage.Trouble =
      error.errno == .noSuchFileOrDirectory || spool.isLost(error)
      ? .gone : error.isShortage ? .short : error.isOfLostMount(on: spool.kind) ? .doubtful : .other
    switch outage.failed(cause, at: now) {
    case .tell: log(Event("spool-missing", .error, Fields().with("reason", "\(error)")))
    case .wait: break
    case .end: throw error
    }
    dispatcher.abandonPasses()
  }

  /// Handles changes, or requests a pass over everything.
  /// - Returns: whether it requested a pass over everything.
  private func look(_ watch: SpoolWatch, _ news: SpoolWatch.News, at now: Int64) throws(SpoolError) -> Bool {
    let looksAtAll = try dispatcher.wantsToLookAround(at: now) || news.needsScan
    if looksAtAll || news.areDefaultsNew { readDefaults() }
    // Also before a pass: one of high priority among many others would be found late.
    try dispatcher.take(news)
    if looksAtAll {
      dispatcher.requestPeriodicPass()
      try watch.renew()
      noteLimit(of: watch)
    }
    dispatcher.lookForSpace()
    if dispatcher.scheduler.wantsPass(at: now, isStale: false) { dispatcher.requestPass() }
    dispatcher.requestDuePass()
    return looksAtAll
  }

  /// Where inotify reports too little, the worker looks around every few seconds instead, and says so once.
  private func noteLimit(of watch: SpoolWatch) {
    guard let limit = watch.limit, dispatcher.becomeBlind() else { return }
    let reason = "\(limit): the spool is read every few seconds instead; inotify(7) says how to raise the limits"
    log(Event("inotify-limit", .warning, Fields().with("reason", reason)))
  }

  /// Returns memory that only transfers need to the kernel, after a whole pass without a job.
  private func rest() {
    guard dispatcher.scheduler.isFresh, restedAfter != account.ended else { return }
    restedAfter = account.ended
    malloc_trim(0)
  }

  /// Stops this worker's jobs if the spool's path leads to another spool.
  /// - Returns: whether the path leads to this spool.
  private func lookForSuccessor() throws(SpoolError) -> Bool {
    if try spool.isInPlace() { return true }
    guard let next = try spool.reopened() else { return false }
    successor = next
    log(Event("spool-replaced", .warning))
    // The readable descriptors of the old spool would end each wait at once.
    WorkerLoop.executor.watched = signals.map { [$0.descriptor] } ?? []
    stopAttempts()
    return false
  }
}

/// Whether nothing has come for too long. Pure.
///
/// Times are milliseconds for which the machine was awake: while it slept, nothing could come.
package struct Standstill: Sendable {
  private let longest: Int64?
  private var last: (made: UInt64, at: Int64)?

  /// - Parameter longest: nil for no end.
  package init(longest: Int64?) { self.longest = longest }

  /// - Parameter made: all that has come so far, in any unit.
  /// - Returns: whether that is new.
  package mutating func note(_ made: UInt64, at now: Int64) -> Bool {
    if last?.made == made { return false }
    last = (made, now)
    return true
  }

  package func isOver(at now: Int64) -> Bool { longest.map { now - (last?.at ?? now) >= $0 } ?? false }
}

/// When a worker ends that runs until all is done. Pure.
///
/// Times are those of ``Standstill``.
private struct WatchEnd {
  private let isOn: Bool
  private let isByName: Bool
  private var standstill: Standstill
  /// No job was there at the last look, during which one that was looked for by no name may have moved.
  private var seemsOver: Bool
  private var looksAt: Int64 = 0
  private static let interval: Int64 = 500

  init(_ options: WorkerOptions) {
    (isOn, isByName) = (options.endsWhenDone, options.only != nil)
    standstill = Standstill(longest: options.longestStandstill)
    seemsOver = isByName
  }

  mutating func note(_ made: UInt64, at now: Int64) { if standstill.note(made, at: now) { looksAt = now } }

  /// Milliseconds until ``isOver(isAnyJobLeft:at:)`` is to be asked.
  func nextLook(at now: Int64) -> Int64 { isOn ? max(0, looksAt - now) : .max }

  mutating func isOver(isAnyJobLeft: Bool, at now: Int64) -> Bool {
    defer { (seemsOver, looksAt) = (isByName || !isAnyJobLeft, now + Self.interval) }
    return seemsOver && !isAnyJobLeft || standstill.isOver(at: now)
  }
}

/// How a worker that keeps running bears with errors of its spool: when it looks where the spool's path leads, what it
/// says, and when it gives up. Pure.
///
/// Times are milliseconds of the loop's clock.
struct Outage: Equatable {
  enum Trouble {
    /// The spool's directories or their mount are gone. They may come back at any time.
    case gone
    /// The mount may have been gone for a moment: that was its answer, but now the spool can be read.
    case doubtful
    /// The machine was short of memory or of open files.
    case short
    case other
  }

  enum Reaction: Equatable {
    case tell
    case wait
    case end
  }

  private(set) var nextLook: Int64 = 0
  /// When the first error came, in milliseconds for which the machine was awake; nil if the spool can be read.
  private var began: Int64?
  /// When the first error of doubtful cause came since the spool was gone or could be read.
  private var doubtfulSince: Int64?
  private var isShort = false

  /// Between looks for a spool whose path does not exist.
  private static let interval: Int64 = 2000
  /// How long errors of doubtful cause may last: one that stays is of a file, and no wait would end.
  static let patience: Int64 = 60_000

  mutating func looked(at now: Int64, isInPlace: Bool) {
    nextLook = now + (isInPlace ? Rescan.standardInterval : Self.interval)
  }

  mutating func failed(
    _ cause: Trouble, at now: Int64, awake: Int64 = Host.current.awakeMilliseconds()
  ) -> Reaction {
    doubtfulSince = cause == .gone ? nil : doubtfulSince ?? awake
    if cause == .other || awake - (doubtfulSince ?? awake) >= Self.patience { return .end }
    isShort = cause == .short && (isShort || began == nil)
    // Errors may come more often than that.
    if nextLook <= now || nextLook > now + Self.interval { nextLook = now + Self.interval }
    defer { began = began ?? awake }
    return began == nil ? .tell : .wait
  }

  /// What was wanted could be read.
  /// - Parameter all: whether that was all directories.
  /// - Returns: whether the outage is over by that.
  mutating func ended(all: Bool = true) -> Bool {
    guard all || isShort else { return false }
    defer { (began, doubtfulSince, isShort) = (nil, nil, false) }
    return began != nil
  }
}
