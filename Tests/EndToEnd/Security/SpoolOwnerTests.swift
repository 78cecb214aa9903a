import Glibc
import TestSupport
import Testing

/// Root on another user's spool: `sudo spoolrun`, cron's and systemd's root.
@Suite(.enabled("needs root, to be several users") { try await Need.users.isMet() })
struct SpoolOwnerTests {
  /// A user without an account.
  private static let owner = 61_001

  private struct Foreign {
    let directory: TemporaryDirectory
    let spool: TemporarySpool

    init() async throws {
      directory = try TemporaryDirectory()
      spool = try TemporarySpool(in: directory.path)
      // Where the program is, another user may not look; it runs all the same, because it was started already.
      try await runTool(
        ["/bin/sh", "-euc", "chmod 755 .; chown -R \(owner):\(owner) spool"], directory: directory.path)
    }

    /// The files below the spool that do not belong to its owner.
    var strangers: [String] {
      filesBelow(spool.root).filter { fileStatus(spool.path($0)).map { Int($0.st_uid) } != owner }
    }
  }

  @Test func `root's commands leave nothing of root's`() async throws {
    let server = try simpleServer()
    let scene = try await Foreign()
    let spool = scene.spool
    func command(_ arguments: String...) async throws -> CommandResult {
      let result = try await spoolrun(arguments, environment: ["SPOOLRUN_SPOOL": spool.root])
      #expect(scene.strangers == [], "\(arguments)")
      return result
    }
    #expect(try await command("add", server.url("/a")).output == "a\n")
    #expect(fileStatus(spool.path("new/a")).map { Int($0.st_gid) } == Self.owner)
    for gesture in ["hold", "release"] { #expect(try await command(gesture, "a").status == .exited(0)) }
    #expect(try await command("add", server.url("/404")).output == "404\n")
    #expect(try await command("--once").status == .exited(1))
    #expect(spool.places(of: "a") == ["done/a"] && spool.payloads == ["a"])
    #expect(try await command("retry", "404").status == .exited(0))
    #expect(try await command("cancel", "--all").status == .exited(0))
    #expect(try await command("clean").status == .exited(0))
    #expect(try await command("init", spool.root).status == .exited(0))
    #expect(try await command("verify").status == .exited(0))
    #expect(try await command("status").status == .exited(0))
  }

  @Test func `the worker and its hooks have none of root's rights`() async throws {
    let server = try simpleServer()
    let scene = try await Foreign()
    let spool = scene.spool
    try #require(mkdir(spool.path("hooks"), 0o755) == 0)
    try writeFile(spool.path("hooks/done"), Array("#!/bin/sh\nid -u; id -g; id -G; echo $HOME\n".utf8))
    try #require(chmod(spool.path("hooks/done"), 0o755) == 0)
    try #require(chown(spool.path("hooks/done"), uid_t(Self.owner), gid_t(Self.owner)) == 0)
    try spool.drop("a", server.url("/a") + "\n")
    try #require(chown(spool.path("new/a"), uid_t(Self.owner), gid_t(Self.owner)) == 0)
    let result = try await spoolrun("--once", "-v", spool.root)
    #expect(result.status == .exited(0), "\(result)")
    let said = result.errors.split(separator: "\n").filter { $0.contains("hook-output") }.map {
      $0.split(separator: " ").last ?? ""
    }
    let id = "text=\(Self.owner)"
    #expect(said.map { $0.replacing("line=", with: "text=") } == ["\(id)", "\(id)", "\(id)", "text=/"], "\(result)")
  }

  /// Root's place in the file system is no help to it.
  @Test func `a spool that its owner cannot reach is refused`() async throws {
    let scene = try await Foreign()
    try #require(chmod(scene.directory.path, 0o700) == 0)
    let result = try await spoolrun("--once", scene.spool.root)
    #expect(result.status == .exited(66) && result.errors.contains("as user \(Self.owner), its owner"), "\(result)")
  }

  @Test func `root's own spool stays root's`() async throws {
    let spool = try TemporarySpool()
    #expect(try await spoolrun("add", "--spool", spool.root, "http://h/a").status == .exited(0))
    #expect(fileStatus(spool.path("new/a"))?.st_uid == 0)
  }
}
