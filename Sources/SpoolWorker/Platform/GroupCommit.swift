internal import Spool

/// Makes files of several jobs durable in shared rounds (group commit). Requests that arrive during a round go into the
/// next one. So a single job never waits, and under load a job waits for at most two rounds.
@WorkerLoop final class GroupCommit {
  /// From this number of files on, syncfs(2) instead of an fsync(2) for each: it commits the file system's own journal
  /// once for any number of files, but also writes the dirty data of other programs.
  private static let leastForFileSystem = 4

  private let fileSystems: () -> [FileSystem]
  /// Whether there is so little dirty data that flushing all of it delays nobody.
  private let isLittleDirty: () -> Bool
  private var waiting: [(flushes: [Flush], continuation: CheckedContinuation<Void, any Error>)] = []
  private var isRunning = false
  private var hasFailed = false

  /// - Parameter fileSystems: the file systems that may be flushed as a whole. Called in each round, because the output
  ///   root may be reopened.
  init(_ fileSystems: @escaping () -> [FileSystem], isLittleDirty: @escaping () -> Bool) {
    (self.fileSystems, self.isLittleDirty) = (fileSystems, isLittleDirty)
  }

  func callAsFunction(_ flushes: [Flush]) async throws {
    try await withCheckedThrowingContinuation { continuation in
      waiting.append((flushes, continuation))
      if !isRunning {
        isRunning = true
        WorkerLoop.start { await self.runRounds() }
      }
    }
  }

  /// - Throws: ``LostWrites``.
  func callAsFunction(data flush: Flush) async throws {
    do { try await self([flush]) } catch let error as SpoolError { throw LostWrites(error) }
  }

  private func runRounds() async {
    while !waiting.isEmpty {
      let requests = waiting
      waiting = []
      var targets: Set<Flush.Target> = []
      let flushes = requests.flatMap(\.flushes).filter { targets.insert($0.target).inserted }
      let syncsAll = !hasFailed && flushes.count >= Self.leastForFileSystem && isLittleDirty()
      let whole = syncsAll ? fileSystems() : []
      let outcome = await runBlocking { GroupCommit.round(flushes, on: whole) }
      // The kernel reports such an error only once (errseq), perhaps for a file whose request comes later. So from now
      // on each file is flushed by itself.
      if outcome.fileSystemFailed { hasFailed = true }
      for request in requests {
        if let error = request.flushes.lazy.compactMap({ outcome.errors[$0.target] }).first {
          request.continuation.resume(throwing: error)
        } else {
          request.continuation.resume()
        }
      }
    }
    isRunning = false
  }

  nonisolated static func round(_ flushes: [Flush], on fileSystems: [FileSystem]) -> (
    errors: [Flush.Target: SpoolError], fileSystemFailed: Bool
  ) {
    var outcome = (errors: [Flush.Target: SpoolError](), fileSystemFailed: false)
    let byDevice = Dictionary(grouping: flushes, by: \.device)
    for (device, flushes) in byDevice.sorted(by: { $0.key < $1.key }) {
      if let fileSystem = fileSystems.first(where: { $0.device == device }) {
        do throws(SpoolError) {
          try fileSystem.sync()
          continue
        } catch {
          outcome.fileSystemFailed = true
        }
      }
      for flush in flushes {
        do throws(SpoolError) { try flush.run() } catch { outcome.errors[flush.target] = error }
      }
    }
    return outcome
  }
}

extension Claim {
  @WorkerLoop
  func makeDurable(_ durable: GroupCommit) async throws {
    do {
      try await durable([flush])
    } catch let error as SpoolError {
      try renew(after: error)
    }
  }
}

extension PartFile {
  /// Reads the data between a mark and an offset, to compute the digests at the offset.
  nonisolated(nonsending) func read(from mark: Mark, to end: UInt64, rewritingFrom: UInt64? = nil) async throws -> Mark
  {
    try await runBlocking { [reading = reading(from: mark, to: end, rewritingFrom: rewritingFrom)] in try reading.run()
    }
  }

  /// Bytes of data above which the data is flushed alone, so that small jobs do not wait for it.
  private static let bulk: UInt64 = 8 << 20

  /// - Throws: ``LostWrites``.
  @WorkerLoop func makeDurable(_ durable: GroupCommit) async throws {
    let data = flush
    if length <= Self.bulk { return try await durable(data: data) }
    do { try await runBlocking { try data.run() } } catch let error as SpoolError { throw LostWrites(error) }
  }
}
