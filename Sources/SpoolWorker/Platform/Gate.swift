internal import Spool
internal import SystemPackage

/// What decides whether jobs may start now.
package enum Gate: Sendable {
  /// A shell command: status 0 opens.
  case command(String)
  /// Closed while NetworkManager calls the connection metered, or thinks that it is.
  case unmeteredOnly

  /// How long an answer holds, in milliseconds.
  static let validity: Int64 = 10_000
  private static let timeLimit = 30

  enum Answer: Sendable, Equatable {
    case open
    case closed(String)
    /// It could not be asked: what is wrong and what to do.
    case broken(String)
  }

  /// - Parameter stop: ends the command, whose answer nobody waits for any more.
  func ask(_ stop: ChildStop) async -> Answer {
    do throws(Errno) {
      switch self {
      case .command(let command):
        let outcome = try await ChildProcess(
          arguments: ["/bin/sh", "-c", command], seconds: Self.timeLimit, stop: stop
        ).run()
        // What sh says of a command that it can't find or run (POSIX, sh, EXIT STATUS).
        if outcome.end == .exited(126) || outcome.end == .exited(127) {
          return .broken("--gate: the command cannot be run: \(outcome.description)")
        }
        return outcome.isSuccess ? .open : .closed("--gate: \(outcome.description)")
      case .unmeteredOnly:
        return try await askNetworkManager(stop)
      }
    } catch {
      return .broken("the gate cannot be run: \(error)")
    }
  }

  /// The property Metered of org.freedesktop.NetworkManager: 0 unknown, 1 yes, 2 no, 3 guess yes, 4 guess no (NMMetered).
  private func askNetworkManager(_ stop: ChildStop) async throws(Errno) -> Answer {
    let service = "org.freedesktop.NetworkManager"
    let outcome = try await ChildProcess(
      arguments: [
        "/usr/bin/env", "busctl", "--system", "get-property", service, "/org/freedesktop/NetworkManager", service,
        "Metered",
      ], seconds: Self.timeLimit, stop: stop
    ).run()
    guard outcome.isSuccess else {
      return .broken(
        "--unmetered-only needs NetworkManager and busctl, which do not answer: without them use --gate COMMAND")
    }
    switch String(decoding: outcome.output, as: UTF8.self).split(separator: " ").last?.prefix(1) {
    case "1", "3": return .closed("the connection is metered")
    default: return .open
    }
  }
}
