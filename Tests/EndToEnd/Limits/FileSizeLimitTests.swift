import Glibc
import TestSupport
import Testing

/// A limit of file sizes, setrlimit(2), which would end the whole worker by SIGXFSZ.
@Suite struct FileSizeLimitTests {
  private let body = [UInt8](repeating: 7, count: 600_000)
  private let limit = 256 << 10

  /// dash counts in blocks of 512 bytes (POSIX, ulimit).
  private var limiting: [String] { ["/bin/sh", "-c", "ulimit -f \(limit / 512) && exec \"$@\"", "sh"] }

  private func server() throws -> ScriptedServer {
    try ScriptedServer { [body] request, reply in
      if request.target == "/small" { return try reply.respond("200 OK", body: [1]) }
      let start = request.rangeStart ?? 0
      try reply.head(
        start > 0 ? "206 Partial Content" : "200 OK",
        ["ETag: \"v1\"", "Content-Length: \(body.count - start)"]
          + (start > 0 ? ["Content-Range: bytes \(start)-\(body.count - 1)/\(body.count)"] : []))
      try reply.send(body[start...])
    }
  }

  @Test func oneThatDoesNotFitHarmsNoOther() async throws {
    let server = try server()
    let spool = try TemporarySpool()
    try spool.drop("large", "url: \(server.url("/large"))\nurl: \(server.url("/mirror"))\n")
    for number in 0..<3 { try spool.drop("\(number)", "url: \(server.url("/small"))\noutput: \(number)\n") }
    try await spoolrun("--once", "--jobs", "1", spool.root, prefix: limiting).exits(75)
    #expect(spool.payloads.sorted() == ["0", "1", "2"])
    let record = try spool.lastFailure("partial/large")
    #expect(record["code"] == "too-large-here" && record["class"] == "temporary", "\(record)")
    #expect(record["reason"]?.contains("at most \(limit) bytes") == true && record["burned"] == nil, "\(record)")
    #expect(server.requests(for: "/mirror").isEmpty, "no other mirror can help")
    // What is there stays, and is gone on with when the limit is raised.
    let length = spool.length("partial/large.part")
    #expect(length > 0 && length <= limit && record["at"] == "\(length)")
    try spool.makeDue("large")
    try await spool.once(exits: 0)
    #expect(try spool.payload("large") == body)
    #expect(server.requests(for: "/large").map(\.rangeStart) == [nil, resumePoint(after: length)])
  }

  /// A hook has not asked for that.
  @Test func hooksDieOfItAsEver() async throws {
    let server = try server()
    let spool = try TemporarySpool()
    try spool.install(
      "done", "sh -c 'exec head -c 600000 /dev/zero >\"$SPOOLRUN_SPOOL/big\"'; echo $? >\"$SPOOLRUN_SPOOL/end\"")
    try spool.drop("a", "\(server.url("/small"))\n")
    try await spoolrun("--once", spool.root, prefix: limiting).exits(0)
    #expect(try readFile(spool.path("end")) == Array("\(128 + SIGXFSZ)\n".utf8))
  }
}
