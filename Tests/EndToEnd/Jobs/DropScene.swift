import Glibc
import TestSupport

/// A spool with a worker that watches it, and a server that has whatever is asked for: its own target as the body.
final class DropScene: Sendable {
  let spool: TemporarySpool
  let server: ScriptedServer
  let worker: RunningCommand

  init(timeout: Duration = .seconds(60)) async throws {
    spool = try TemporarySpool()
    server = try ScriptedServer { request, reply in
      try reply.respond("200 OK", ["ETag: \"1\""], body: Array(request.target.utf8))
    }
    worker = try RunningCommand([try productPath("spoolrun"), "-v", spool.root], timeout: timeout)
    // It watches once it runs what is dropped.
    try spool.drop("first", server.url("/first") + "\n")
    try await waitUntil("the worker runs") { self.exists("done/first") }
  }

  deinit { worker.send(signal: SIGKILL) }

  func exists(_ relative: String) -> Bool { fileStatus(spool.path(relative)) != nil }

  /// A shell's line in the spool's directory, with the server as `$server`.
  func shell(_ line: String) async throws -> CommandResult {
    let variables = testEnvironment.merging(["server": server.url("")]) { $1 }
    return try await run(["/bin/bash", "-c", line], environment: variables, directory: spool.root)
  }

  /// Ends the worker in good order.
  func finish() async throws -> CommandResult {
    worker.send(signal: SIGTERM)
    return try await worker.result()
  }
}
