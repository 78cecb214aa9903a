import Glibc
import TestSupport

/// 1 MiB without a pattern.
let payload: [UInt8] = (0..<1 << 20).map { UInt8(truncatingIfNeeded: ($0 &* $0) / 7 &+ $0 >> 3) }

/// A spool, a server, and what works on them: commands, a shell, a worker.
final class Scene: Sendable {
  let spool: TemporarySpool
  let server: ScriptedServer
  private let directory: TemporaryDirectory

  init(_ script: @escaping ScriptedServer.Script) throws {
    spool = try TemporarySpool()
    server = try ScriptedServer(script)
    directory = try TemporaryDirectory()
    guard symlink(try productPath("spoolrun"), "\(directory.path)/spoolrun") == 0 else {
      throw TestSupportError("symlink", directory.path, errno: errno)
    }
  }

  /// The server has `payload` under every name; under `/slow…` its first answer stops halfway until the client goes.
  /// - Parameter etag: the validator; nil for a server that has none.
  convenience init(etag: String? = "\"1\"") throws {
    try self.init { request, reply in
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

  /// The server has whatever is asked for, with the target of the request as its content; but 404 for `/gone…`.
  static func echoing() throws -> Scene {
    try Scene { request, reply in
      if request.target.hasPrefix("/gone") { return try reply.respond("404 Not Found", body: []) }
      try reply.respond("200 OK", ["ETag: \"1\""], body: Array(request.target.utf8))
    }
  }

  // MARK: commands

  /// A command on this spool, named by the environment.
  @discardableResult
  func spoolrun(_ arguments: String...) async throws -> CommandResult { try await spoolrun(arguments) }

  func spoolrun(_ arguments: [String]) async throws -> CommandResult {
    try await TestSupport.spoolrun(arguments, environment: ["SPOOLRUN_SPOOL": spool.root])
  }

  /// A shell's line in the spool's directory, with the program as `$spoolrun` and the server as `$server`.
  func shell(_ line: String) async throws -> CommandResult {
    let more = ["SPOOLRUN_SPOOL": spool.root, "spoolrun": "\(tools)/spoolrun", "server": server.url("")]
    return try await run(
      ["/bin/bash", "-c", line], environment: testEnvironment.merging(more) { $1 }, directory: spool.root)
  }

  /// A directory for a test's own files, which has `spoolrun` in it.
  var tools: String { directory.path }

  /// An environment in which `spoolrun` is found by its name.
  var withProgramOnPath: [String: String] {
    testEnvironment.merging(["PATH": "\(tools):\(testEnvironment["PATH"] ?? "")"]) { $1 }
  }

  // MARK: a worker

  /// Runs `body` beside a worker that watches; afterwards the worker has to stop in good order.
  func withWorker(
    _ options: String..., timeout: Duration = untilItHangs, _ body: (RunningCommand) async throws -> Void
  ) async throws -> CommandResult {
    let worker = try startSpoolrun(["-v"] + options + [spool.root], timeout: timeout)
    do {
      try await body(worker)
    } catch {
      worker.send(signal: SIGKILL)
      throw error
    }
    return try await worker.stop()
  }

  /// Waits until a worker watches: until it runs what is dropped.
  func waitForWorker() async throws {
    try spool.drop("first", server.url("/first") + "\n")
    try await waitUntil("the worker runs") { self.isDone("first") }
  }

  /// Waits until half of the payload of `name` has come.
  func waitForHalf(_ name: String) async throws {
    try await waitUntil("half of \(name)") { self.length(name) == payload.count / 2 }
  }

  // MARK: what is there

  /// The length of a job's data; nil when there is none.
  func length(_ name: String) -> Int? { fileStatus(spool.path("partial/\(name).part")).map { Int($0.st_size) } }

  func exists(_ relative: String) -> Bool { fileStatus(spool.path(relative)) != nil }

  func isDone(_ name: String) -> Bool { exists("done/\(name)") }
}
