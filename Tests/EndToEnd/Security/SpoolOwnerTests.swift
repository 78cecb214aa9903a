import Glibc
import TestSupport
import Testing

/// Root on another user's spool: `sudo spoolrun`, cron's and systemd's root.
@Suite(.enabled("needs root, to be several users") { try await Need.users.isMet() })
struct SpoolOwnerTests {
  private let server: ScriptedServer

  init() throws { server = try simpleServer() }

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
    let scene = try await Foreign()
    let spool = scene.spool
    func command(_ arguments: String...) async throws -> CommandResult {
      let result = try await spoolrun(arguments, environment: ["SPOOLRUN_SPOOL": spool.root])
      #expect(scene.strangers == [], "\(arguments)")
      return result
    }
    #expect(try await command("add", server.url("/a")).output == "a\n")
    #expect(fileStatus(spool.path("new/a")).map { Int($0.st_gid) } == Self.owner)
    for gesture in ["hold", "release"] { try await command(gesture, "a").exits(0) }
    #expect(try await command("add", server.url("/404")).output == "404\n")
    try await command("--once").exits(1)
    #expect(spool.places(of: "a") == ["done/a"] && spool.payloads == ["a"])
    try await command("retry", "404").exits(0)
    try await command("cancel", "--all").exits(0)
    try await command("clean").exits(0)
    try await command("init", spool.root).exits(0)
    try await command("verify").exits(0)
    try await command("status").exits(0)
  }

  @Test func `the worker and its hooks have none of root's rights`() async throws {
    let scene = try await Foreign()
    let spool = scene.spool
    try #require(mkdir(spool.path("hooks"), 0o755) == 0)
    try spool.write("hooks/done", "#!/bin/sh\nid -u; id -g; id -G; echo $HOME\n")
    try #require(chmod(spool.path("hooks/done"), 0o755) == 0)
    try #require(chown(spool.path("hooks/done"), uid_t(Self.owner), gid_t(Self.owner)) == 0)
    try spool.drop("a", server.url("/a") + "\n")
    try #require(chown(spool.path("new/a"), uid_t(Self.owner), gid_t(Self.owner)) == 0)
    let result = try await spool.once("-v", exits: 0)
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
    try await spoolrun("--once", scene.spool.root).exits(66, saying: "as user \(Self.owner), its owner")
  }

  // MARK: what is opened

  private func asUser(_ user: Int, _ arguments: [String]) async throws -> CommandResult {
    // The program is opened as root: the user may not reach it.
    let script = "exec 3<\"$0\"; exec setpriv --reuid=\(user) --regid=\(user) --clear-groups /proc/self/fd/3 \"$@\""
    return try await run(["/bin/sh", "-c", script, productPath("spoolrun")] + arguments)
  }

  /// Another user's own directory, whatever its mode.
  @Test func `nobody works on a stranger's spool, and others may drop`() async throws {
    let scene = try await Foreign()
    let spool = scene.spool.root
    try await runTool(["/bin/chmod", "-R", "777", spool])
    for arguments in [["--once", spool], ["hold", "--spool", spool, "--all"], ["clean", spool]] {
      let result = try await asUser(61_002, arguments).exits(66)
      #expect(result.errors.contains("belongs to user 61001, and this is user 61002"), "\(result)")
    }
    try await asUser(61_002, ["add", "--spool", spool, "http://h/a"]).exits(0)
    try await asUser(61_002, ["status", spool]).exits(0)
    #expect(scene.spool.names("new") == ["a"])
  }

  /// Whoever owns the directory around it can put another spool in its place.
  @Test func `root's worker does not go on with a user's spool`() async throws {
    let directory = try TemporaryDirectory()
    let (home, safe) = ("\(directory.path)/home", "\(directory.path)/safe")
    try #require(mkdir(home, 0o755) == 0 && mkdir(safe, 0o700) == 0)
    try #require(chmod(directory.path, 0o755) == 0 && chown(home, 61_001, 61_001) == 0)
    let spool = try TemporarySpool(in: home)
    let worker = try startSpoolrun(["-v", spool.root])
    try spool.drop("a", "\(server.url("/a"))\n")
    try await waitUntil("it works") { spool.names("done") == ["a"] || worker.isFinished }
    try #require(mkdir("\(home)/beside", 0o755) == 0)
    let other = try TemporarySpool(in: "\(home)/beside")
    try #require(rmdir(other.path("files")) == 0 && symlink(safe, other.path("files")) == 0)
    try other.drop("b", "\(server.url("/b"))\n")
    try await runTool(["/bin/chown", "-R", "61001:61001", other.root])
    try #require(rename(spool.root, "\(home)/old") == 0 && rename(other.root, spool.root) == 0)
    try await worker.result().exits(74, saying: "of user 61001 and not of user 0")
    #expect(names(in: safe) == [] && spool.names("new") == ["b"])
  }

  /// The user could lead it to any directory of root's.
  @Test(arguments: ["-d", "files"])
  func `root's worker follows no link of a user to another output root`(way: String) async throws {
    let directory = try TemporaryDirectory()
    let (home, safe) = ("\(directory.path)/home", "\(directory.path)/safe")
    try #require(mkdir(home, 0o755) == 0 && mkdir(safe, 0o700) == 0 && mkdir("\(home)/out", 0o755) == 0)
    try #require(chown(home, 61_001, 61_001) == 0)
    let spool = try TemporarySpool()
    if way == "files" {
      try #require(rmdir(spool.path("files")) == 0 && symlink("\(home)/out", spool.path("files")) == 0)
    }
    let log = "\(directory.path)/log"
    let worker = try startSpoolrun(
      way == "files" ? ["-v", spool.root] : ["-v", "-d", "\(home)/out", spool.root],
      prefix: ["/bin/sh", "-c", #"log=$1; shift; exec "$@" 2>"$log""#, "sh", log])
    try spool.drop("a", "\(server.url("/a"))\n")
    try await waitUntil("it works") { names(in: "\(home)/out") == ["a"] || worker.isFinished }
    try #require(rename("\(home)/out", "\(home)/old") == 0 && symlink(safe, "\(home)/out") == 0)
    try spool.drop("b", "\(server.url("/b"))\n")
    try await waitUntil("it waits") {
      try readText(log).contains("that another user can replace") || worker.isFinished
    }
    try await worker.stop()
    #expect(names(in: safe) == [] && spool.names("new") == ["b"])
  }

  /// As with `sudo -E`, which keeps HOME.
  @Test func `root's get makes nothing of root's in a user's home`() async throws {
    let home = try TemporaryDirectory()
    let here = "\(home.path)/here"
    try #require(mkdir(here, 0o755) == 0 && chown(here, 61_001, 61_001) == 0 && chown(home.path, 61_001, 61_001) == 0)
    let result = try await spoolrun(
      "get", "-o", "new/place/", server.url("/a"), environment: ["HOME": home.path, "XDG_STATE_HOME": ""],
      directory: here)
    #expect(result.status == .exited(0), "\(result)")
    #expect(names(in: "\(here)/new/place") == ["a"])
    let found = try await runTool(["/usr/bin/find", home.path, "!", "-uid", "61001"])
    #expect(found.output == "")
  }

  /// By the directory that is open: its name leads to another one whenever the user wants.
  @Test func `a hook in a spool that lies in a user's directory runs by the open directory`() async throws {
    let directory = try TemporaryDirectory()
    try #require(chown(directory.path, 61_001, 61_001) == 0)
    let spool = try TemporarySpool(in: directory.path)
    try spool.install("done", #"echo "$0"; ls "$(dirname "$0")""#)
    try spool.drop("a", "\(server.url("/a"))\n")
    let result = try await spoolrun("--once", "-v", spool.root)
    #expect(result.errors.contains("text=/proc/self/fd/") && result.errors.contains("text=done"), "\(result)")
  }

  @Test func `root's own spool stays root's`() async throws {
    let spool = try TemporarySpool()
    try await spoolrun("add", "--spool", spool.root, "http://h/a").exits(0)
    #expect(fileStatus(spool.path("new/a"))?.st_uid == 0)
  }
}
