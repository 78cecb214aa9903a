import Glibc
import TestSupport
import Testing

/// A proxy that serves nobody holds back the whole queue, and costs no job anything.
@Suite(.enabled("needs tinyproxy") { try await Need.areMet(.program("tinyproxy")) })
struct ProxyOutageTests {
  private static let jobs = 30
  private let origin: ScriptedServer
  private let spool: TemporarySpool
  private let directory: TemporaryDirectory
  private let port: UInt16

  init() throws {
    origin = try simpleServer()
    spool = try TemporarySpool()
    directory = try TemporaryDirectory()
    port = try freePort()
    for number in 1...Self.jobs { try spool.drop("j\(number)", "url: \(origin.url("/\(number)x"))\nattempts: 1\n") }
  }

  private func startProxy(_ line: String = "") throws -> RunningCommand {
    try writeFile(
      "\(directory.path)/conf",
      "Port \(port)\nListen 127.0.0.1\nTimeout 60\nLogFile \"\(directory.path)/log\"\n\(line)\n")
    return try RunningCommand(["/usr/bin/tinyproxy", "-d", "-c", "\(directory.path)/conf"])
  }

  /// The jobs that have been tried.
  private func tried() throws -> [String] {
    try (1...Self.jobs).map { "j\($0)" }.filter { name in
      try spool.places(of: name).contains { try spool.lines($0).contains { $0.key == "started" } }
    }
  }

  private func environment(_ user: String = "") -> [String: String] {
    ["http_proxy": "http://\(user)127.0.0.1:\(port)", "no_proxy": "localhost"]
  }

  /// 407: two jobs find out at once, and the rest keep their place; a job that needs no proxy runs.
  @Test func aProxyThatWantsAPassword() async throws {
    let proxy = try startProxy("BasicAuth us3r pa55word")
    defer { proxy.send(signal: SIGTERM) }
    try await waitUntil("tinyproxy listens") { isListening(port) }
    try spool.drop("direct", "url: http://localhost:\(origin.port)/direct\n")
    let result = try await spoolrun("--once", "-j", "2", spool.root, environment: environment()).exits(75)
    #expect(spool.places(of: "direct") == ["done/direct"], "\(result)")
    let tried = try tried()
    // One more where the run takes longer than the first rest, and one for each that is twice as long.
    #expect((1...5).contains(tried.count), "\(tried)")
    for name in tried {
      let record = try spool.lastFailure("partial/\(name)")
      #expect(record["code"] == "proxy" && record["burned"] == "no", "\(record)")
    }
    let lines = result.errors.split(separator: "\n")
    #expect(lines.count == 1 && lines[0].contains("127.0.0.1:\(port) asks for a user name and password"), "\(lines)")
    let status = try await spoolrun("status", spool.root)
    #expect(status.output.contains("127.0.0.1:\(port) asks for a user name and password"), "\(status)")

    let verbose = try await spoolrun("--once", "-v", "-j", "2", spool.root, environment: environment())
    let end = verbose.errors.split(separator: "\n").first { $0.contains(" waiting ") } ?? ""
    #expect(verbose.exitStatus == 75 && end.contains("asks for a user name"), "\(verbose)")

    for name in try self.tried() { try spool.makeDue(name) }
    try await spoolrun("--once", spool.root, environment: environment("us3r:pa55word@")).exits(0)
    #expect(names(in: spool.path("done")).count == Self.jobs + 1)
  }

  /// A proxy that is down: after a pause, one job finds out that it is back, and all go on.
  @Test(arguments: ["127.0.0.1", "localhost"])
  func aProxyThatComesBack(host: String) async throws {
    let worker = try startSpoolrun(
      ["-j", "3", spool.root], environment: ["http_proxy": "\(host):\(port)", "no_proxy": ""])
    defer { worker.send(signal: SIGTERM) }
    try await waitUntil("a job has failed") {
      names(in: spool.path("partial")).contains { !$0.hasSuffix(".part") }
    }
    let proxy = try startProxy()
    defer { proxy.send(signal: SIGTERM) }
    try await waitUntil("all are done") { names(in: spool.path("done")).count == Self.jobs }
    let result = try await worker.stop().exits(0)
    let lines = result.errors.split(separator: "\n")
    #expect(lines.count == 2 && lines.last?.contains("serves again") == true, "\(lines)")
    let failures = try (1...Self.jobs).map { try spool.lines("done/j\($0)").count { $0.key == "failed" } }
    // One at a time, for as long as the proxy takes to start.
    #expect(failures.reduce(0, +) <= Self.jobs / 2, "\(failures)")
  }
}
