import Glibc
import TestSupport

/// 1 MiB without a pattern.
let payload: [UInt8] = (0..<1 << 20).map { UInt8(truncatingIfNeeded: ($0 &* $0) / 7 &+ $0 >> 3) }

/// A spool, and a server whose first answer stops halfway until the client goes.
final class Scene: Sendable {
  let spool: TemporarySpool
  let server: ScriptedServer

  /// - Parameter etag: the validator; nil for a server that has none.
  init(etag: String? = "\"1\"") throws {
    spool = try TemporarySpool()
    server = try ScriptedServer { request, reply in
      let fields = etag.map { ["ETag: \($0)"] } ?? []
      let start = request.rangeStart ?? 0
      let isPart = start > 0 && (request.value("If-Range") ?? etag) == etag
      let body = isPart ? payload[start...] : payload[...]
      let range = isPart ? ["Content-Range: bytes \(start)-\(payload.count - 1)/\(payload.count)"] : []
      try reply.head(isPart ? "206 Partial Content" : "200 OK", fields + range + ["Content-Length: \(body.count)"])
      guard !isPart, request.target.hasPrefix("/slow") else { return try reply.send(body) }
      try reply.send(body.prefix(body.count / 2))
      try reply.stall()
    }
  }

  /// A command on this spool, named by the environment.
  @discardableResult
  func spoolrun(_ arguments: String...) async throws -> CommandResult { try await spoolrun(arguments) }

  func spoolrun(_ arguments: [String]) async throws -> CommandResult {
    try await run([try productPath("spoolrun")] + arguments, environment: environment)
  }

  /// A shell's line, with the program as `$spoolrun` and the spool as its directory.
  func shell(_ line: String) async throws -> CommandResult {
    let variables = try environment.merging(["spoolrun": productPath("spoolrun")]) { $1 }
    return try await run(["/bin/sh", "-c", line], environment: variables, directory: spool.root)
  }

  var environment: [String: String] { testEnvironment.merging(["SPOOLRUN_SPOOL": spool.root]) { $1 } }

  /// A worker that watches.
  func watch(_ options: String...) throws -> RunningCommand {
    try RunningCommand([try productPath("spoolrun")] + options + ["-v", spool.root])
  }

  /// Runs `body` beside a worker that watches; afterwards the worker has to stop in good order.
  func withWorker(_ body: (RunningCommand) async throws -> Void) async throws -> CommandResult {
    let worker = try watch()
    do {
      try await body(worker)
    } catch {
      worker.send(signal: SIGKILL)
      throw error
    }
    worker.send(signal: SIGTERM)
    return try await worker.result()
  }

  /// The length of a job's data; nil when there is none.
  func length(_ name: String) -> Int? { fileStatus(spool.path("partial/\(name).part")).map { Int($0.st_size) } }

  /// Waits until half of the payload of `name` has come.
  func waitForHalf(_ name: String) async throws {
    try await waitUntil("half of \(name)") { self.length(name) == payload.count / 2 }
  }

  func exists(_ relative: String) -> Bool { fileStatus(spool.path(relative)) != nil }
}
