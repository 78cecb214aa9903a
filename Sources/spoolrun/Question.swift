internal import Glibc
internal import Spool

/// A question before something that cannot be undone.
enum Question {
  /// Whether there is a person to ask.
  static var canBeAsked: Bool { isatty(STDIN_FILENO) == 1 && Terminal.isErrorTerminal }

  /// - Returns: whether the answer begins with `y`. The end of the input is no answer.
  static func ask(_ text: String) -> Bool {
    Terminal.write("spoolrun: \(text) [y/N] ", to: STDERR_FILENO)
    return readLine().map { $0.lowercasedASCII.begins(with: "y") } ?? false
  }
}
