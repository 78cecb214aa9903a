import Glibc
import TestSupport

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
    if start == 0 {
      try reply.send(body[start..<body.count / 2])
      try reply.stall(until: gate)
    }
    try reply.send(body[(start == 0 ? body.count / 2 : start)...])
  }
}

/// For a job that a test holds as long as it likes.
let patient = "timeout: 1h\n"

/// A worker that holds half of job `a` until the gate opens.
/// - Parameters:
///   - more: lines of the job beside its URL.
///   - spool: where the job is; nil for a spool of its own.
///   - place: where the worker sees that spool, if not where it is.
///   - prefix: the command to run the worker behind.
func startHalfway(
  _ more: String = "", in spool: TemporarySpool? = nil, at place: String? = nil, _ options: [String] = ["--once"],
  prefix: [String] = []
) async throws -> (spool: TemporarySpool, server: ScriptedServer, worker: RunningCommand, gate: Gate) {
  let gate = try Gate()
  let server = try halfwayServer(halfwayBody, gate: gate)
  let spool = try spool ?? TemporarySpool()
  try spool.drop("a", "\(server.url("/a"))\n\(patient)\(more)")
  let worker = try startSpoolrun(options + [place ?? spool.root], prefix: prefix)
  do { try await waitForHalf(in: spool) } catch {
    worker.send(signal: SIGKILL)
    throw error
  }
  return (spool, server, worker, gate)
}

/// Waits until half of a job's data is there, as from ``halfwayServer(_:gate:)``.
func waitForHalf(of job: String = "a", in spool: TemporarySpool) async throws {
  try await waitUntil("half of it is there") { spool.length("partial/\(job).part") == halfwayBody.count / 2 }
}

let halfwayBody: [UInt8] = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 >> 4 ^ $0) }

/// Serves one file for every path, which takes about a second.
func slowServer() throws -> ScriptedServer {
  try ScriptedServer { _, reply in
    let body = [UInt8](repeating: 0x78, count: 60_000)
    try reply.head("200 OK", ["Content-Length: \(body.count)"])
    try reply.drip(body, piece: 4000, milliseconds: 70)
  }
}
