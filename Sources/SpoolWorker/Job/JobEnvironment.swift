internal import CLinux
internal import Spool
internal import SystemPackage
internal import Transfer

/// What all attempts of a worker share: its options, the output root, disk space, memory, the transfer engine.
@WorkerLoop final class JobEnvironment {
  /// Only the keys of `defaults` change.
  var options: WorkerOptions
  /// Where payloads go whose job names no other output root: see ``outputs(of:)``.
  let outputs: CurrentOutputRoot
  private let named: NamedOutputRoots
  let space: DiskSpace
  let blocks = BlockPool()
  let log: @Sendable (Event) -> Void
  /// Checks at once whether the worker was told to stop. The signal that stops a service also ends its hooks, and the
  /// worker may notice the end of a hook first.
  var lookForStop: () -> Void = {}
  /// Bytes of all running transfers that may be in the page cache only.
  var undurable: () -> UInt64 = { 0 }
  /// Where jobs wait for their turn to run the hook `deliver`.
  let deliveries: AsyncSemaphore
  private(set) lazy var limits: SpoolLimits = SpoolLimits(spool, log: log) { [unowned self] in
    options
  } pace: { [unowned self] in
    pace(of: $0)
  }
  private(set) lazy var servers: Servers = Servers(
    spool, perHost: options.perHost, log: log, isForPerson: options.only != nil,
    expectsMistakes: options.expectsMistakes,
    probe: { [unowned self] server, takes in
      if takes { return limits.takeProbe(of: server) }
      limits.giveProbe(of: server)
      return false
    }
  ) { [unowned self] in
    way(to: $0)
  } running: { [unowned self] in
    limits.transfers(from: $0)
  }
  private(set) lazy var memory = MemoryBudget(limit: options.maxMemory ?? MemoryBudget.defaultLimit())
  private(set) lazy var durable = GroupCommit { [unowned self] in
    [spoolFileSystem, outputs.fileSystem].compactMap(\.self)
  } isLittleDirty: { [unowned self] in
    undurable() < Self.littleDirty
  }
  let spool: Spool
  private let spoolFileSystem: FileSystem?
  private(set) var startedEngine: PacedFetcher?
  /// Dirty bytes above which the whole file system is not flushed for the sake of a few files.
  private static let littleDirty: UInt64 = 64 << 20

  /// - Parameter log: called for each event, on the loop's thread.
  /// - Throws: ``OutputRootProblem`` if the output root cannot be opened, or must not be published to.
  init(_ spool: Spool, _ options: WorkerOptions, log: @escaping @Sendable (Event) -> Void) throws(OutputRootProblem) {
    (self.options, self.spool, self.log) = (options, spool, log)
    deliveries = AsyncSemaphore(options.jobs)
    space = DiskSpace(spool, kept: options.minFree)
    outputs = try CurrentOutputRoot(options.directory, spool: spool)
    named = NamedOutputRoots(spool)
    do throws(SpoolError) { spoolFileSystem = try spool.fileSystem() } catch { throw .missing(error) }
  }

  /// Sets the rates that transfers share now. To be called a few times a second.
  func shareRates() { startedEngine?.share(limits.sharedRates()) }

  /// Whether servers are far away: a response takes longer than a few claims.
  var isFar: Bool { (startedEngine?.lastWait ?? 0) > 0.005 }

  func engine() throws(TransferError) -> any Fetcher {
    if let startedEngine { return startedEngine }
    spoolrun_keep_freed_memory()
    let engine = PacedFetcher(
      try WorkerLoop.executor.surroundings.makeFetcher(
        TransferOptions(protocols: options.protocols, network: options.network, userAgent: options.userAgent))
    ) { [unowned self] in limits.turn(at: $0) }
    startedEngine = engine
    shareRates()
    return engine
  }

  /// The output root of a job's payload: the worker's own, or the one that the job names.
  /// - Throws: `bad-output` if that is none of the spool's, does not exist, or must not be published to. It is no
  ///   reason to wait, because a job of this worker alone would be claimed again at once. `io` and the like if the
  ///   system failed: another attempt may succeed.
  func outputs(of plan: JobPlan) throws(Failure) -> CurrentOutputRoot {
    guard let root = plan.request.root else { return outputs }
    do throws(OutputRootProblem) {
      return try named.root(root.text, for: plan.output)
    } catch {
      if case .missing(let error) = error, !error.isOfPath { throw Failure(error) }
      throw Failure(.badOutput, "root `\(escaped(root.text))`: \(error)", line: root.number)
    }
  }

  /// - Parameter known: since when there is the job, in seconds since the epoch.
  func patience(of request: JobRequest, knownSince known: Int64?) -> ServerRests.Patience {
    let now = LoopExecutor.milliseconds()
    let since = known.map { min(now, spool.moment(Timestamp(seconds: $0))) } ?? now
    let seconds = request.patience ?? options.defaults.patience ?? options.patience
    return ServerRests.Patience(since: since, milliseconds: Int64(seconds) * 1000)
  }

  /// Milliseconds between two requests to a server, as a person says or as it has been found to need; nil for none.
  private func pace(of server: String) -> Int64? {
    let rules = options.defaults.servers.pace
    let told = rules.isEmpty ? nil : rules.value(for: hostName(of: server))?.milliseconds
    let pace = max(told ?? 0, servers.rests.pause(of: server))
    return pace > 0 ? pace : nil
  }

  func way(to url: URLParts) -> ServerRests.Way {
    [url.server] + (options.network.proxies.name(for: url).map { [ServerRests.proxy($0)] } ?? [])
  }
}

/// What all fetches of an attempt share: for whom they ask servers and tell what they find.
@WorkerLoop struct AttemptContext: FetchContext {
  let claim: Claim
  let environment: JobEnvironment
  let attempt: UInt64
  private let patience: ServerRests.Patience
  /// The id of the first request; the ids after it, one for each connection, are reserved for the attempt.
  var requests: UInt64 { attempt << 6 }
  var servers: Servers { environment.servers }
  var options: WorkerOptions { environment.options }
  var memory: MemoryBudget { environment.memory }

  init(_ claim: Claim, _ environment: JobEnvironment, attempt: UInt64, _ request: JobRequest) {
    (self.claim, self.environment, self.attempt) = (claim, environment, attempt)
    // A subscription is not given up.
    patience =
      claim.isStandingOrder ? .endless : environment.patience(of: request, knownSince: claim.knownSince?.seconds)
  }

  /// - Throws: ``JobStop/waits(_:)`` if all mirrors rest; `server-away`, or another final failure.
  func wait(for mirrors: [MirrorURL]) throws {
    if let wait = try servers.wait(attempt, of: mirrors, patience) { throw JobStop.waits(wait) }
  }

  func obstacle(_ mirror: MirrorURL) -> Failure? { servers.obstacle(attempt, mirror, patience) }

  func answered(_ mirror: MirrorURL) { servers.answered(attempt, mirror) }

  func judged(_ failure: Failure, isOfOther: Bool, _ mirror: MirrorURL) -> Failure {
    servers.judged(failure, isOfOther: isOfOther, of: attempt, mirror, claim, patience)
  }

  func takesPart(_ mirror: MirrorURL) -> Bool { servers.takesPart(mirror) }

  func bearsMore(_ mirror: MirrorURL) -> Bool { servers.bearsMore(mirror) }

  func hasRefusedConnection(_ mirror: MirrorURL, _ failure: Failure) { servers.hasRefusedConnection(mirror, failure) }

  func engine() throws(TransferError) -> any Fetcher { try environment.engine() }

  func log(_ event: String, _ fields: Fields) {
    environment.log(Event(event, .info, job: claim.job.fileName, fields))
  }
}

extension SpoolError {
  /// Whether the path of an output root is to blame, which stays so until a person changes it.
  fileprivate var isOfPath: Bool {
    switch errno {
    case .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels, .fileNameTooLong, .invalidArgument,
      .permissionDenied:
      true
    default: false
    }
  }
}
