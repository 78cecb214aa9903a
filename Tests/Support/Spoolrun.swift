import Glibc

/// Starts the program under test. `prefix`: the command to run it behind, such as `unshare`.
package func startSpoolrun(
  _ arguments: [String], environment: [String: String] = [:], directory: String? = nil, prefix: [String] = [],
  timeout: Duration = untilItHangs
) throws -> RunningCommand {
  try RunningCommand(
    prefix + [try productPath("spoolrun")] + arguments, environment: testEnvironment.merging(environment) { $1 },
    directory: directory, timeout: timeout)
}

/// Runs the program under test to its end.
package func spoolrun(
  _ arguments: [String], environment: [String: String] = [:], directory: String? = nil, prefix: [String] = [],
  timeout: Duration = untilItHangs
) async throws -> CommandResult {
  try await startSpoolrun(
    arguments, environment: environment, directory: directory, prefix: prefix, timeout: timeout
  ).result()
}

package func spoolrun(
  _ arguments: String..., environment: [String: String] = [:], directory: String? = nil, prefix: [String] = [],
  timeout: Duration = untilItHangs
) async throws -> CommandResult {
  try await spoolrun(arguments, environment: environment, directory: directory, prefix: prefix, timeout: timeout)
}

/// Runs a shell's line with a terminal on its three descriptors, as script(1) gives it one. Needs ``Need/terminal``.
package func runInTerminal(
  _ line: String, environment: [String: String] = testEnvironment
) async throws -> CommandResult {
  try await run(["/usr/bin/script", "-qec", line, "/dev/null"], environment: environment)
}

/// The same before a server that sends the rest when the gate opens: as soon as the terminal has what is waited for,
/// however long the program stands still before it draws.
package func runInTerminal(
  _ line: String, environment: [String: String], open gate: Gate, when isShown: @escaping @Sendable (String) -> Bool
) async throws -> CommandResult {
  let here = try TemporaryDirectory()
  defer { withExtendedLifetime(here) {} }
  let screen = "\(here.path)/screen"
  let session = try RunningCommand(["/usr/bin/script", "-qefc", line, screen], environment: environment)
  @Sendable func shown() -> String { (try? readFile(screen)).map { String(decoding: $0, as: UTF8.self) } ?? "" }
  try await waitUntil("it is shown") { session.isFinished || isShown(shown()) }
  gate.open()
  return try await session.result()
}
