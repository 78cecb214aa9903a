package import Spool
internal import Transfer

/// Loads libcurl on another thread while a worker starts, which takes as long as all else before the first request.
/// Only if there seems to be work: most runs from cron find nothing to do.
package struct LibcurlAhead {
  private let hasBegun: Bool
  /// Names to look at in each directory: a job that is not due says nothing of those behind it.
  private static let most = 16

  /// Begins if a job seems to be due.
  package init(for spool: Spool) {
    hasBegun = Self.seemsNeeded(in: spool)
    if hasBegun { BlockingThread.run { Self.start() } }
  }

  /// Waits for the thread. To be called before the process exits: libraries that are being set up must not be torn down
  /// at the same time.
  package func finish() { if hasBegun { Self.start() } }

  /// Whoever needs libcurl finds what is wrong with it.
  private static func start() { _ = Result { () throws(TransferError) in try Libcurl.start() } }

  /// Not in `cur/`: another worker may be running what is there.
  private static func seemsNeeded(in spool: Spool) -> Bool {
    let directories: [Directory] = [.partial, .new, .urgent]
    return directories.contains { directory in
      do throws(SpoolError) {
        return try hasDueJob(in: directory, of: spool)
      } catch {
        // The worker's own look reports it.
        return false
      }
    }
  }

  private static func hasDueJob(in directory: Directory, of spool: Spool) throws(SpoolError) -> Bool {
    var reader = SpoolReader(spool)
    try reader.begin(directory)
    let now = spool.now()
    for _ in 0..<most {
      guard let name = try reader.next(directory) else { return false }
      if case .candidate = try reader.look(directory, name, at: now) { return true }
    }
    return false
  }
}
