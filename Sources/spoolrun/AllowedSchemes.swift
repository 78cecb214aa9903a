internal import Spool
internal import SpoolWorker
internal import Transfer

/// Refuses URLs whose scheme the spool's worker would refuse.
enum AllowedSchemes {
  /// Those that a worker allows without `--protocols`.
  static let standard = Set(WorkerOptions().protocols.map(\.rawValue))

  /// - Throws: the exit status, after a message.
  static func check(_ urls: [String], in spool: Spool) throws {
    // If it cannot be known, the worker decides.
    guard let allowed = try? spool.allowedSchemes() ?? standard else { return }
    let refused = urls.lazy.compactMap { try? URLParts($0).scheme.rawValue }.first { !allowed.contains($0) }
    guard let refused else { return }
    Terminal.error(
      """
      the scheme \(refused) is not enabled in this spool, only \(allowed.sorted().joined(separator: ", ")): start its \
      worker with --protocols \((allowed.union([refused])).sorted().joined(separator: ",")) first
      """)
    throw ExitStatus.usage.code
  }
}
