import Glibc
import TestSupport
import Testing

/// A job's file with two names in the spool, as ln(1) or a power cut leaves it: one of them goes, and the job runs.
@Suite struct LinkedJobTests {
  @Test(arguments: [("partial/a", "partial/a~2"), ("new/a", "partial/a"), ("new/a", "urgent/a"), ("new/a", "new/a~2")])
  func twoNames(one: String, other: String) async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    try spool.write(one, "url: \(server.url("/a"))\n")
    try #require(link(spool.path(one), spool.path(other)) == 0)
    try setModificationTime(spool.path(one), secondsFromNow: -60)
    let result = try await spoolrun("--once", "-v", spool.root)
    #expect(result.status == .exited(0) && spool.names("done").count == 1, "\(result)")
    #expect(server.requests.count == 1 && spool.payloads.count == 1)
  }

  @Test func aSubscriptionThatIsAlsoDropped() async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    try spool.write("new/s", "url: \(server.url("/s"))\nevery: 1h\nentries: file\n")
    mkdir(spool.path("standing"), 0o700)
    try #require(link(spool.path("new/s"), spool.path("standing/s")) == 0)
    // For 10 s somebody may be moving it.
    while !spool.names("new").isEmpty {
      _ = try await spoolrun("--once", spool.root)
      try await Task.sleep(for: .milliseconds(500))
    }
    try await spool.once(exits: 0)
    #expect(spool.names("standing") == ["s"] && server.requests.count > 0)
  }
}
