import Glibc
import Synchronization
import TestSupport
import Testing

/// Starts the program under test.
func start(
  _ arguments: [String], environment: [String: String] = [:], directory: String? = nil, prefix: [String] = []
) throws -> RunningCommand {
  let argv = prefix + [try productPath("spoolrun")] + arguments
  return try RunningCommand(argv, environment: testEnvironment.merging(environment) { $1 }, directory: directory)
}

/// Runs the program under test to its end.
func spoolrun(
  _ arguments: String..., environment: [String: String] = [:], directory: String? = nil, prefix: [String] = []
) async throws -> CommandResult {
  try await start(arguments, environment: environment, directory: directory, prefix: prefix).result()
}

extension CommandResult {
  var exitStatus: Int32? {
    if case .exited(let status) = status { status } else { nil }
  }
}

/// Serves the same few bytes for every path; a path `/NNN` gets that status instead.
func simpleServer(_ body: [UInt8] = Array("payload\n".utf8)) throws -> ScriptedServer {
  try ScriptedServer { request, reply in
    let name = request.target.split(separator: "?")[0].dropFirst()
    if let status = Int(name.prefix(3)), name.count == 3 {
      try reply.respond("\(status) Said so", body: Array("no".utf8))
    } else {
      try reply.respond("200 OK", ["ETag: \"v1\""], body: body)
    }
  }
}

/// Sends the head and the first half of `body`, then holds until the gate opens; honours ranges.
func halfwayServer(_ body: [UInt8], gate: Gate) throws -> ScriptedServer {
  try ScriptedServer { request, reply in
    let start = request.rangeStart ?? 0
    let range = start > 0 ? ["Content-Range: bytes \(start)-\(body.count - 1)/\(body.count)"] : []
    try reply.head(
      start > 0 ? "206 Partial Content" : "200 OK", ["ETag: \"v1\"", "Content-Length: \(body.count - start)"] + range)
    if start < body.count / 2 {
      try reply.send(body[start..<body.count / 2])
      try reply.stall(until: gate)
    }
    try reply.send(body[max(start, body.count / 2)...])
  }
}

/// For a job that a test holds as long as it likes.
let patient = "timeout: 1h\n"

/// A worker that holds half of job `a` until the gate opens.
/// - Parameter more: lines of the job beside its URL.
func startHalfway(_ more: String = "") async throws -> (
  spool: TemporarySpool, server: ScriptedServer, worker: RunningCommand, gate: Gate
) {
  let gate = try Gate()
  let server = try halfwayServer(halfwayBody, gate: gate)
  let spool = try TemporarySpool()
  try spool.drop("a", "\(server.url("/a"))\n\(patient)\(more)")
  let worker = try start(["--once", spool.root])
  try await waitUntil("half of it is there") { spool.length("partial/a.part") == halfwayBody.count / 2 }
  return (spool, server, worker, gate)
}

let halfwayBody: [UInt8] = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 >> 4 ^ $0) }

extension TemporarySpool {
  func length(_ relative: String) -> Int { Int(fileStatus(path(relative))?.st_size ?? -1) }

  /// The one claim in `cur/`.
  func claim(of job: String) throws -> String {
    let claims = places(of: job).filter { $0.hasPrefix("cur/") }
    guard claims.count == 1 else { throw TestSupportError("\(claims.count) claims of \(job)") }
    return claims[0]
  }

  func lastFailure(_ relative: String) throws -> JobLine {
    guard let line = try lines(relative).last(where: { $0.key == "failed" }) else {
      throw TestSupportError("no record of a failure in \(relative)")
    }
    return line
  }

  func move(_ from: String, _ to: String) throws {
    guard rename(path(from), path(to)) == 0 else { throw TestSupportError("rename \(from)", to, errno: errno) }
  }
}

/// How many are inside at a time, and the most there ever were.
final class Gauge: Sendable {
  private let state = Mutex((now: 0, most: 0, total: 0))
  func enter() {
    state.withLock { state in
      state.now += 1
      state.total += 1
      state.most = max(state.most, state.now)
    }
  }
  func leave() { state.withLock { $0.now -= 1 } }
  var now: Int { state.withLock { $0.now } }
  var most: Int { state.withLock { $0.most } }
  var total: Int { state.withLock { $0.total } }
}
