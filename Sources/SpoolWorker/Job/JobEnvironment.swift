internal import CLinux
internal import Spool
internal import Transfer

/// What the attempts of a worker share: its options and the means that they work with.
@WorkerLoop
final class JobEnvironment {
  let options: WorkerOptions
  let outputs: CurrentOutputRoot
  let space: DiskSpace
  let blocks = BlockPool()
  let log: @Sendable (Event) -> Void
  /// Sees at once whether the worker was told to stop: the signal that ends a service ends its hooks as well, and the
  /// hook's end may be heard of first.
  var lookForStop: () -> Void = {}
  /// Bytes of all running transfers that only the page cache has.
  var undurable: () -> UInt64 = { 0 }
  private(set) lazy var memory = MemoryBudget(limit: options.maxMemory ?? MemoryLimit.ofConnections())
  /// Makes durable what jobs ask for, together.
  private(set) lazy var durable = GroupCommit { [unowned self] in
    [spoolFileSystem, outputs.fileSystem]
  } isLittleDirty: { [unowned self] in
    undurable() < Self.littleDirty
  }
  private let spoolFileSystem: FileSystem
  private var startedEngine: TransferEngine?
  /// Dirty bytes beyond which a file is not made durable together with all else.
  private static let littleDirty: UInt64 = 64 << 20

  /// - Parameter log: called for each event, on the loop's thread.
  /// - Throws: ``OutputRootProblem`` where the output root cannot be opened, or is none to publish to.
  init(_ spool: Spool, _ options: WorkerOptions, log: @escaping @Sendable (Event) -> Void) throws(OutputRootProblem) {
    self.options = options
    self.log = log
    space = DiskSpace(spool, kept: options.minFree)
    outputs = try CurrentOutputRoot(options.directory, spool: spool)
    do throws(SpoolError) { spoolFileSystem = try spool.fileSystem() } catch { throw .missing(error) }
  }

  /// The engine of all transfers, which starts with the first of them.
  func engine() throws(TransferError) -> TransferEngine {
    if let startedEngine { return startedEngine }
    spoolrun_keep_freed_memory()
    let engine = try TransferEngine(
      TransferEngine.Options(
        protocols: options.protocols, caFile: options.caFile, userAgent: options.userAgent,
        bytesPerSecond: options.limitRate))
    startedEngine = engine
    WorkerLoop.executor.driver = EngineDriver(engine)
    return engine
  }
}
