internal import Spool
internal import SystemPackage
internal import Transfer

/// Fetches a job's data from its mirrors until it is whole and verified.
@WorkerLoop final class JobFetch: RunningTransfer {
  private var plan: JobPlan
  private let data: PartData
  private var context: AttemptContext
  private let account: AttemptAccount
  private let checkpointer: Checkpointer
  private let verification: Verification
  /// Asks for links again that have expired; nil if the job does not ask for links.
  private let resolver: LinkResolver?
  private let started: () -> Void
  private var current: (any RunningTransfer)?
  /// The mirror that was asked, until it answers, and the data as it was then.
  private var asked: (mirror: MirrorURL, before: FetchPolicy.Progress)?
  private var isStopped = false

  private var environment: JobEnvironment { context.environment }

  init(
    _ plan: JobPlan, _ resolver: LinkResolver?, _ data: PartData, _ context: AttemptContext, _ account: AttemptAccount,
    _ checkpointer: Checkpointer, _ verification: Verification, started: @escaping () -> Void
  ) {
    (self.plan, self.resolver, self.data, self.context) = (plan, resolver, data, context)
    (self.account, self.checkpointer, self.verification, self.started) = (account, checkpointer, verification, started)
  }

  func stop() {
    isStopped = true
    current?.stop()
  }

  func windDown() {
    isStopped = true
    current?.windDown()
  }

  func tick() {
    guard let current else { return }
    limitRate()
    current.tick()
    // Data that starts over is shorter.
    if data.length > 0, data.progress != asked?.before { noteAnswer() }
  }

  /// Once for each request.
  private func noteAnswer() {
    if let asked { context.answered(asked.mirror) }
    asked = nil
  }

  /// It changes with the time of day and with `defaults`.
  private func limitRate() {
    let (own, priority) = (data.claim.text.request.limitRate, data.claim.priority)
    let rate = (own ?? environment.options.defaults.limitRate)?.bytesPerSecond(for: priority, at: minuteOfDay())
    environment.startedEngine?.limit(group: context.requests, to: rate, of: priority.place)
  }

  /// Tries the mirrors in turn, and once more with new links if the hook `resolve` gave these. The attempt fails when
  /// no mirror is left.
  func run() async throws {
    defer { environment.startedEngine?.limit(group: context.requests, to: nil, of: nil) }
    var failures = try await tryMirrors()
    while let next = try await resolver?.ask(again: plan, after: failures, data.progress) {
      plan = next
      context = AttemptContext(data.claim, environment, attempt: context.attempt, plan.request)
      data.request = plan.request
      if isStopped { throw JobStop.cancelled }
      failures = try await tryMirrors()
    }
    if let decisive = Self.decisive(failures) { throw decisive }
  }

  /// The failure of the attempt, of those of its mirrors; nil if there are none. A temporary one is enough for another
  /// attempt, and what a server did wrong says more than that another one was not reached. A mismatch has to be
  /// recorded, because it decides how the next attempt asks, and how many there are. Pieces are wrong only if no mirror
  /// says that it may send them later. A server that has answered nobody for long decides nothing beside another one.
  nonisolated static func decisive(_ failures: [Failure]) -> Failure? {
    let areAway = failures.allSatisfy(\.isServerAway)
    var failures = failures.filter { areAway || !$0.isServerAway }
    if !areAway, failures.contains(where: { $0.rest != nil }) { failures.removeAll { $0.code == .wrongPiece } }
    let temporary = failures.filter { $0.failureClass == .temporary }
    guard
      var decisive = failures.last(where: \.code.isMismatch)
        ?? temporary.last(where: { $0.rest == nil && $0.code.blame != .server })
        ?? temporary.last ?? failures.last
    else { return nil }
    // The job waits as long as any server has asked it to, and without that until the first rest ends.
    if decisive.failureClass == .temporary { decisive.retryAfter = failures.compactMap(\.retryAfter).max() }
    let rest = failures.compactMap(\.rest).min()
    if decisive.rest != nil { decisive.rest = rest }
    if decisive.code.isMismatch {
      // The data of each mirror has been judged when that was left. One that rests may have the right file. What kind
      // the data is can only be learnt anew: the record does not say it.
      decisive.keepsData = !failures.contains { $0.code == .otherKind }
      decisive.retryAfter = [decisive.retryAfter, rest.map { Int($0) }].compactMap { $0 }.max()
    }
    decisive.mayBeElsewhere = temporary.contains { !$0.code.isMismatch }
    return decisive
  }

  /// Leaves a mirror that makes no progress, or whose data is not what the job declares, for the next one, and leaves
  /// out those whose server rests.
  /// - Returns: the failure of each mirror; empty when the data is whole and verified.
  private func tryMirrors() async throws -> [Failure] {
    var mirrors = plan.mirrors
    var failures: [Failure] = []
    // After a mismatch each mirror has to send all of the data alone, so that a wrong mirror cannot spoil the data of
    // the others.
    let (attempts, request) = (data.claim.text.journal.attempts, plan.request)
    let hasMismatched = attempts.hasMismatched
    if hasMismatched, let own = mirrors.firstIndex(where: { $0.number == data.version?.mirror }) {
      mirrors.insert(mirrors.remove(at: own), at: 0)
    }
    let wrong = mirrors.filter { attempts.isWrong($0.parts.redacted, $0.source(of: request)) }
    let right = mirrors.filter { mirror in !wrong.contains { $0.number == mirror.number } }
    mirrors = right + wrong
    let isLastAttempt = account.number >= plan.request.attempts ?? JobRequest.defaultAttempts
    try context.wait(for: mirrors)
    for (index, mirror) in mirrors.enumerated() {
      if isStopped { throw JobStop.cancelled }
      // Its file would replace what another one has sent, which may still come to its end.
      if !isLastAttempt, index >= right.count, data.part.length > 0,
        right.contains(where: { $0.number == data.version?.mirror }),
        failures.contains(where: { $0.failureClass == .temporary && !$0.code.isMismatch && !$0.isServerAway })
      {
        continue
      }
      if let rest = context.obstacle(mirror) {
        failures.append(rest)
        continue
      }
      var (found, hasAskedAll): ([Failure], Bool) = ([], false)
      do {
        data.isAlone = hasMismatched || failures.contains { $0.code.isMismatch }
        try begin(mirror)
        if plan.pieces != nil { try await dropWrongPieces() }
        let others = data.isAlone ? [] : mirrors[(index + 1)...].filter(\.parts.scheme.hasBoundedRanges)
        try await ask(mirror, with: others)
        if let list = plan.pieces { found = try await repair(by: list, mirrors) }
        if found.isEmpty {
          try await verification.run()
          return []
        }
        // For the pieces. Where the data was cut back, the next mirror goes on.
        hasAskedAll = data.isComplete
      } catch var failure as Failure {
        // A page for a login says nothing of its file.
        if data.isAlone, failure.code.isMismatch, failure.code != .otherKind { failure.wrongMirror = mirror.number }
        found = [failure]
      }
      if let failure = found.first(where: \.code.isOfAllServers) { throw failure }
      failures += found
      if hasAskedAll { break }
      if let failure = found.first { try await leave(mirror, failure, isLast: index + 1 == mirrors.count) }
    }
    return failures
  }

  private func begin(_ mirror: MirrorURL) throws(SpoolError) {
    let (url, spool) = (mirror.parts.redacted, data.claim.spool)
    let now = spool.now()
    // Patience counts from here, and a claim changes the file's times.
    let dropped = data.claim.origin.takesNewJobs ? data.claim.knownSince : nil
    try data.claim.append(
      .started(
        now, attempt: account.number, worker: spool.owner, boot: spool.boot, mirror: mirror.number, url: url,
        source: mirror.source(of: plan.request), afterFreeze: data.claim.formerOwner == .mayWake,
        dropped: dropped.flatMap { now.seconds - $0.seconds >= 60 ? $0 : nil }, isAlone: data.isAlone))
    data.noteStarted()
    started()
    guard environment.options.tellsSuccess else { return }
    context.log("started", Fields().with("attempt", account.number).with("at", data.part.length).with("url", url))
  }

  private func ask(_ mirror: MirrorURL, with others: [MirrorURL]) async throws {
    let fetch = try MirrorFetch(mirror, with: others, data, context)
    current = fetch
    asked = (mirror, data.progress)
    limitRate()
    defer {
      account.fetched += fetch.fetched
      (current, asked) = (nil, nil)
    }
    do { try await fetch.run() } catch let failure as Failure {
      throw context.judged(failure, isOfOther: fetch.isOfOtherServer, mirror)
    }
    if isStopped { throw JobStop.cancelled }
    // One that asks nothing leaves the turn to another job: to verify the data may take hours.
    if fetch.hasAsked { noteAnswer() } else { context.servers.ended(context.attempt) }
  }

  /// Where too many pieces are wrong, they come again with all that follows.
  private func dropWrongPieces() async throws {
    guard let list = plan.pieces, data.part.wrongPieces.isFull, let first = data.wrongPieces.first else { return }
    try await data.cutBack(to: list.range(of: first, in: data.part.length).lowerBound)
  }

  /// Fetches the pieces again that are wrong.
  /// - Returns: the failures of the mirrors; empty if all is right.
  private func repair(by list: PieceList, _ mirrors: [MirrorURL]) async throws -> [Failure] {
    let wrong = data.wrongPieces
    // Of another size it is another file.
    if wrong.isEmpty || !list.sizes.contains(data.part.length) { return [] }
    let repair = PieceRepair(data, list, context)
    (current, checkpointer.isAllowed) = (repair, false)
    defer {
      account.fetched += repair.fetched
      (current, checkpointer.isAllowed) = (nil, true)
    }
    await checkpointer.finish()
    if isStopped { throw JobStop.cancelled }
    return try await repair.run(wrong, mirrors)
  }

  /// What was wrong of its data is dropped here, before another one's may come.
  private func leave(_ mirror: MirrorURL, _ failure: Failure, isLast: Bool) async throws {
    if !isLast {
      context.log(
        "mirror-failed",
        Fields().with("url", mirror.parts.redacted).with("code", failure.label).with("reason", failure.reason))
    }
    if failure.keepsData { return }
    // A running checkpoint still uses the descriptor of the data, and no other may begin until the data is dropped.
    checkpointer.isAllowed = false
    await checkpointer.finish()
    try data.dropData(after: failure.code)
    if failure.code.isMismatch { account.hasSetAside = true }
    checkpointer.isAllowed = true
  }
}

/// Makes the received data durable from time to time, and journals how far it is durable.
@WorkerLoop final class Checkpointer {
  var isAllowed = false
  private let claim: Claim
  private let environment: JobEnvironment
  private let failed: (_ error: SpoolError, _ hasLostWrites: Bool) -> Void
  private var current: Task<Void, Never>?

  init(_ claim: Claim, _ environment: JobEnvironment, failed: @escaping (SpoolError, Bool) -> Void) {
    (self.claim, self.environment, self.failed) = (claim, environment, failed)
  }

  var isBusy: Bool { current != nil }

  /// Waits for the running checkpoint, which uses the data's descriptor.
  func finish() async { await current?.value }

  func beginIfDue(_ data: PartData) {
    guard isAllowed, current == nil, data.beginsCheckpoint(environment.options) else { return }
    let part = data.part
    let mark = part.mark
    let generation = data.generation
    current = WorkerLoop.start {
      // Other data may replace this data meanwhile, but the checkpoint uses its descriptor until it ends.
      defer { withExtendedLifetime(part) {} }
      await self.write(data, mark, of: part, generation)
      self.current = nil
    }
  }

  private func write(_ data: PartData, _ mark: Mark, of part: PartFile, _ generation: Int) async {
    let (flush, cache) = (part.flush, part.cache)
    // The most recent data stays in the page cache, because the payload is likely to be read soon.
    let kept = environment.options.checkpointBytes
    do throws(SpoolError) {
      try await runBlocking { () throws(SpoolError) in
        try flush.run()
        if mark.offset > kept { cache.forget(before: mark.offset - kept) }
      }
    } catch {
      return failed(error, true)
    }
    // The transfer continued meanwhile and may have started over. Then this mark describes bytes that are gone.
    guard data.generation == generation else { return }
    do {
      try data.noteCheckpoint(mark, longJournal: environment.options.longJournal)
      try await claim.makeDurable(environment.durable)
      environment.log(Event("checkpoint", .debug, job: claim.job.fileName, Fields().with("at", mark.offset)))
    } catch {
      failed(error as? SpoolError ?? SpoolError(call: .fdatasync, path: claim.job.display, errno: .ioError), false)
    }
  }
}
