import TestSupport

/// Runs the program under test to its end.
func spoolrun(_ arguments: String..., timeout: Duration = .seconds(30)) async throws -> CommandResult {
  try await spoolrun(arguments, timeout: timeout)
}

func spoolrun(_ arguments: [String], timeout: Duration = .seconds(30)) async throws -> CommandResult {
  try await run([try productPath("spoolrun"), "run"] + arguments, timeout: timeout)
}
