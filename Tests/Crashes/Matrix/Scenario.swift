import Glibc
import TestSupport
import Testing

/// A state of a spool and a server from which a worker starts, and what has to come of it.
struct Scenario: Sendable, CustomTestStringConvertible {
  /// One job, known by its `output:` line, because its name may become another.
  struct Job: Sendable {
    enum End: Sendable {
      /// In `done/` with the current version as its payload.
      case done
      /// In `failed/`, without a payload.
      case failed
    }

    var output: String
    var end = End.done
    /// What else may stand at the output until the job is done.
    var before: [UInt8]?
    /// A standing order drops it, so that it may not be there yet.
    var isOrdered = false
  }

  let name: String
  var jobs = [Job(output: "a.bin")]
  /// Workers that run at the same time; only the first one meets the fault.
  var workers = 1
  /// Options of the rig beside those of the fault.
  var options: @Sendable (World) -> [String] = { _ in [] }
  var isOnOtherFileSystem = false
  /// What stands in `failed/` at the end beside the jobs.
  var rejected: [String] = []
  /// What each receipt says of its payload, beside size and CRC-32.
  var digests: [String: String] = [:]
  /// What each payload has from the moment that it has its name; nil where the jobs do not say it.
  var permissions: mode_t?
  /// The directories that hold the output, outermost first, as the record names them.
  var outputDirectories = ["files"]
  /// A fault strikes at every so many-th call only: many jobs make the same calls.
  var stride = 1
  /// Whether the hook `deliver` takes the payload, which it refuses at first.
  var delivers = false
  /// Whether an order looks at the file itself.
  var isWatched = false
  /// Whether each job's name is its output's.
  var isNamedByOutput = true
  let setUp: @Sendable (World) throws -> Void
  var answer: @Sendable (World, ServerRequest, Reply) throws -> Void = { _, request, reply in
    try Version.current.serve(request, reply)
  }

  var testDescription: String { name }

  static let all = began + left + placed + crowded + delivered + standing + signed + inPieces

  /// CRASH_MATRIX=NAME in the environment chooses the scenario of that name, for whoever works on it; `all` is all.
  static let chosen: [Scenario] = {
    guard let name = getenv("CRASH_MATRIX").map({ String(cString: $0) }), name != "all" else { return all }
    return all.filter { $0.name == name }
  }()
}

extension World {
  /// Drops job `a` for `a.bin`.
  func drop(_ lines: String..., output: String = "a.bin", as name: String = "a") throws {
    try spool.drop(name, job(lines, output: output))
  }

  func job(_ lines: [String], output: String) -> String {
    (["url: \(url(output))", "output: \(output)"] + lines).joined(separator: "\n") + "\n"
  }
}
