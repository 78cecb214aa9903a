import Glibc
import TestSupport
import Testing

/// Commands about jobs that name no spool, after gets that are not done; and jobs by parts of their names.
@Suite struct OwnSpoolsTests: GetScene {
  let home: TemporaryDirectory

  init() throws { home = try Self.makeHome() }

  private func command(_ arguments: String..., directory: String? = nil) async throws -> CommandResult {
    var environment = environment
    environment["SPOOLRUN_SPOOL"] = ""
    return try await startSpoolrun(arguments, environment: environment, directory: directory ?? here).result()
  }

  private var elsewhere: String { "\(home.path)/elsewhere" }
  private func waiting(_ directory: String) -> Int { names(in: "\(directory)/.spoolrun/partial").count }

  /// Jobs of `503` and `503.tar` here, and one of `other503` elsewhere.
  private func leave() async throws {
    let server = try ScriptedServer { _, reply in try reply.respond("503 Service Unavailable", body: []) }
    #expect(try await get("--once", server.url("/503"), server.url("/503.tar")).status == .exited(75))
    try #require(mkdir(elsewhere, 0o755) == 0)
    #expect(try await get("--once", "-o", "../elsewhere/", server.url("/other503")).status == .exited(75))
    #expect(waiting(here) == 2 && waiting(elsewhere) == 1)
  }

  @Test func `status, hold and cancel find the jobs of a person's gets`() async throws {
    let none = try await command("status")
    #expect(none.status == .exited(66), "\(none)")
    try await leave()
    let status = try await command("status")
    #expect(status.status == .exited(0), "\(status)")
    #expect(status.output.contains("503.tar-") && status.output.contains("other503-"), "\(status)")
    let json = try await command("status", "--json")
    #expect(json.status == .exited(64) && json.errors.contains("name one with --spool"), "\(json)")
    let story = try await command("status", "other", directory: "/")
    #expect(story.status == .exited(0) && story.output.contains("other503-"), "\(story)")

    let hold = try await command("hold", "other", directory: "/")
    #expect(hold.status == .exited(0) && hold.errors.contains("this is about your gets: "), "\(hold)")
    #expect(names(in: "\(elsewhere)/.spoolrun/hold").count == 1 && waiting(here) == 2)
    #expect(try await command("cancel", "--all", "--yes", directory: "/").status == .exited(0))
    #expect(fileStatus("\(elsewhere)/.spoolrun") == nil && fileStatus(spool) == nil, "nothing is left to do")
  }

  @Test func `a spool that is named, or called spool, comes first`() async throws {
    try await leave()
    #expect(try await spoolrun("init", "\(here)/spool").status == .exited(0))
    #expect(try await command("hold", "503.tar").status == .exited(1))
    #expect(try await command("hold", "--spool", ".spoolrun", "503.tar").status == .exited(0))
    #expect(names(in: "\(spool)/hold").count == 1)
  }

  @Test func `the beginning of a name is enough if no other begins so, and patterns mean all`() async throws {
    try await leave()
    let several = try await command("hold", "503")
    #expect(several.status == .exited(1) && several.errors.contains("503: several jobs begin so: 503-"), "\(several)")
    #expect(waiting(here) == 2)
    #expect(try await command("hold", "503.").status == .exited(0))
    #expect(names(in: "\(spool)/hold").count == 1 && waiting(here) == 1)
    #expect(try await command("release", "503*").status == .exited(0))
    #expect(names(in: "\(spool)/new").count == 1)
    let unknown = try await command("hold", "x*")
    #expect(unknown.status == .exited(1) && unknown.errors.contains("x*: no such job"), "\(unknown)")
  }

  /// As on a disk that is gone, or in a directory that may no longer be entered.
  @Test func `one that cannot be opened is named, and the others are shown`() async throws {
    try await leave()
    let place = "/" + String(repeating: "x", count: 300)
    try writeFile("\(personal)/gets/0", Array("inode=1 token=a directory=\(place)\n".utf8))
    let status = try await command("status")
    #expect(status.status == .exited(0) && status.output.contains("other503-"), "\(status)")
    #expect(status.errors.contains("\(place)/.spoolrun is left out: "), "\(status)")
  }

  /// What is not known to be the person's own is not touched.
  @Test func `a spool from elsewhere is none of the person's`() async throws {
    try await leave()
    try await runTool(["/bin/cp", "-a", ".spoolrun", "../copy"], directory: here)
    try #require(rename(spool, "\(here)/was") == 0 && rename("\(home.path)/copy", spool) == 0)
    let status = try await command("status")
    #expect(!status.output.contains("503.tar-") && status.output.contains("other503-"), "\(status)")
  }
}
