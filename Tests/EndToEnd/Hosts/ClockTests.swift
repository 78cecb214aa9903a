import Glibc
import TestSupport
import Testing

/// A host whose clock is ten minutes off, on a file system that has its own: faketime(1) shifts the worker's.
@Suite struct ClockTests {
  private func run(_ spool: String, minutes: Int) async throws -> CommandResult {
    let sign = minutes < 0 ? "" : "+"
    return try await TestSupport.run(
      ["/usr/bin/faketime", "-m", "-f", "\(sign)\(minutes)m", productPath("spoolrun"), "--once", "-v", spool],
      environment: testEnvironment.merging(["NO_FAKE_STAT": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"]) { $1 })
  }

  @Test(
    .enabled("needs bindfs and faketime") { try await Need.areMet(.bindfs, .program("faketime")) },
    arguments: [10, -10])
  func dueTimesAreThoseOfTheFileSystem(minutes: Int) async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    let mount = try await BindMount(spool.root)
    let now = Glibc.time(nil)
    try spool.drop("again", "\(server.url("/500"))\n# complete\n")
    // Due for a while, and not due for a while.
    for (name, ahead) in [("due", -60), ("later", 120)] {
      try spool.write("partial/\(name)", "\(server.url("/\(name)"))\n")
      try setModificationTime(spool.path("partial/\(name)"), to: now + ahead)
    }
    try await run(mount.path, minutes: minutes).exits(75)
    #expect(spool.places(of: "due") == ["done/due"])
    #expect(spool.places(of: "later") == ["partial/later"])
    // The first delay is 48 to 72 s.
    let retry = Int(try #require(fileStatus(spool.path("partial/again"))).st_mtim.tv_sec)
    #expect(retry >= now + 40 && retry <= Glibc.time(nil) + 80, "\(retry - now)")
  }

  @Test(
    .enabled("needs bindfs and faketime") { try await Need.areMet(.bindfs, .program("faketime")) },
    arguments: [(10, 300, true), (-10, -300, false)])
  func expiryAsWell(minutes: Int, ahead: Int, runs: Bool) async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    let mount = try await BindMount(spool.root)
    var time = Glibc.time(nil) + ahead
    var parts = tm()
    gmtime_r(&time, &parts)
    var text = [CChar](repeating: 0, count: 32)
    strftime(&text, text.count, "%Y-%m-%dT%H:%M:%SZ", &parts)
    let expires = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    try spool.drop("a", "\(server.url("/a"))\nexpires: \(expires)\n# complete\n")
    let result = try await run(mount.path, minutes: minutes)
    #expect(result.exitStatus == (runs ? 0 : 1), "\(result)")
    #expect(spool.places(of: "a") == [runs ? "done/a" : "failed/a"])
  }
}
