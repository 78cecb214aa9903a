internal import CLinux
internal import Spool
internal import SystemPackage
internal import Transfer

/// One job's way through one attempt: claim → recover → plan → transfer → verify → commit → record.
@WorkerLoop
final class JobRun {
  enum Outcome: Sendable {
    case done, waiting, givenUp, cancelled
    /// A person set it aside, or another worker has it now.
    case moved
  }

  private(set) var claim: Claim
  /// That of the claim when it began.
  let firstName: FileName
  let host: String
  private let worker: Worker
  private let id: UInt64
  private var state: PartData?
  private var stop: JobStop?
  private let hookStop = ChildStop()
  /// What is under way.
  private var fetch: MirrorFetch?
  private var checkpointing: Task<Void, Never>?
  private var mayCheckpoint = false
  /// An fsync of the data failed.
  private var lostWrites: SpoolError?
  /// Whoever worked on it last could not say how that ended, wherever the job was moved since.
  private let isTakenOver: Bool
  /// An fsync may have failed for a worker that died before it could say so, and the data was not written again yet.
  private var isDoubtful: Bool
  /// How many workers died in an attempt of the job.
  private let deaths: Int
  /// When it has shown that it kills none, in milliseconds; nil before it has begun, and when there is nothing to show.
  private var clearedAt: Int64?
  private var fetched: UInt64 = 0
  private var attempt = 0
  private var lengthAtStart: UInt64 = 0
  private var lengthAtEnd: UInt64 = 0
  private let began = Timestamp.now()
  private var lastHeartbeat = LoopExecutor.milliseconds()

  init(_ claim: Claim, host: String, worker: Worker, id: UInt64) {
    self.claim = claim
    firstName = claim.job.fileName
    isTakenOver = claim.origin == .cur || claim.text.journal.hasOpenAttempt
    isDoubtful = isTakenOver
    deaths = claim.origin == .new ? 0 : claim.text.journal.deaths(askedBy: claim.spool.owner)
    self.host = host
    self.worker = worker
    self.id = id
  }

  private var hasLostWrites: Bool { lostWrites != nil || claim.lostWrites != nil }

  private var spool: Spool { claim.spool }
  private var name: FileName { claim.job.fileName }

  private func log(_ event: String, _ fields: Fields) { worker.log(Event(event, .info, job: name, fields)) }

  // MARK: the way

  func run() async -> Outcome {
    defer { state?.leaveRoom() }
    do {
      return try await attemptOnce()
    } catch let stop as JobStop {
      return await end(stop)
    } catch let failure as Failure {
      return await record(failure)
    } catch let problem as OutputRootProblem {
      return await end(.noOutput("\(problem)"))
    } catch let error as SpoolError {
      guard claim.isHeld else {
        // It stands in done/ already, and whether that is durable is all that is in doubt.
        worker.broke(error, job: name)
        return .done
      }
      return await record(Failure(error))
    } catch {
      return await record(Failure(.io, "\(error)"))
    }
  }

  /// What became of the claim, if it is not this worker's any more: a gesture can come between any two steps.
  private func lostClaim() -> JobStop? {
    guard claim.isHeld else { return nil }
    do throws(SpoolError) {
      return try claim.standing().stop
    } catch {
      // The call that failed first is what gets told.
      return nil
    }
  }

  private func attemptOnce() async throws -> Outcome {
    let journal = claim.text.journal
    if claim.origin == .cur, journal.endsInFailure { return try await finishRecord(journal) }
    let isRequeued = claim.origin == .new && !journal.isEmpty
    attempt = (isRequeued ? 0 : journal.failures) + 1
    // A failed fsync is known to have lost lines, or may be known to none but a worker that died.
    if isTakenOver || journal.lostWrites { try claim.renew() }
    // Else the claim has it already.
    if isRequeued, !claim.isRequeueNoted { try claim.append(.requeued(.now())) }
    let request = claim.text.request.bounded(by: worker.options)
    if deaths > 0 { log("suspected", Fields().with("deaths", deaths)) }
    if let failure = Suspicion.failure(deaths, attempts: request.attempts) { throw failure }
    let plan = try JobPlan(request, protocols: worker.options.protocols)
    let commit = Commit(
      claim: claim, plan: plan, outputs: worker.outputs, attempt: attempt, began: began,
      durable: worker.durable)

    // A job that comes anew may have been edited: what was verified for its old text proves nothing.
    if !isRequeued, let whole = try await commit.finishInterrupted(journal) { return await succeeded(plan, whole) }
    if let expires = request.expires, expires <= .now() {
      throw Failure(.expired, "the job expired at \(expires)")
    }
    if let whole = try await commit.acceptExisting() { return await succeeded(plan, whole) }

    let state = try await openData(plan, journal)
    mayCheckpoint = true
    defer { mayCheckpoint = false }
    try await transfer(plan, state)
    // A checkpoint that came later would write behind the receipt, or after the move into whatever has the descriptor's number then.
    mayCheckpoint = false
    await checkpointing?.value
    if let stop { throw stop }
    // From here on it is the disk's turn: another transfer may have the connection.
    worker.transferEnded(id)
    try await commit.publish(state.part, fetched: fetched, unproven: state.isLengthUnproven ? "length" : nil)
    return await succeeded(plan, state.part.mark)
  }

  /// A crash came between the record of a failure and the move that it calls for.
  private func finishRecord(_ journal: Journal) async throws -> Outcome {
    if let data = try spool.status(.partial, claim.job.part), data.size == 0 { try spool.removeData(of: claim.job) }
    let job = name
    let record = journal.lastFailure ?? Fields()
    let retry = record["retry"].flatMap { Timestamp($0) }
    if let retry { try claim.park(until: retry) } else { try claim.giveUp() }
    // The one who wrote it died before it could tell anybody.
    var facts = Fields()
    for (key, value) in record.named { facts = facts.with(key, escaped(value)) }
    worker.log(Event("failed", retry == nil ? .error : .warning, job: job, facts))
    guard retry == nil else { return .waiting }
    await tellGivenUp(job, record)
    return .givenUp
  }

  private func succeeded(_ plan: JobPlan, _ whole: Mark) async -> Outcome {
    // While the hook runs another transfer may have the connection.
    worker.transferEnded(id)
    worker.log(Event("done", .info, job: name, Fields().with("output", plan.output.text)))
    _ = await worker.hooks(hookStop).run(.done, job: name, facts(plan, whole))
    return .done
  }

  /// What hooks are told of a payload.
  private func facts(_ plan: JobPlan, _ whole: Mark) -> [ChildProcess.Variable] {
    [
      .init("SPOOLRUN_OUTPUT", plan.output.text), .init("SPOOLRUN_URL", plan.mirrors[0].redacted),
      .init("SPOOLRUN_DIRECTORY", worker.outputs.location ?? "\(spool.location)/files"),
      .init("SPOOLRUN_SIZE", "\(whole.offset)"), .init("SPOOLRUN_CRC32", "\(whole.checksum)"),
    ]
  }

  private func tellGivenUp(_ job: FileName, _ record: Fields) async {
    worker.transferEnded(id)
    _ = await worker.hooks(hookStop).run(.failed, job: job, Hooks.failure(record))
  }

  // MARK: recover

  /// The data that an earlier attempt left, as far as it is to be trusted, its checksum carried on.
  private func openData(_ plan: JobPlan, _ journal: Journal) async throws -> PartData {
    let root = try worker.outputs.opened()
    // After a power cut the journal may not know of the temporary name: no line of it was durable when that became so.
    func open() throws(SpoolError) -> PartFile? {
      try PartFile.open(claim.job, in: spool) { (inode) throws(SpoolError) in
        try root.removeTemporaries(beside: plan.output, of: [inode])
      }
    }
    var opened = try open()
    var tries = 0
    // Another job of the same name has that file: this one goes under another name.
    while opened == nil, tries < 100 {
      try claim.renumber()
      opened = try open()
      tries += 1
    }
    guard var part = opened else { throw Failure(.io, "no free name for the data beside \(claim.job.display)") }

    let unrecorded = journal.unrecordedFrom.map { part.length > $0 ? part.length - $0 : 0 } ?? 0
    var recovery = Recovery.decide(
      length: part.length, inode: part.inode, journal: journal, host: spool.owner.host, boot: spool.boot,
      isTakenOver: isTakenOver)
    if let mark = recovery.verifies {
      let found = try await runBlocking {
        [reading = part.reading(from: Mark(offset: 0, checksum: Checksum()), to: mark.offset)] in
        try reading.run()
      }
      if found != mark { (recovery.length, recovery.from) = (0, Mark(offset: 0, checksum: Checksum())) }
    }
    // Before `started:` names this boot and host: from then on the length counts as trusted.
    if recovery.needsNewInode {
      // Not as for what is still to come: that waits without an attempt, and would be begun again at once.
      if let shortage = worker.room.shortage(of: recovery.length) {
        throw Failure(
          .diskFull, "the data has to be copied: \(shortage.reason)", expected: "\(shortage.needed)",
          found: "\(shortage.free)")
      }
      let copy = part.rebuilding(to: recovery.length, owner: claim.job)
      part = part.replaced(by: try await runBlocking { () throws(SpoolError) in try copy.run() })
    }
    try part.truncate(to: recovery.length)
    if recovery.length > 0 {
      let mark = try await runBlocking {
        [
          reading = part.reading(
            from: recovery.from, to: recovery.length, rewritingFrom: recovery.rewrites ? recovery.from.offset : nil)
        ] in
        try reading.run()
      }
      part.adopt(mark)
    }
    isDoubtful = false
    // What a worker fetched that was killed before it could say so.
    fetched += unrecorded
    let state = PartData(
      claim: claim, request: plan.request, part: part, version: part.length > 0 ? journal.version : nil,
      room: worker.room, blocks: worker.blocks)
    // Before anything can fail: it takes part in the room from now on.
    self.state = state
    lengthAtStart = part.length
    // The journal names the inode: after a change of inode it has to name the new one, or the data would not be known again.
    if let version = state.version, journal.part != part.inode { try state.begin(version) }
    return state
  }

  // MARK: transfer

  /// Asks the mirrors in turn until the data is whole and verified. A connection that is cut after progress is resumed at once; a mirror without
  /// progress, or with other data than the job declares, is left; when all are, the attempt has failed.
  private func transfer(_ plan: JobPlan, _ state: PartData) async throws {
    var failures: [Failure] = []
    let mirrors = plan.mirrors.enumerated().map { index, parts in
      MirrorURL(number: index + 1, url: plan.request.urls[index].text, parts: parts)
    }
    for (index, mirror) in plan.mirrors.enumerated() {
      do {
        try claim.append(
          .started(
            .now(), attempt: attempt, worker: spool.owner, boot: spool.boot, mirror: index + 1, url: mirror.redacted))
        state.noteStarted()
        if deaths > 0, clearedAt == nil { clearedAt = LoopExecutor.milliseconds() + worker.options.probation }
        log("started", Fields().with("attempt", attempt).with("at", state.part.length).with("url", mirror.redacted))
        // After a mismatch each mirror has to stand for all of the data, or one that is wrong would spoil what the others bring.
        let isAlone = claim.text.journal.mismatches > 0 || failures.contains { $0.code.isMismatch }
        try await fetch(mirrors[index], with: isAlone ? [] : mirrors[(index + 1)...].filter(\.parts.isHTTP), state)
        try verify(state)
        try await askVerifyHook(plan, state)
        return
      } catch let failure as Failure {
        if failure.code.isOfAllServers { throw failure }
        failures.append(failure)
        if index + 1 < plan.mirrors.count {
          log(
            "mirror-failed",
            Fields().with("url", mirror.redacted).with("code", failure.label).with("reason", failure.reason))
          // A checkpoint under way still uses the descriptor that goes with the data, and none may begin until that is gone.
          mayCheckpoint = false
          await checkpointing?.value
          try state.dropData(after: failure.code)
          mayCheckpoint = true
        }
      }
    }
    // One mirror that may come back keeps the job alive.
    guard let decisive = failures.last(where: { $0.failureClass == .temporary }) ?? failures.last else { return }
    throw decisive
  }

  /// - Parameter others: mirrors that may take part where there are several connections.
  private func fetch(_ mirror: MirrorURL, with others: [MirrorURL], _ state: PartData) async throws {
    let fetch = MirrorFetch(
      mirror, with: others, state, engine: try worker.engine(), id: fetchID, options: worker.options,
      memory: worker.memory
    ) { [unowned self] in log($0, $1) }
    self.fetch = fetch
    defer {
      fetched += fetch.fetched
      self.fetch = nil
    }
    do {
      if let stop { throw stop }
      try await fetch.run()
    } catch {
      // What it was stopped for is known here.
      throw stop ?? error
    }
    if let stop { throw stop }
  }

  /// The first of the ids that this job's fetches have; ``JobRequest/connectionRange`` leaves room for one each.
  private var fetchID: FetchRequest.ID { id << 6 }

  // MARK: verify

  private func verify(_ state: PartData) throws(Failure) {
    let part = state.part
    // Fetched when more was allowed.
    if let failure = state.request.tooLarge(part.length) { throw failure }
    if let size = state.request.size ?? state.version?.size, size != part.length {
      throw Failure(
        .mismatchSize, "the data has another size than it should", expected: "\(size)", found: "\(part.length)")
    }
    if let declared = state.request.crc32, declared != part.checksum {
      throw Failure(
        .mismatchChecksum, "the data has another CRC-32 than the job declares", expected: "\(declared)",
        found: "\(part.checksum)")
    }
  }

  /// The spool's own `verify` program has the last word on a payload.
  private func askVerifyHook(_ plan: JobPlan, _ state: PartData) async throws {
    if let stop { throw stop }
    let hooks = worker.hooks(hookStop)
    guard hooks.has(.verify) else { return }
    let payload = Array("\(spool.location)/".utf8) + state.part.path.bytes
    let seal = try state.part.seal()
    let answer = await hooks.run(
      .verify, job: name, facts(plan, state.part.mark) + [.init("SPOOLRUN_PAYLOAD", payload)])
    // What is set aside anyway, nobody has to vouch for.
    if case .no(let reason) = answer { throw Failure(.rejected, "the verify hook rejected the data: \(reason)") }
    try await checkSeal(seal, state.part)
    if case .nothing(let reason) = answer {
      // What ends the worker has ended the hook.
      worker.lookForStop()
      if let stop { throw stop }
      throw Failure(.hook, "the verify hook gave no answer: \(reason)")
    }
  }

  /// A hook may be root, whom no mode and no descriptor keeps from writing. The data is read again only where something
  /// was done to its file.
  private func checkSeal(_ seal: FileStatus.Stamp, _ part: PartFile) async throws {
    let stamp = try part.stamp()
    if stamp == seal { return }
    func changed(_ expected: String, _ found: String) -> Failure {
      Failure(
        .hookChanged, "the verify hook changed the data: let it work on a copy", expected: expected, found: found)
    }
    guard stamp.size == seal.size else { throw changed("\(seal.size)", "\(stamp.size)") }
    let expected = part.mark
    let found = try await runBlocking {
      [reading = part.reading(from: Mark(offset: 0, checksum: Checksum()), to: expected.offset)] in
      try reading.run()
    }
    guard found == expected else { throw changed("\(expected.checksum)", "\(found.checksum)") }
  }

  // MARK: record

  private func record(_ failure: Failure) async -> Outcome {
    await checkpointing?.value
    if let stop = lostClaim() { return await end(stop) }
    var failure = failure
    failure.lostWrites = failure.lostWrites || hasLostWrites
    // Doubt is no knowledge: what is known to be lost calls for a copy of all the data, and so for room.
    failure.isDoubtful = isDoubtful
    do {
      try state?.dropData(after: failure.code)
      // What an earlier attempt left, when more was allowed.
      if state == nil, failure.code == .tooLarge { try spool.removeData(of: claim.job) }
      let journal = claim.text.journal
      let isRequeued = claim.origin == .new
      let mismatches = (isRequeued ? 0 : journal.mismatches) + (failure.code.isMismatch ? 1 : 0)
      if failure.code.isMismatch, mismatches >= RetryDecision.maximumMismatches {
        failure.code = .mismatch
        failure.reason += " (mismatch \(mismatches) of \(RetryDecision.maximumMismatches))"
      }
      let decision = RetryDecision.decide(
        failure, failures: attempt, request: claim.text.request.inheriting(worker.options.defaults), now: .now(),
        jitter: .random(in: 0...1))
      let mark = state.flatMap { $0.part.length > 0 ? $0.part.mark : nil }
      var retry: Timestamp?
      if case .wait(let until) = decision { retry = until }
      let line = FailureRecord(
        time: .now(), attempt: attempt, failure: failure, offset: mark?.offset ?? 0, checksum: mark?.checksum,
        fetched: fetched,
        retry: retry)
      do throws(SpoolError) {
        try claim.append(.failed(line))
      } catch  where error.isWantOfRoom && claim.lostWrites == nil {
        // No room even for the record: the move and its mtime need none, and the log has it all. But what an fsync lost must not be
        // trusted by whoever does not know of it.
        if failure.lostWrites { try state?.cutToCheckpoint() }
      }
      // Before the job shows in its new place, where another worker may take it: a claim without data is a fresh start.
      let job = name
      try closeData()
      if let retry {
        try claim.park(until: retry)
      } else {
        try claim.giveUp()
      }
      worker.failed(job, line)
      if retry == nil {
        await tellGivenUp(job, line.facts)
      }
      return retry == nil ? .givenUp : .waiting
    } catch {
      if let stop = lostClaim() { return await end(stop) }
      worker.broke(error, job: name)
      return .waiting
    }
  }

  private func closeData() throws(SpoolError) {
    // Nothing to resume from is nothing to keep.
    if let part = state?.part, part.length == 0 { try part.remove() }
    // Closing only gives the lock back here: no promise was made for this data but the checkpoints, which are durable.
    try? state?.part.close()
    lengthAtEnd = state?.part.length ?? 0
    state?.leaveRoom()
    state = nil
  }

  private func end(_ stop: JobStop) async -> Outcome {
    await checkpointing?.value
    if stop.isOurs, let lost = lostWrites ?? claim.lostWrites { return await record(Failure(lost)) }
    do {
      if case .failed(let error) = stop { return await record(Failure(error)) }
      if case .removed = stop {
        try state?.part.remove()
        try closeData()
        try spool.removeOrphanedData(of: claim.job)
        worker.log(Event("cancelled", .info, job: name))
        return .cancelled
      }
      let mark = state?.part.mark ?? claim.text.journal.softMark ?? Mark(offset: 0, checksum: Checksum())
      let reason =
        switch stop {
        case .moved: "moved away from cur"
        case .noRoom(let shortage): "waits for room: \(shortage)"
        case .noOutput(let problem): "waits for the output root: \(problem)"
        default: "the worker was told to stop"
        }
      if state != nil || hasLostWrites {
        do throws(SpoolError) {
          try claim.append(
            .interrupted(
              .now(), attempt: attempt, mark: mark, fetched: fetched, lostWrites: hasLostWrites, reason: reason))
        } catch  where error.isWantOfRoom {
          // The move needs no room, and without the line the next attempt reads more of the data; what an fsync lost it must not find.
          if hasLostWrites { try state?.cutToCheckpoint() }
        } catch  where !stop.isOurs && error.isGone {
          // A successor on another host has written to the journal: it is not ours to write to any more.
        }
      }
      try closeData()
      if case .changed = stop {
        // It stays in cur/, without an owner: whoever takes it over reads it anew.
        worker.log(
          Event(
            "changed", .warning, job: name,
            Fields().with("reason", "its file was written to while it ran: it begins again as it is now")))
        return .moved
      }
      if case .moved = stop {
        worker.log(Event("held", .info, job: name, Fields().with("at", mark.offset)))
        return .moved
      }
      let job = name
      try claim.park(until: .now())
      worker.log(Event("parked", .info, job: job, Fields().with("at", mark.offset).with("reason", reason)))
      return .waiting
    } catch {
      if stop.isOurs, let lost = lostClaim() { return await end(lost) }
      worker.broke(error, job: name)
      return .waiting
    }
  }

  // MARK: from outside, a few times a second

  var progress: JobProgress {
    let length = state?.part.length ?? 0
    return JobProgress(id: id, name: name, bytes: length, total: state.flatMap { $0.request.size ?? $0.version?.size })
  }

  /// Bytes that only the page cache has, as far as checkpoints tell.
  var undurable: UInt64 {
    guard let state else { return 0 }
    let durable = state.checkpoint?.offset ?? 0
    return state.part.length > durable ? state.part.length - durable : 0
  }

  /// Bytes by which the data has grown since the job was claimed.
  var gained: UInt64 {
    let length = state?.part.length ?? lengthAtEnd
    return length > lengthAtStart ? length - lengthAtStart : 0
  }

  func stop(_ reason: JobStop) {
    switch reason {
    case .shutdown, .moved, .removed, .changed: hookStop.request()
    // The hook that may follow is to be heard.
    case .noRoom, .noOutput, .failed: break
    }
    guard stop == nil else { return }
    stop = reason
    fetch?.stop()
  }

  /// Looks after a running job: is it still ours, does its claim need a heartbeat, is a checkpoint due?
  func tick() {
    guard claim.isHeld else { return }
    do throws(SpoolError) {
      if stop == nil, let lost = try claim.standing().stop { return stop(lost) }
      // Also of one that was told to stop: a copy or a hook may keep it for longer than the lease.
      let now = LoopExecutor.milliseconds()
      if now - lastHeartbeat >= 30_000 {
        lastHeartbeat = now
        try claim.heartbeat()
      }
      if stop != nil { return }
      try state?.writePending()
      if mayCheckpoint, let clearedAt, now >= clearedAt {
        self.clearedAt = .max
        try claim.append(.cleared(.now()))
        log("cleared", Fields().with("deaths", deaths))
        worker.letOthersStart(beside: id)
      }
    } catch {
      return stop(.failed(error))
    }
    fetch?.tick()
    if mayCheckpoint, let state, checkpointing == nil, state.isCheckpointDue(worker.options) { beginCheckpoint(state) }
  }

  private func beginCheckpoint(_ state: PartData) {
    state.noteCheckpointBegun()
    let part = state.part
    let mark = part.mark
    let data = part.flush
    let cache = part.cache
    // What was fetched last stays for whoever reads the payload next.
    let kept = worker.options.checkpointBytes
    let generation = state.generation
    checkpointing = WorkerLoop.start {
      // Other data may take its place meanwhile; its descriptor is in use until here is done.
      defer { withExtendedLifetime(part) {} }
      do {
        do {
          try await runBlocking {
            try data.run()
            if mark.offset > kept { cache.forget(before: mark.offset - kept) }
          }
        } catch {
          self.lostWrites = error as? SpoolError
          throw error
        }
        // The transfer went on meanwhile, but may have started over: then this mark speaks of bytes that are gone.
        if state.generation == generation, self.state === state {
          try state.noteCheckpoint(mark, longJournal: self.worker.options.longJournal)
          try await self.claim.makeDurable(self.worker.durable)
          self.worker.log(Event("checkpoint", .debug, job: self.name, Fields().with("at", mark.offset)))
        }
      } catch let error as SpoolError {
        self.stop(.failed(error))
      } catch {
        self.stop(.failed(SpoolError(call: .fdatasync, path: self.claim.job.display, errno: .ioError)))
      }
      self.checkpointing = nil
    }
  }
}

extension URLParts {
  /// Reached without any network.
  var isLoopback: Bool { host == "localhost" || host.hasPrefix("127.") || host == "::1" || host == "[::1]" }
}

extension Failure {
  /// What the spool's own trouble means for a job.
  init(_ error: SpoolError) {
    switch error.errno {
    case _ where error.isDiskFull:
      self.init(.diskFull, "\(error)")
    case _ where error.isTooLargeHere:
      let limit = spoolrun_file_size_limit()
      self.init(
        .tooLargeHere,
        limit > 0
          ? "\(error): the worker may write no more than \(limit) bytes to a file (ulimit -f), or its file system takes less"
          : "\(error): the file system takes no file of that size",
        expected: limit > 0 ? "at most \(limit)" : nil)
    case .tooManySymbolicLinkLevels, .notDirectory, .isDirectory, .fileNameTooLong, .improperLink:
      self.init(.badOutput, "the way to the output is barred: \(error)")
    default:
      self.init(.io, "\(error)")
    }
  }

  /// What libcurl's failure means for a job.
  init(_ failure: TransferFailure, isLoopback: Bool) {
    let code: FailureCode =
      switch failure.code {
      case .resolve: .resolve
      case .connect: .connect
      case .tls: .tls
      case .proxy: .proxy
      case .stalled: .stalled
      case .timeout: .timeout
      case .cut: .cut
      case .shortBody: .shortBody
      case .redirect: .redirect
      case .protocolNotEnabled: .protocol
      case .badURL: .malformed
      case .badResponse, .surplus: .badResponse
      case .outOfMemory: .io
      }
    self.init(code, failure.message)
    guard !isLoopback, code == .resolve || code == .connect else { return }
    // Not EHOSTUNREACH, which speaks of one host.
    let isUnreachable = [.networkUnreachable, .networkDown].contains(Errno(rawValue: failure.osErrno))
    if isUnreachable ? !NetworkPresence.hasRoute() : !NetworkPresence.hasAddress() {
      self.code = .noNetwork
      reason = "no network: \(reason)"
    }
  }
}
