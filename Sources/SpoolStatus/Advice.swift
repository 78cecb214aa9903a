package import Spool

/// What a person may do about a failure. Pure.
package struct Advice: Sendable, Equatable {
  /// One sentence.
  package let text: String
  /// Whether attempts fail until somebody does it. Otherwise it may be enough to wait.
  package let isUrgent: Bool
  private let needsURL: Bool

  /// - Parameter code: as a `failed:` line has it.
  package init(for code: String) {
    let row = FailureCode.row(of: code)
    text = row?.advice ?? "The last line of the job's file says what happened."
    isUrgent = row?.mayPassByItself != true
    needsURL = row?.needsURL == true
  }

  /// The command that a person gives when that is done, for a shell.
  package func command(for name: FileName, of spool: String) -> String {
    let command = ShellWords.command(needsURL ? "url" : "retry", name, of: spool)
    return needsURL ? command + " URL" : command
  }
}
