internal import CLinux
internal import Spool
internal import Transfer

/// What all attempts of a worker share: its options, the output root, disk space, memory, the transfer engine.
@WorkerLoop
final class JobEnvironment {
  /// Only the keys of `defaults` change.
  var options: WorkerOptions
  /// Where payloads go whose job names no other output root: see ``outputs(of:)``.
  let outputs: CurrentOutputRoot
  let space: DiskSpace
  let blocks = BlockPool()
  var proxies: ProxyRules { options.network.proxies }
  let log: @Sendable (Event) -> Void
  /// Checks at once whether the worker was told to stop. The signal that stops a service also ends its hooks, and the
  /// worker may notice the end of a hook first.
  var lookForStop: () -> Void = {}
  /// Bytes of all running transfers that may be in the page cache only.
  var undurable: () -> UInt64 = { 0 }
  /// Where jobs wait for their turn to run the hook `deliver`.
  let deliveries: Turnstile
  private(set) lazy var memory = MemoryBudget(limit: options.connectionMemory)
  /// Makes files of several jobs durable together.
  private(set) lazy var durable = GroupCommit { [unowned self] in
    [spoolFileSystem, outputs.fileSystem].compactMap(\.self)
  } isLittleDirty: { [unowned self] in
    undurable() < Self.littleDirty
  }
  let spool: Spool
  private let spoolFileSystem: FileSystem?
  private(set) var startedEngine: (any Fetcher)?
  /// Dirty bytes above which the whole file system is not flushed for the sake of a few files.
  private static let littleDirty: UInt64 = 64 << 20

  /// - Parameter log: called for each event, on the loop's thread.
  /// - Throws: ``OutputRootProblem`` if the output root cannot be opened, or must not be published to.
  init(_ spool: Spool, _ options: WorkerOptions, log: @escaping @Sendable (Event) -> Void) throws(OutputRootProblem) {
    self.options = options
    self.spool = spool
    self.log = log
    deliveries = Turnstile(options.jobs)
    space = DiskSpace(spool, kept: options.minFree)
    outputs = try CurrentOutputRoot(options.directory, spool: spool)
    do throws(SpoolError) { spoolFileSystem = try spool.fileSystem() } catch { throw .missing(error) }
  }

  /// Sets the rates that transfers share now. To be called a few times a second.
  func shareRates() { startedEngine?.share(options.sharedRates) }

  /// Sets the limits of a job's requests: see ``TransferEngine/limit(group:to:of:)``.
  func limit(_ requests: UInt64, to rate: UInt64?, of rateClass: Int?) {
    startedEngine?.limit(group: requests, to: rate, of: rateClass)
  }

  /// Whether servers are far away: a response takes longer than a few claims.
  var isFar: Bool { (startedEngine?.lastWait ?? 0) > 0.005 }

  /// The engine of all transfers; created for the first one.
  func engine() throws(TransferError) -> any Fetcher {
    if let startedEngine { return startedEngine }
    spoolrun_keep_freed_memory()
    let engine = try WorkerLoop.executor.surroundings.makeFetcher(
      TransferOptions(protocols: options.protocols, network: options.network, userAgent: options.userAgent))
    startedEngine = engine
    shareRates()
    return engine
  }

  /// Forgets the cookies that servers set during an attempt, which has ended.
  /// - Parameter requests: the id of its first request.
  func forgetCookies(of requests: UInt64) { startedEngine?.forget(requests) }
}
