import Glibc

/// A shell in a window of tmux(1): a terminal that keys can be sent to, and whose screen can be read. Needs
/// ``Need/tmux``.
package final class Tmux: Sendable {
  private let directory: TemporaryDirectory
  private let server: RunningCommand
  private let prompt = "ready$"

  /// - Parameters:
  ///   - columns: of the window, whose last row is the terminal's.
  ///   - prefix: the command to run the shell behind, such as `setpriv`.
  package init(columns: Int, rows: Int, prefix: [String] = []) async throws {
    directory = try TemporaryDirectory()
    let environment = testEnvironment.merging(["TERM": "xterm", "HOME": directory.path]) { $1 }
    let socket = "\(directory.path)/tmux"
    server = try RunningCommand(["/usr/bin/tmux", "-S", socket, "-f", "/dev/null", "-D"], environment: environment)
    try await waitUntil("tmux listens") { fileStatus(socket) != nil }
    let shell = prefix + ["/usr/bin/env", "PS1=\(prompt) ", "/bin/bash", "--norc", "--noprofile", "--noediting", "-i"]
    try await tmux(
      ["new-session", "-d", "-x", "\(columns)", "-y", "\(rows)"] + shell, ["set-option", "-g", "status", "off"])
    try await tmux(["resize-window", "-x", "\(columns)", "-y", "\(rows)"])
    try await waitForPrompt()
  }

  deinit { server.send(signal: SIGKILL) }

  @discardableResult private func tmux(_ commands: [String]...) async throws -> String {
    let words = commands.joined(separator: [";"])
    let result = try await run(["/usr/bin/tmux", "-S", "\(directory.path)/tmux"] + words)
    guard result.status == .exited(0) else { throw TestSupportError("tmux \(words): \(result)") }
    return result.output
  }

  /// Presses keys, by the names that tmux has for them: `C-c`, `Enter`, `Up`, `j`.
  package func press(_ keys: String...) async throws { try await tmux(["send-keys"] + keys) }

  /// Types a line, and ends it.
  package func type(_ line: String) async throws { try await tmux(["send-keys", "-l", line], ["send-keys", "Enter"]) }

  /// Gives the window another size.
  package func resize(columns: Int, rows: Int) async throws {
    try await tmux(["resize-window", "-x", "\(columns)", "-y", "\(rows)"])
  }

  /// The lines on the screen, without spaces at their ends.
  package func screen() async throws -> [String] {
    try await tmux(["capture-pane", "-p"]).split(separator: "\n", omittingEmptySubsequences: false).dropLast().map {
      String($0)
    }
  }

  /// What tmux says of its window, such as `#{cursor_flag}`.
  package func value(_ format: String) async throws -> String {
    String(try await tmux(["display-message", "-p", format]).dropLast())
  }

  /// Waits until the screen is as `condition` wants it.
  @discardableResult package func wait(
    for what: String, _ condition: @Sendable ([String]) -> Bool
  ) async throws -> [String] {
    let deadline = ContinuousClock.now + untilItHangs * patience
    while true {
      let lines = try await screen()
      if condition(lines) { return lines }
      guard ContinuousClock.now < deadline else {
        throw TestSupportError("waited in vain: \(what); the screen is:\n\(lines.joined(separator: "\n"))")
      }
      try await Task.sleep(for: .milliseconds(20))
    }
  }

  /// Waits until the shell asks for a line.
  @discardableResult package func waitForPrompt() async throws -> [String] {
    try await wait(for: "the prompt") { [prompt] in $0.last { !$0.isEmpty } == prompt }
  }
}
