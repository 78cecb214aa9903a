internal import Spool

/// Makes what many jobs wait for durable in rounds that they share (group commit). What is asked for while a round is under way goes into the next,
/// so a lone job never waits, and under load nobody waits for more than two rounds.
@WorkerLoop
final class GroupCommit {
  private struct Request {
    let flushes: [Flush]
    let continuation: CheckedContinuation<Void, any Error>
  }

  private let fileSystems: () -> [FileSystem]
  /// Whether so little is dirty that to write it all out holds nobody up.
  private let isLittleDirty: () -> Bool
  private var waiting: [Request] = []
  private var isUnderWay = false
  private var cost = Cost()
  private var hasFailed = false

  /// - Parameter fileSystems: those that may be made durable as a whole, asked for in each round: an output root may be opened anew.
  init(_ fileSystems: @escaping () -> [FileSystem], isLittleDirty: @escaping () -> Bool) {
    self.fileSystems = FileSystem.isReliable ? fileSystems : { [] }
    self.isLittleDirty = isLittleDirty
  }

  /// Returns when all of `flushes` are durable.
  /// - Throws: ``SpoolError`` of the first that failed.
  func callAsFunction(_ flushes: Flush...) async throws { try await self(flushes) }

  func callAsFunction(_ flushes: [Flush]) async throws {
    try await withCheckedThrowingContinuation { continuation in
      waiting.append(Request(flushes: flushes, continuation: continuation))
      if !isUnderWay {
        isUnderWay = true
        WorkerLoop.start { await self.runRounds() }
      }
    }
  }

  private func runRounds() async {
    while !waiting.isEmpty {
      let requests = waiting
      waiting = []
      var flushes: [Flush.Target: Flush] = [:]
      for flush in requests.lazy.flatMap(\.flushes) { flushes[flush.target] = flush }
      let syncsAll = !hasFailed && cost.favoursFileSystem(for: flushes.count) && isLittleDirty()
      let round = Round(flushes: Array(flushes.values), fileSystems: syncsAll ? fileSystems() : [])
      let clock = ContinuousClock()
      let began = clock.now
      let outcome = await runBlocking { round.run() }
      cost.note(clock.now - began, flushes: flushes.count, syncedAll: syncsAll)
      // The error was reported once and not again (errseq), perhaps for a file that asks only later: from now on each file's own word counts.
      if outcome.fileSystemFailed { hasFailed = true }
      for request in requests {
        if let error = request.flushes.lazy.compactMap({ outcome.errors[$0.target] }).first {
          request.continuation.resume(throwing: error)
        } else {
          request.continuation.resume()
        }
      }
    }
    isUnderWay = false
  }

  /// What flushes took lately. Each fsync(2) is a commit of the file system's own journal, and so is one syncfs(2) for any number of files;
  /// but that writes out what others have dirtied, too.
  struct Cost {
    /// Fewer are flushed one by one in any case.
    private static let leastForFileSystem = 4
    private var single = Duration.milliseconds(2)
    private var whole = Duration.milliseconds(4)

    func favoursFileSystem(for count: Int) -> Bool { count >= Self.leastForFileSystem && whole < single * count }

    mutating func note(_ duration: Duration, flushes: Int, syncedAll: Bool) {
      if syncedAll {
        whole = (whole * 2 + duration) / 3
      } else {
        single = (single * 2 + duration / flushes) / 3
        // Forgets a slow one, so that it is tried again.
        whole = whole * 9 / 10
      }
    }
  }

  /// What one round does, on another thread.
  struct Round: Sendable {
    let flushes: [Flush]
    let fileSystems: [FileSystem]

    struct Outcome {
      var errors: [Flush.Target: SpoolError] = [:]
      var fileSystemFailed = false
    }

    func run() -> Outcome {
      var outcome = Outcome()
      for (device, flushes) in Dictionary(grouping: flushes, by: \.device) {
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
}
