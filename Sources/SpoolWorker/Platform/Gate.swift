internal import Spool
internal import SystemPackage

/// A command that decides whether jobs may start now: the gate is open if its exit status is 0.
package struct Gate: Sendable {
  /// The option that set it, for messages.
  private let option: String
  /// For `/bin/sh -c`.
  private let command: String

  /// How long an answer is valid, in milliseconds.
  static let validity: Int64 = 10_000
  /// In seconds.
  private static let timeLimit = 30

  /// - Parameter command: a shell command.
  package init(_ command: String) { self.init(option: "--gate", command: command) }

  private init(option: String, command: String) {
    self.option = option
    self.command = command
  }

  /// Closed while NetworkManager reports or guesses that the connection is metered: the property Metered of
  /// org.freedesktop.NetworkManager is 1 for yes and 3 for "guess yes" (NMMetered).
  package static let unmeteredOnly = Gate(
    option: "--unmetered-only",
    command: """
      service=org.freedesktop.NetworkManager
      answer=$(busctl --system get-property $service /org/freedesktop/NetworkManager $service Metered 2>/dev/null) || {
        echo 'NetworkManager and busctl are needed, and do not answer; use --gate COMMAND instead'
        exit 127
      }
      case $answer in
        'u 1' | 'u 3') echo 'the connection is metered'; exit 1 ;;
      esac
      """)

  enum Answer: Sendable, Equatable {
    case open
    case closed(String)
    /// It could not be asked. The text says what is wrong and what to do.
    case broken(String)
  }

  /// - Parameter stop: stops the command.
  func ask(_ stop: ChildStop) async -> Answer {
    let outcome: ChildProcess.Outcome
    do throws(Errno) {
      outcome = try await ChildProcess(
        arguments: ["/bin/sh", "-c", command], seconds: Self.timeLimit, stop: stop
      ).run()
    } catch {
      return .broken("\(option): /bin/sh cannot be run: \(error)")
    }
    switch outcome.end {
    case .exited(0): return .open
    // sh could not find or run the command (POSIX, sh, EXIT STATUS).
    case .exited(126), .exited(127): return .broken("\(option): the command cannot be run: \(outcome.reason)")
    default: return .closed("\(option): \(outcome.reason)")
    }
  }
}
