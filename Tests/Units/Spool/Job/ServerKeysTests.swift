import Testing

@testable import Spool

/// The keys of `defaults` that say how much is asked of servers.
@Suite struct ServerKeysTests {
  @Test func areReadAndWritten() {
    let text = "per-host: 3\nper-host@slow.example: 1\npace: 2/s\npace@slow.example: 90/min\n"
    let read = defaults(text.replacing("@slow", with: "@SLOW"))
    #expect(read.defect == nil && read.request.text == text)
    let servers = read.request.servers
    #expect(servers.perHost.value(for: "slow.example") == 1 && servers.perHost.value(for: "other") == 3)
    #expect(servers.pace.value(for: "slow.example")?.milliseconds == 667)
    #expect(servers.pace.value(for: "other")?.milliseconds == 500)
  }

  @Test func theLastRuleCounts() {
    let servers = defaults("pace@h: 1/s\npace@h: 1/min\n").request.servers
    #expect(servers.pace.value(for: "h")?.milliseconds == 60_000 && servers.pace.value(for: "other") == nil)
  }

  @Test(
    arguments: [
      "per-host: 0", "per-host: 1001", "per-host: x", "per-host@: 2", "per-host@h:80: 2", "pace: 2", "pace: 0/s",
      "pace: 1001/s", "pace: 2/week", "pace: /s", "pace: 2/", "pace@a/b: 2/s", "pace: 2/s/s",
    ])
  func areRefused(line: String) { #expect(defaults("\(line)\n").defect != nil) }

  /// A dropper has no say.
  @Test(arguments: ["per-host: 2", "pace: 2/s", "per-host@h: 2"]) func noneIsAJobs(line: String) {
    #expect(parsed("https://h/a\n\(line)\n").defect?.reason.contains("`defaults` only") == true)
    #expect(parsed("https://h/a\n").request.inheriting(defaults("\(line)\n").request).servers == ServerKeys())
  }
}
