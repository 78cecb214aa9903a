internal import Glibc
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

  /// The schemes in `list`, which commas separate; nil if one of them is unknown.
  static func parse(_ list: String) -> Set<Scheme>? {
    let schemes = list.split(at: ",").map { Scheme(rawValue: $0.lowercasedASCII) }
    return schemes.contains(nil) ? nil : Set(schemes.compactMap { $0 })
  }

  /// If they cannot be known, the worker decides.
  init(of spool: Spool) { self = (try? SchemeNote(spool).read() ?? Self.standard).map(Self.init(names:)) ?? .all }

  /// Notes for `add`, which refuses other schemes, what the spool's worker allows.
  static func note(_ schemes: Set<Scheme>, in spool: Spool, isVerbose: Bool) {
    let names = Set(schemes.map(\.rawValue))
    // Whoever may drop jobs may read it.
    let mask = umask(0o022)
    defer { umask(mask) }
    do throws(SpoolError) {
      try SchemeNote(spool).write(names == standard ? nil : names)
    } catch {
      // Only `add` needs it. What keeps jobs from running is reported where it does so.
      if isVerbose {
        Terminal.error("the allowed schemes cannot be written to SPOOL/protocols: \(error)", .warning)
      }
    }
  }

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
