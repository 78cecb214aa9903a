internal import Spool
internal import SpoolWorker
internal import Transfer

/// The schemes of URLs that a spool's worker takes. Others are refused before a drop.
struct AllowedSchemes {
  /// Those that a worker allows without `--protocols`.
  static let standard = Set(WorkerOptions().protocols.map(\.rawValue))
  /// For a command that runs its jobs itself.
  static let all = AllowedSchemes(names: Set(Scheme.allCases.map(\.rawValue)))

  private let names: Set<String>

  private init(names: Set<String>) { self.names = names }

  /// If they cannot be known, the worker decides.
  init(of spool: Spool) { self = (try? spool.allowedSchemes() ?? Self.standard).map(Self.init(names:)) ?? .all }

  /// - Throws: the exit status, after a message, if one of the URLs is refused.
  func check(_ urls: [String]) throws {
    let schemes = urls.compactMap { try? URLParts($0).scheme }
    guard let refusal = schemes.lazy.compactMap({ refusal(of: $0) }).first else { return }
    Terminal.error(refusal)
    throw ExitStatus.usage.code
  }

  /// Why a URL is refused; nil where it is not.
  func refusal(of scheme: Scheme) -> String? {
    if names.contains(scheme.rawValue) { return nil }
    return """
      the scheme \(scheme) is not enabled in this spool, only \(names.sorted().joined(separator: ", ")): start its \
      worker with --protocols \(names.union([scheme.rawValue]).sorted().joined(separator: ",")) first
      """
  }
}
