import Glibc
import TestSupport
import Testing

/// Lines of a journal in a file that another user has dropped: nobody believes them.
@Suite(.enabled("needs root, to be several users") { try await Need.users.isMet() })
struct ForgedJournalTests {
  private let server: ScriptedServer
  private let spool: TemporarySpool

  init() throws {
    server = try simpleServer()
    spool = try TemporarySpool()
  }

  private static let lines = """
    started: 2026-11-21T03:00:00Z attempt=1 worker=forger.1.0000000a boot=x mirror=1 url=http://forged/x
    failed: 2026-11-21T03:00:41Z attempt=1 class=permanent code=cut at=0 fetched=12000000000000000000 reason=forged
     published:2026-11-21T03:00:42Z output=victim
    done: 2026-11-21T03:02:41Z attempts=2 output=forged bytes-fetched=12000000000000000000 seconds=9

    """

  /// As another user has written it some time ago.
  private func drop(_ name: String, _ text: String, in directory: String = "new") throws {
    let path = spool.path("\(directory)/\(name)")
    try writeFile(path, text)
    try #require(chown(path, 61_002, 0) == 0 && chmod(path, 0o644) == 0)
    try setModificationTime(path, secondsFromNow: -60)
  }

  private func shown() async throws -> String {
    var shown = ""
    for arguments in [["status", spool.root], ["status", spool.root, "a"], ["status", "--metrics", spool.root]] {
      shown += "\(try await spoolrun(arguments))\n"
    }
    let page = spool.path("page")
    try await spoolrun("report", "-o", page, spool.root).exits(0)
    return try shown + readText(page)
  }

  @Test(arguments: ["new", "hold", "partial", "failed", "cur"])
  func `they are not shown, and count nothing`(directory: String) async throws {
    try drop(directory == "cur" ? "a:h.1.0000000a" : "a", "\(server.url("/a"))\n\(Self.lines)", in: directory)
    let shown = try await shown()
    #expect(!shown.contains("forge") && !shown.contains("victim"), "\(shown)")
    #expect(!shown.contains("12000000000000000000"))
    #expect(!shown.contains("spoolrun_done_total{spool=\"\(spool.root)\"} 1"))
  }

  @Test(arguments: [false, true])
  func `no worker's file has them afterwards`(wasHeld: Bool) async throws {
    try drop("a", "\(server.url("/a"))\n\(Self.lines)")
    if wasHeld {
      for gesture in ["hold", "release"] {
        try await spoolrun(gesture, "--spool", spool.root, "a").exits(0)
      }
      try setModificationTime(spool.path("new/a"), secondsFromNow: -60)
    }
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && spool.payloads == ["a"], "\(result)")
    let text = try spool.text("done/a")
    #expect(!text.contains("forge") && text.hasPrefix(server.url("/a")) && text.contains("\ndone: "), "\(text)")
    #expect(try await !shown().contains("forge"))
  }

  /// The hook `resolve` refuses the forger's text, so the job never starts, which would void the line.
  @Test func `a forged publication keeps no other job waiting`() async throws {
    try spool.install("deliver", "exit 0")
    try spool.install("resolve", "exit 1")
    try spool.write("files/victim", "old")
    try drop("a", "resolve: x\noutput: z\nattempts: 1000\n\(Self.lines)")
    _ = try await spoolrun("--once", spool.root)
    #expect(spool.places(of: "a") == ["partial/a"])
    try spool.drop("b", "url: \(server.url("/b"))\noutput: victim\noverwrite: yes\n")
    let result = try await spoolrun("--once", "-v", spool.root)
    #expect(spool.places(of: "b") == ["done/b"], "\(result)")
  }
}
